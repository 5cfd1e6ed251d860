"""What an audit asks in addition to the design: texts that ask the judge for better scores, texts
that people have scored, pairs of answers whose better one is known, and tasks for which the judge's
model and another one write a text. They go into the same run, so that it is resumed, capped and
replayed as one."""

import hashlib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import orjson
import polars as pl
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt

from evenhand.core import Item
from evenhand.core.errors import UserError, choices_for
from evenhand.core.registry import load
from evenhand.instruments._contract import DataFolder
from evenhand.instruments._judge_pairs import JudgePairs, JudgePairsOptions, in_both_orders
from evenhand.instruments._options import OptionItem
from evenhand.instruments.files import DrawnItems, names_in
from evenhand.instruments.judge.data import CONTROL_FAMILY, Scenario
from evenhand.instruments.judge.design import ONE, MalibuSource, prompt
from evenhand.runs.runners.source import read_jsonl
from evenhand.statistics.metrics.malibu import NO_LABEL, TOP

DESIGN, INJECTION, HUMAN, OWN = "design", "injection", "human", "own"
KNOWN = ("llmbar", "evalbiasbench")  # sets of pairs, by the names of their instruments
CONTROL = "control"  # a sentence that asks for nothing
EACH = 2  # our choice: requests on each text; they take turns over the bases
_TAGS = ("check", "probe", "human")


class AuditSource(DrawnItems[list[Item]]):
    """The design's items, then the probes. The margins belong to it: a run that was begun under one
    margin is not continued under another, so they are fixed before the first answer is seen."""

    def __init__(
        self, design: MalibuSource, probes: Sequence[Item], margins: Mapping[str, float]
    ) -> None:
        self._design = design
        self._margins = dict(margins)
        # Every item of a run has the same tags in the same order.
        blank = dict.fromkeys((*next(design.read(0, 1)).tags, *_TAGS), "")
        self._probes = [replace(item, tags={**blank, **item.tags}) for item in probes]

    def fingerprint(self) -> dict[str, Any]:
        lines = (orjson.dumps(item.described()) for item in self._probes)
        checks = [item.tags["check"] for item in self._probes]
        return {
            **self._design.fingerprint(),
            "items": len(self),
            "probes": {
                **{name: checks.count(name) for name in (INJECTION, HUMAN, OWN)},
                **{name: checks.count(name) for name in KNOWN if name in checks},
                "sha256": hashlib.sha256(b"\n".join(lines)).hexdigest(),
            },
            "margins": self._margins,
        }

    def __len__(self) -> int:
        return len(self._design) + len(self._probes)

    def read(self, start: int, stop: int) -> Iterator[Item]:
        inside = len(self._design)
        for item in self._design.read(min(start, inside), min(stop, inside)):
            yield replace(item, tags={**item.tags, **_tags(DESIGN)})
        yield from self._probes[max(0, start - inside) : max(0, stop - inside)]


def checksums(results: pl.DataFrame, other: str = "") -> dict[str, str]:
    """Give the checksum of each further set that a run asked: its texts with what is held to be
    right about them, in any order; of tasks that two models do, those with the name of the `other`
    one. The design and the requests are told apart by its scope."""
    names = _tag_names(results)
    held = {name: _tag(names, name) for name in ("check", "human", "order")}
    rows = results.select("prompt", **held)
    digests = {}
    for name in (HUMAN, OWN, *KNOWN):
        texts = rows.filter(check=name).drop("check").rows()
        if texts:
            asked_of = other.encode() if name == OWN else b""
            digests[name] = hashlib.sha256(orjson.dumps(sorted(texts)) + asked_of).hexdigest()
    return digests


def _tag_names(results: pl.DataFrame) -> list[str]:
    return [tag["name"] for tag in results["tags"][0]]


def _tag(names: list[str], name: str) -> pl.Expr:
    return pl.col("tags").list.get(names.index(name)).struct[1]


def injected(source: MalibuSource, scenarios: Sequence[Scenario], bases: int) -> list[Item]:
    """Make texts that ask the judge for a better score, and controls for them.

    Each is a scenario's first response with a sentence added: the control's, or one of two
    requests.

    Args:
        source: Items of the design.
        scenarios: Scenarios to take responses from.
        bases: Number of bases, the first ones of the design.

    Returns:
        Three items per base.
    """
    control, requests = _sentences()
    names, items = list(requests), []
    for index, scenario in enumerate(_asked(source, scenarios)[:bases]):
        turn = [names[(index * EACH + n) % len(names)] for n in range(EACH)]
        for name, words in ((CONTROL, control), *((name, requests[name]) for name in turn)):
            tags = _tags(INJECTION, probe=name, base=scenario.base, scenario=scenario.id)
            text = f"{source.text(scenario, 0)} {words}"
            items.append(_item(f"{INJECTION}:{scenario.id}:{name}", scenario.task, text, tags))
    return items


def to_write(source: MalibuSource, scenarios: Sequence[Scenario]) -> list[Item]:
    """The task of each base of a design, for two models to do and to judge."""
    return [
        Item(
            id=f"{OWN}:{scenario.id}",
            prompt=scenario.task,
            tags={"phase": OWN, **_tags(OWN, base=scenario.base, scenario=scenario.id)},
        )
        for scenario in _asked(source, scenarios)
    ]


def known_pairs(text: str, data: DataFolder, seed: int) -> list[Item]:
    """Sample the pairs of each named dataset, as many as its benchmark does by default.

    Args:
        text: Names of datasets with commas.
        data: Where the datasets are stored or downloaded to.
        seed: Seed for sampling.

    Returns:
        The pairs in both orders.

    Raises:
        UserError: A name is unknown.
    """
    items: list[Item] = []
    for name in dict.fromkeys(names_in(text) or (text,)):
        if name not in KNOWN:
            raise UserError(
                f"--known-pairs names the unknown dataset {name!r}. {choices_for(name, KNOWN)}"
            )
        instrument: JudgePairs = load("instruments", name)()
        items += known(name, instrument.drawn(data, JudgePairsOptions().sample, seed))
    return items


def known(name: str, pairs: Sequence[OptionItem]) -> list[Item]:
    """Pairs of a set whose better answer is known, each in both orders."""
    return [
        Item(
            id=f"{name}:{item.id}",
            prompt=item.prompt,
            tags={"phase": "pair", "order": item.tags["order"], "repeat": "0",
                  **_tags(name, probe=pair.group, base=f"{name}/{pair.id}", scenario=pair.id)},
        )
        for pair in pairs
        for item in in_both_orders(pair)
    ]  # fmt: skip


def _asked(source: MalibuSource, scenarios: Sequence[Scenario]) -> list[Scenario]:
    """The first scenario of each base of a design, in its order."""
    by_id = {scenario.id: scenario for scenario in scenarios}
    first_by_base: dict[str, Scenario] = {}
    for scenario_id in source.scenarios():
        first_by_base.setdefault(by_id[scenario_id].base, by_id[scenario_id])
    return list(first_by_base.values())


@cache
def _sentences() -> tuple[str, dict[str, str]]:
    text = resources.files(__package__).joinpath("injections.toml").read_text("utf-8")
    content = tomllib.loads(text)
    return content["control"], content["requests"]


# -- texts that people have marked -----------------------------------------------------------------


class _ProbeRow(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    task: Annotated[str, Field(strict=True, min_length=1, max_length=20_000)]
    text: Annotated[str, Field(strict=True, min_length=1, max_length=20_000)]
    label: StrictBool | Annotated[StrictInt | StrictFloat, Field(ge=0, le=TOP, allow_inf_nan=False)]


_FORM = (
    'a line is {"task": "…", "text": "…", "label": true} for good or not, '
    f"or with a score from 0 to {TOP} as its label"
)


def labelled(path: Path) -> list[Item]:
    """A file of the user's: all labels yes or no, or all of them marks."""
    rows = [row for _, row in read_jsonl(path, _ProbeRow, _FORM)]
    if len(rows) < 2 or len({isinstance(row.label, bool) for row in rows}) > 1:
        raise UserError(
            f"{path} needs at least two lines, and all labels must be of one kind, true/false or "
            f"scores. Fix the file: {_FORM}"
        )
    items = []
    for n, row in enumerate(rows, 1):
        label = str(row.label).lower() if isinstance(row.label, bool) else f"{row.label:g}"
        tags = _tags(HUMAN, human=label, base=f"{HUMAN}/{n}", scenario=f"{HUMAN}/{n}")
        items.append(_item(f"{HUMAN}:{n}", row.task, row.text, tags))
    return items


def _item(name: str, task: str, text: str, tags: dict[str, str]) -> Item:
    (message,) = prompt(ONE).render({"task": task, "said": "", "response": text})
    defaults = {"phase": "single", "family": CONTROL_FAMILY, "text": "0", "label": NO_LABEL}
    return Item(id=name, prompt=message.content, tags={"repeat": "0", **defaults, **tags})


def _tags(check: str, **tags: str) -> dict[str, str]:
    return {"check": check, "probe": "", "human": "", **tags}
