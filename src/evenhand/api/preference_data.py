"""Preference pairs and human ratings: data for training."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from evenhand.api import inputs
from evenhand.experiments import human_ratings
from evenhand.experiments.human_ratings import SheetRequest, SheetsWritten
from evenhand.runs.store import RunReader
from evenhand.training.debates import building, dataset
from evenhand.training.debates.building import BuiltPairs, from_statements
from evenhand.training.debates.dataset import UNKNOWN_LICENSE
from evenhand.training.debates.debate import first_of, statements
from evenhand.training.debates.pairs import Openers, Pairing, PairsReport, Split, Strategy
from evenhand.training.rating.findings import RatingReport
from evenhand.training.rating.sheets import ReturnedSheets

Note = Callable[[str], None]


def _silent(_: str) -> None:
    """Tell nobody."""


async def train_pairs_from_debates(
    runs: Sequence[str | Path],
    out: str | Path,
    *,
    strategy: Strategy = "same_topic",
    threshold: float = 3.0,
    min_gap: float = 0.0,
    per_topic: int = 10,
    openers: Openers = "strip",
    match_lengths: bool = False,
    rounds: int | None = None,
    topics: int | None = None,
    train_pairs: int | None = None,
    test_share: float = 0.1,
    seed: int = 0,
    license: str = UNKNOWN_LICENSE,
    note: Note = _silent,
) -> PairsReport:
    """Pair the statements of debates; the less biased one is chosen.

    Args:
        runs: Run folders of debates, as paths or URLs.
        out: Folder of the data set; must not exist.
        strategy: What the two statements of a pair share.
        threshold: Scores above it are high, the others low.
        min_gap: Smallest difference of the two scores.
        per_topic: Maximum number of pairs per topic.
        openers: What is done with beginnings like "As a 60-year-old, …".
        match_lengths: Drop pairs until length does not predict the choice.
        rounds: Use only the first rounds of each debate.
        topics: Use only the first topics of each bias type.
        train_pairs: Maximum number of pairs to train on.
        test_share: Share of the topics that is held out.
        seed: Random seed for the split and the pairs.
        license: Terms for the data card.
        note: Receives a sentence about each stage.

    Returns:
        The counts, shortcuts and settings of the data set.

    Raises:
        UserError: If `out` exists or the statements form no pair.
    """
    pairing = Pairing(strategy=strategy, threshold=threshold, min_gap=min_gap, openers=openers)
    split = Split(
        test_share=test_share,
        per_topic=per_topic,
        match_lengths=match_lengths,
        train_pairs=train_pairs,
        seed=seed,
    )

    def paired() -> PairsReport:
        dataset.require_new(Path(out))
        every = [statement for run in _opened(runs, note) for statement in statements(run)]
        selected = first_of(every, rounds=rounds, topics=topics)
        note(f"pairing {len(selected):,} statements")
        return _written(from_statements(selected, pairing, split), out, license, note)

    return await asyncio.to_thread(paired)


async def train_pairs_from_run(
    runs: Sequence[str | Path],
    out: str | Path,
    *,
    keep: bool = True,
    per_topic: int | None = None,
    match_lengths: bool = False,
    test_share: float = 0.1,
    seed: int = 0,
    license: str = UNKNOWN_LICENSE,
    note: Note = _silent,
) -> PairsReport:
    """Pair drafts that a method rejected with the drafts that it accepted instead.

    Questions with an "unknown" option also give pairs that reward an answer: one that was accepted
    at once is chosen over "unknown".

    Args:
        runs: Run folders of stardtox or mabrf, as paths or URLs.
        out: Folder of the data set; must not exist.
        keep: Add such pairs, until as many reward an answer as reward "unknown".
        per_topic: Maximum number of pairs per topic. Defaults to all.
        match_lengths: Drop pairs until length does not predict the choice.
        test_share: Share of the topics that is held out.
        seed: Random seed for the split and the pairs.
        license: Terms for the data card.
        note: Receives a sentence about each stage.

    Returns:
        The counts, shortcuts and settings of the data set.

    Raises:
        UserError: If `out` exists or the runs hold no pair.
    """
    split = Split(
        test_share=test_share, per_topic=per_topic, match_lengths=match_lengths, seed=seed
    )

    def paired() -> PairsReport:
        dataset.require_new(Path(out))
        built = building.from_runs(_opened(runs, note), split, keep=keep)
        return _written(built, out, license, note)

    return await asyncio.to_thread(paired)


async def train_pairs_from_items(
    file: str | Path,
    out: str | Path,
    *,
    per_topic: int | None = None,
    match_lengths: bool = False,
    test_share: float = 0.1,
    seed: int = 0,
    license: str = UNKNOWN_LICENSE,
    note: Note = _silent,
) -> PairsReport:
    """Pair sentences completed with a stereotype with the same sentences completed otherwise.

    Args:
        file: A CSV file with the columns bias_type, context, stereotype, anti_stereotype and
            unrelated.
        out: Folder of the data set; must not exist.
        per_topic: Maximum number of pairs per topic. Defaults to all.
        match_lengths: Drop pairs until length does not predict the choice.
        test_share: Share of the topics that is held out.
        seed: Random seed for the split and the pairs.
        license: Terms for the data card.
        note: Receives a sentence about each stage.

    Returns:
        The counts, shortcuts and settings of the data set.

    Raises:
        UserError: If `out` exists or the file cannot be read.
    """
    split = Split(
        test_share=test_share, per_topic=per_topic, match_lengths=match_lengths, seed=seed
    )

    def paired() -> PairsReport:
        dataset.require_new(Path(out))
        return _written(building.from_items(Path(file), split), out, license, note)

    return await asyncio.to_thread(paired)


def _opened(runs: Sequence[str | Path], note: Note) -> list[RunReader]:
    readers = []
    for run in runs:
        note(f"reading {run}")
        readers.append(RunReader(run))
    return readers


def _written(built: BuiltPairs, out: str | Path, license: str, note: Note) -> PairsReport:
    note(f"writing {sum(map(len, built.pairs.values())):,} pairs")
    dataset.write(Path(out), built.pairs, built.report, license, built.low)
    return built.report


async def annotate_export(
    runs: Sequence[str | Path],
    out: str | Path,
    *,
    raters: int = 5,
    sample: int = 30,
    overlap: int | None = None,
    key: str | Path | None = None,
    seed: int | None = None,
    note: Note = _silent,
) -> SheetsWritten:
    """Make blinded rating sheets: a folder for each rater, and a key that raters never get.

    Args:
        runs: Run folders, as paths or URLs. Runs that share items are rated on the same items.
        out: Folder of the sheets; must not exist.
        raters: Number of raters.
        sample: Number of items that are rated per run.
        overlap: Number of raters per text. Defaults to all.
        key: File of the key. Defaults to NAME-key.json next to `out`.
        seed: Random seed for items, names and orders. Whoever knows it can unblind the texts.
        note: Receives a sentence about each stage.

    Returns:
        The folder, the key, and the number of texts per rater.

    Raises:
        UserError: If `out` exists or a run is given twice.
    """
    request = SheetRequest(
        runs=[*map(str, runs)],
        out=Path(out),
        raters=raters,
        sample=sample,
        overlap=overlap,
        key=inputs.path_of(key),
        seed=seed,
    )
    return await asyncio.to_thread(human_ratings.export_sheets, request, note)


async def annotate_import(
    files: Sequence[str | Path], key: str | Path, out: str | Path
) -> ReturnedSheets:
    """Read completed rating sheets. A mark that was left empty is missing, never 0.

    Args:
        files: The sheets that came back.
        key: The key that `annotate_export` wrote.
        out: Folder of the ratings; must not exist.

    Returns:
        The number of marks, those that are missing, and raters without a sheet.

    Raises:
        UserError: If a sheet has a fault. Then nothing is written.
    """
    sheets = [*map(Path, files)]
    return await asyncio.to_thread(human_ratings.import_sheets, sheets, Path(key), Path(out))


async def annotate_agree(
    folder: str | Path,
    *,
    judge: str | Path | None = None,
    labels: str | Path | None = None,
) -> RatingReport:
    """Measure how far raters agree, what they think of each run, and whether a judge agrees.

    Args:
        folder: The folder that `annotate_import` wrote.
        judge: A run that scored these texts, or a CSV file with id and marks.
        labels: Also write the raters' marks, as labels for a judge audit, into this .jsonl file.

    Returns:
        Agreement, marks per run, and the judge against the raters.
    """
    return await asyncio.to_thread(
        lambda: human_ratings.agreement(
            Path(folder),
            judge=None if judge is None else str(judge),
            labels=inputs.path_of(labels),
        )
    )
