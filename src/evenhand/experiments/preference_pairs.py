"""Build folders of preference pairs from debates, repairs or written items."""

from collections.abc import Callable, Sequence
from pathlib import Path

from evenhand.runs.store import RunReader
from evenhand.training.debates import building, dataset
from evenhand.training.debates.building import BuiltPairs, from_statements
from evenhand.training.debates.dataset import UNKNOWN_LICENSE
from evenhand.training.debates.debate import first_of, statements
from evenhand.training.debates.pairs import Pairing, PairsReport, Split

Note = Callable[[str], None]


def _silent(_: str) -> None:
    return


def pairs_from_debates(
    runs: Sequence[str],
    out: Path,
    pairing: Pairing,
    split: Split,
    *,
    rounds: int | None = None,
    topics: int | None = None,
    license: str = UNKNOWN_LICENSE,
    note: Note = _silent,
) -> PairsReport:
    """Pair the statements of debates and write the data set.

    Args:
        runs: Run folders of debates, as paths or URLs.
        out: Folder of the data set; must not exist.
        pairing: Which two statements form a pair.
        split: How pairs are sampled, matched and held out.
        rounds: Use only the first rounds of each debate.
        topics: Use only the first topics of each bias type.
        license: Terms for the data card.
        note: Receives a sentence about each stage.

    Returns:
        The counts, shortcuts and settings of the data set.

    Raises:
        UserError: If `out` exists or the statements form no pair.
    """
    dataset.require_new(out)
    every = [statement for run in _opened(runs, note) for statement in statements(run)]
    selected = first_of(every, rounds=rounds, topics=topics)
    note(f"pairing {len(selected):,} statements")
    return _write(from_statements(selected, pairing, split), out, license, note)


def pairs_from_run(
    runs: Sequence[str],
    out: Path,
    split: Split,
    *,
    license: str = UNKNOWN_LICENSE,
    note: Note = _silent,
) -> PairsReport:
    """Pair rejected drafts with the accepted drafts that replaced them, and write the data set.

    Args:
        runs: Run folders of a method that repairs, as paths or URLs.
        out: Folder of the data set; must not exist.
        split: How pairs are sampled, matched and held out.
        license: Terms for the data card.
        note: Receives a sentence about each stage.

    Returns:
        The counts, shortcuts and settings of the data set.

    Raises:
        UserError: If `out` exists or the runs hold no pair.
    """
    dataset.require_new(out)
    built = building.from_runs(_opened(runs, note), split)
    return _write(built, out, license, note)


def pairs_from_items(
    file: Path,
    out: Path,
    split: Split,
    *,
    license: str = UNKNOWN_LICENSE,
    note: Note = _silent,
) -> PairsReport:
    """Pair sentences completed with a stereotype with other completions, and write the data set.

    Args:
        file: A CSV file of items with a blank.
        out: Folder of the data set; must not exist.
        split: How pairs are sampled, matched and held out.
        license: Terms for the data card.
        note: Receives a sentence about each stage.

    Returns:
        The counts, shortcuts and settings of the data set.

    Raises:
        UserError: If `out` exists or the file cannot be read.
    """
    dataset.require_new(out)
    return _write(building.from_items(file, split), out, license, note)


def _opened(runs: Sequence[str], note: Note) -> list[RunReader]:
    readers = []
    for run in runs:
        note(f"reading {run}")
        readers.append(RunReader(run))
    return readers


def _write(built: BuiltPairs, out: Path, license: str, note: Note) -> PairsReport:
    note(f"writing {sum(map(len, built.pairs.values())):,} pairs")
    dataset.write(out, built.pairs, built.report, license, built.low)
    return built.report
