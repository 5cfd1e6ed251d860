"""Build folders of preference pairs from debates, repairs or written items."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from evenhand.runs.store import RunReader
from evenhand.training.debates import dataset, items, revisions
from evenhand.training.debates.building import BuiltPairs, from_statements
from evenhand.training.debates.dataset import UNKNOWN_LICENSE
from evenhand.training.debates.pairs import Pairing, PairsReport, Split
from evenhand.training.debates.read import first_of, statements


def _silent(_: str) -> None:
    return


@dataclass(frozen=True, slots=True, kw_only=True)
class PairsFolder:
    """A folder of pairs that is to be written; one that exists is refused."""

    out: Path
    split: Split  # how pairs are sampled, matched and held out
    license: str = UNKNOWN_LICENSE  # terms for the data card
    note: Callable[[str], None] = _silent  # receives a sentence about each stage

    def __post_init__(self) -> None:
        dataset.require_new(self.out)

    def from_debates(
        self,
        runs: Sequence[str],
        pairing: Pairing,
        *,
        rounds: int | None = None,
        topics: int | None = None,
    ) -> PairsReport:
        """Pair the statements of debates, which may be those of the first rounds or topics only."""
        every = [statement for run in self._opened(runs) for statement in statements(run)]
        selected = first_of(every, rounds=rounds, topics=topics)
        self.note(f"pairing {len(selected):,} statements")
        return self._write(from_statements(selected, pairing, self.split))

    def from_runs(self, runs: Sequence[str]) -> PairsReport:
        """Pair rejected drafts with the accepted drafts that replaced them."""
        return self._write(revisions.from_runs(self._opened(runs), self.split))

    def from_items(self, file: Path) -> PairsReport:
        """Pair sentences completed with a stereotype with other completions, from a CSV file."""
        return self._write(items.from_items(file, self.split))

    def _opened(self, runs: Sequence[str]) -> list[RunReader]:
        readers = []
        for run in runs:
            self.note(f"reading {run}")
            readers.append(RunReader(run))
        return readers

    def _write(self, built: BuiltPairs) -> PairsReport:
        self.note(f"writing {sum(map(len, built.pairs.values())):,} pairs")
        dataset.write(self.out, built.pairs, built.report, self.license, built.low)
        return built.report
