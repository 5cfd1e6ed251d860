"""The last answers that a gateway repaired, from the run folders of its traffic."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from evenhand.core.errors import EvenhandError, UserError
from evenhand.gateway.verdicts import Action
from evenhand.runs.store import RunReader

MOST = 3  # our choice: repairs on a screen
_BACK = 2_000  # our choice, in items of each folder: a screen must not read a whole day
_DAYS = 2  # our choice: today, and yesterday for the minutes after midnight
_FRESH_SECONDS = 20.0  # our choice: folders are committed once a minute
_COLUMNS = ("position", "item_id", "answer_before", "text", "tags")


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """An answer as the upstream said it and as it went out."""

    at: float  # seconds since 1970, when the first agent was asked
    tenant: str
    id: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentRepairs:
    """The last repairs, the newest first, and why there may be fewer than there were."""

    repairs: tuple[Repair, ...] = ()
    without_words: int = 0  # folders whose policy is to keep no words
    problem: str = ""  # what could not be read


class RepairFolders:
    """The folders of a gateway's evidence on this machine, read anew when they may have changed."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        if not folder.is_dir():
            raise UserError(
                f"--evidence {folder} is no folder of this machine: give the one that the gateway "
                "was started with"
            )
        self._folder, self._clock = folder, clock
        self._found, self._until = RecentRepairs(), 0.0

    def last(self) -> RecentRepairs:
        """The last repairs that are committed, which is up to a minute after they went out."""
        if self._clock() >= self._until:
            self._found = self._read()
            self._until = self._clock() + _FRESH_SECONDS
        return self._found

    def _read(self) -> RecentRepairs:
        repairs: list[Repair] = []
        without, problem = 0, ""
        for path in self._places():
            try:
                run = RunReader(path)
                if run.record.keeps_texts:
                    repairs += _repairs(run)
                else:
                    without += 1
            except EvenhandError as error:
                problem = str(error)
        newest = sorted(repairs, key=lambda repair: repair.at, reverse=True)[:MOST]
        return RecentRepairs(repairs=tuple(newest), without_words=without, problem=problem)

    def _places(self) -> Iterator[Path]:
        """The runs of the newest days: DAY/TENANT, and DAY/TENANT/REPLICA."""
        days = sorted(self._folder.glob("????-??-??"))[-_DAYS:]
        for day in days:
            for depth in ("*", "*/*"):
                yield from (path.parent for path in sorted(day.glob(f"{depth}/run.json")))


def _repairs(run: RunReader) -> list[Repair]:
    positions = [at for first, stop in run.positions() for at in range(first, stop)][-_BACK:]
    changed = run.results_at(positions).filter(pl.col("changed")).select(_COLUMNS).collect()
    rows = [row for row in changed.to_dicts() if _tag(row, "action") == Action.REPAIRED][-MOST:]
    began = _began(run, [row["position"] for row in rows])
    return [
        Repair(
            at=began.get(row["position"], 0.0),
            tenant=_tag(row, "tenant"),
            id=row["item_id"],
            before=row["answer_before"] or "",
            after=row["text"] or "",
        )
        for row in rows
    ]


def _began(run: RunReader, positions: list[int]) -> dict[int, float]:
    turns = run.turns_at(positions).group_by("position").agg(pl.col("started_us").min()).collect()
    return {position: started / 1e6 for position, started in turns.iter_rows()}


def _tag(row: dict[str, Any], name: str) -> str:
    return next((tag["value"] for tag in row["tags"] if tag["name"] == name), "")
