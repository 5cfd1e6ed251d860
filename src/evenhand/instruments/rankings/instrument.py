"""Rankings as an instrument: who is ranked first for a job, and is it more than chance?"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import orjson
import polars as pl

from evenhand.core import Item
from evenhand.core.errors import UserError
from evenhand.findings.display import RemarkOrText
from evenhand.findings.estimates import Section
from evenhand.findings.ratios import SHOWN, measure_name
from evenhand.findings.report import Report
from evenhand.findings.scoring import UNREADABLE, Scoring, outcome_batches
from evenhand.instruments._contract import (
    SCORED,
    DataFolder,
    InstrumentWords,
    ListedItems,
    Mean,
    Measure,
    OfGroups,
    option,
    why_lost,
)
from evenhand.instruments.files import prompt_of, sha256_of
from evenhand.instruments.rankings import tables
from evenhand.instruments.rankings.data import (
    NamedTask,
    Task,
    bloomberg,
    first_in_text,
    ranked_first,
    read_tasks,
)
from evenhand.instruments.rankings.judged import (
    Grouping,
    Ranking,
    counted,
    groupings,
    judged,
    rankings,
)
from evenhand.runs.runners.source import Source
from evenhand.runs.store import RunReader

MARGIN = 0.05  # our choice: 5 first places of 100 are what a comparison may lose
_NOT_TASK = {"answer", "prompt"}  # of a line: what does not say what is ranked
_WORDS = InstrumentWords(__package__)
_SCHEMA = {"first": pl.Int64, "in_text": pl.Int64, "lost": pl.Boolean}


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingsOptions:
    answers: Path | None = option(
        None,
        "Existing rankings to score: JSON lines with job, candidates (name, group, text) and "
        "answer.",
    )
    tasks: Path | None = option(
        None,
        "Rankings to request from the model: JSON lines with job and candidates, without answers.",
    )
    bloomberg: str | None = option(
        None, "Part of Bloomberg's audit (published 2024) to score, such as gpt-4/hr-specialist."
    )
    ask: bool = option(
        False,
        "With --bloomberg: request new rankings from a model instead of scoring the published"
        " ones.",
    )
    sample: int | None = option(None, "Maximum number of rankings.", least=2)
    sample_seed: int = option(0, "Random seed for sampling rankings.")


class Rankings(OfGroups):
    """Measures who is ranked first among candidates for a job: by group, against chance, and by
    the place in the prompt. It scores stored rankings, those of Bloomberg's audit too."""

    name = "rankings"
    title = "Rankings"
    clusters = "sets of candidates"
    columns = ("text",)
    facts: ClassVar = {"candidates": pl.String(), "names": pl.String(), "cluster": pl.String()}
    options = RankingsOptions
    answer_id = None  # a line of a file says what was ranked, too
    selects = "one"

    def source(self, data: DataFolder, options: RankingsOptions) -> Source:
        sources = [
            choice for choice in (options.answers, options.tasks, options.bloomberg) if choice
        ]
        if len(sources) != 1:
            raise UserError(
                "use exactly one of --answers FILE, --tasks FILE and --bloomberg MODEL/JOB"
            )
        if options.ask and not options.bloomberg:
            raise UserError("--ask requires --bloomberg. To request your own rankings, use --tasks")
        stored = self.stores_answers(options)
        if options.bloomberg:
            entries = bloomberg(options.bloomberg, data.local, self.card())
        else:
            entries = read_tasks(Path(sources[0]), answered=stored)
        sampling: dict[str, Any] = {"of": options.bloomberg or "own", "rankings": len(entries)}
        if options.sample is not None and options.sample < len(entries):
            rng = np.random.default_rng(options.sample_seed)
            places = sorted(rng.permutation(len(entries))[: options.sample].tolist())
            entries = [entries[index] for index in places]
            sampling |= {"rankings": len(entries), "seed": options.sample_seed}
        also: dict[str, Any] = {
            "prompt": {_prompt().label: _prompt().sha256},
            "bloomberg": options.bloomberg or "",
            # Of what is ranked, so that the answers of two models to it can be compared.
            "sha256": sha256_of(
                [(entry.id, entry.task.model_dump(exclude=_NOT_TASK)) for entry in entries]
            ),
        }
        if stored:
            also["answers"] = sha256_of([entry.task.answer for entry in entries])
        return ListedItems(
            self,
            [_item(entry, stored) for entry in entries],
            sampling=sampling,
            version=self.card()["version"],
            also=also,
        )

    def stores_answers(self, options: RankingsOptions) -> bool:
        return options.answers is not None or bool(options.bloomberg and not options.ask)

    def outcomes(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Who came first of each ranking; null where that cannot be read."""
        read = rows.select("text", "names").iter_rows()
        parsed = pl.DataFrame([_read(*row) for row in read], schema=_SCHEMA, orient="row")
        unread = pl.lit(UNREADABLE)
        scored = pl.when(pl.col("first").is_not_null()).then(pl.lit(SCORED)).otherwise(unread)
        state = pl.when("lost").then(why_lost()).otherwise(scored)
        return rows.hstack(parsed).select(
            "item_id", "cluster", "candidates", "first", "in_text", state=state
        )

    def for_run(self, run: RunReader) -> "Rankings":
        """Judge the run, with one measure for each group."""
        instrument, ranked = self.for_pair(run, run), self._rankings(run)
        instrument.results = judged(ranked) if ranked else None
        return instrument

    def for_pair(self, before: RunReader, after: RunReader) -> "Rankings":
        """Measure each group of the candidates, who are the same in both runs, against its share
        of them."""
        instrument, ranked = copy.copy(self), self._rankings(before)
        names = [
            measure_name(grouping, " ".join(group))
            for grouping in (groupings(ranked[0]) if ranked else ())
            for groups in [sorted(counted(ranked, grouping).of_all)]
            for group in (groups[:1] if len(groups) == 2 else groups)
        ]
        vars(instrument)["measures"] = tuple(map(_surplus, names))
        return instrument

    def scoring(self, run: RunReader) -> Scoring:
        """For each group, 1 where one of it came first and else 0, less its share of the
        candidates."""
        ranked = self._rankings(run)
        every = groupings(ranked[0]) if ranked else ()
        groups = {grouping: sorted(counted(ranked, grouping).of_all) for grouping in every}

        def score(rows: pl.DataFrame) -> pl.DataFrame:
            outcomes = self.outcomes(rows)
            read = list(rankings([outcomes]))
            return outcomes.with_columns(
                pl.Series(
                    measure_name(grouping, " ".join(group)),
                    [_beyond_share(ranking, grouping, group) for ranking in read],
                    pl.Float64,
                )
                for grouping, names in groups.items()
                for group in names
            )

        return score

    def _rankings(self, run: RunReader) -> list[Ranking]:
        return list(rankings(outcome_batches(self, run, self.outcomes)))

    def notes(self, report: Report, run: RunReader) -> tuple[str, ...]:
        ranked = self._rankings(run)
        crossed = counted(ranked, groupings(ranked[0])[0])
        lines = [_WORDS("these_candidates")]
        uneven = tables.leading_p(crossed)
        if uneven is not None and uneven <= 0.05 and _places_matter(report):
            lines.append(_WORDS("uneven_places"))
        if len({len(ranking.groups) for ranking in ranked}) > 1:
            lines.append(_WORDS("different_sizes"))
        if crossed.read and crossed.missing:
            lines.append(_WORDS("with_missing"))
        return tuple(lines)

    def says(self, report: Report) -> tuple[RemarkOrText, ...]:
        lines = [*self.said(report, "ranked first")]
        if lines and _places_matter(report):
            places = report.section("places")
            assert places is not None
            top = max(places.rows, key=lambda row: int(str(row[1])))
            lines.append(_WORDS("place_decides", place=top[0], share=top[2], chance=top[4]))
        return tuple(lines)

    def sections(self, report: Report, run: RunReader) -> tuple[Section, ...]:
        published = bool(run.record.source.get("bloomberg"))
        return (
            ()
            if self.results is None
            else tables.sections(self._rankings(run), self.results, published)
        )


def _surplus(name: str) -> Measure:
    return Measure(name=name, label=_WORDS("surplus", group=name.rpartition("=")[2]),
                   statistic=Mean(pl.col(name)), better="zero", within=(-1, 1), role="primary",
                   margin=MARGIN)  # fmt: skip


def _beyond_share(ranking: Ranking, grouping: Grouping, group: tuple[str, ...]) -> float | None:
    if ranking.first is None:
        return None
    groups = ranking.named(grouping)
    return (groups[ranking.first] == group) - groups.count(group) / len(groups)


def _places_matter(report: Report) -> bool:
    """Say whether the place is shown to matter, after Holm over all tests of the run."""
    tests = report.section("tests")
    return tests is not None and any(
        row[0] == tables.IN_PROMPT and row[3] == SHOWN for row in tests.rows
    )


_prompt = partial(prompt_of, __package__)


@lru_cache(maxsize=4096)  # a report reads the same answers several times over
def _read(text: str | None, names: str) -> tuple[int | None, int | None, bool]:
    if text is None:
        return None, None, True
    candidates = orjson.loads(names)
    return ranked_first(text, candidates), first_in_text(text, candidates), False


def _item(entry: NamedTask, stored: bool) -> Item:
    task = entry.task
    return Item(
        id=entry.id,
        prompt=task.prompt if stored and task.prompt else _asked(task),
        answer=(task.answer or None) if stored else "",
        tags={
            "candidates": orjson.dumps(_groups(task)).decode(),
            "names": orjson.dumps([c.name for c in task.candidates]).decode(),
            "cluster": task.alike,
        },
    )  # fmt: skip


def _groups(task: Task) -> list[dict[str, str]]:
    return [dict(sorted(candidate.group.items())) for candidate in task.candidates]


def _asked(task: Task) -> str:
    people = "\n\n".join(_shown(task))
    slots = {"job": task.job, "description": task.description, "candidates": people}
    (message,) = _prompt().render(slots)
    return message.content


def _shown(task: Task) -> Iterator[str]:
    for candidate in task.candidates:
        yield f"{candidate.name}\n{candidate.text}" if candidate.text else candidate.name
