"""Outcomes of audits whose truth is known, for every instrument that has a bias score.

An audit has clusters of alike rows. Each row leans towards a stereotype (1), away from it (−1) or
neither (0); `OUTCOMES` says how an instrument's own outcomes look for such rows. Reports,
comparisons and gates then read them as they read a run.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenhand.findings.scored import ALWAYS, SCORED, Scored
from evenhand.instruments import instrument_named
from evenhand.store import RunReader

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Shape = str
SHAPES: tuple[Shape, ...] = ("even", "clustered", "skewed", "ties", "rare")
MISSING = ("", "at random", "", "by group")
GROUPS = 3


@dataclass(frozen=True)
class Design:
    """How an audit without bias looks: its size, the shape of its scores, and what is missing."""

    clusters: int = 30
    most_rows: int = 4  # clusters have two rows at least, and up to so many
    shape: Shape = "even"
    missing: str = ""

    @classmethod
    def numbered(cls, number: int) -> "Design":
        """Give the design of the audit with this number: all sizes, shapes and ways to lose
        answers in turn."""
        return cls(
            clusters=(8, 16, 30, 60)[number % 4],
            most_rows=(2, 4)[number // 4 % 2],
            shape=SHAPES[number % len(SHAPES)],
            missing=MISSING[number // 3 % len(MISSING)],
        )


@dataclass(frozen=True)
class Leans:
    """The rows of one audit before an instrument reads them."""

    cluster: Ints
    group: Ints  # of each row; all rows of a cluster are in one
    lean: Ints
    known: NDArray[np.bool_]

    def again(self, rng: np.random.Generator, share: float, bias: float = 0.0) -> "Leans":
        """Give another run over the same items: a share of its answers is drawn anew from the
        other answers of the same audit, and so many lean towards the stereotype by `bias` more."""
        other = rng.permutation(self.lean)
        lean = np.where(rng.random(len(other)) < share, other, self.lean)
        return replace(self, lean=pushed(rng, lean, bias))


def drawn(rng: np.random.Generator, design: Design, bias: float = 0.0) -> Leans:
    """Draw an audit whose mean lean is `bias` on average, over any number of clusters."""
    sizes = rng.integers(2, design.most_rows + 1, design.clusters)
    cluster = np.repeat(np.arange(design.clusters), sizes)
    lean = pushed(rng, _without_bias(rng, design.shape, design.clusters, cluster), bias)
    group = (np.arange(design.clusters) % GROUPS)[cluster]
    chance = {"": 0.0, "at random": 0.03}.get(design.missing, 0.1) * np.ones(len(lean))
    if design.missing == "by group":
        chance = np.where(group == 0, chance, 0.0)
    return Leans(cluster, group, lean, rng.random(len(lean)) >= chance)


def _without_bias(rng: np.random.Generator, shape: Shape, clusters: int, cluster: Ints) -> Ints:
    """Leans that are 0 on average. "clustered": a cluster leans one way as a whole; "skewed": three
    clusters of four lean slightly one way and the fourth as much more the other; "ties": four in
    five clusters lean no way at all; "rare": one row in 25 leans any way."""
    rows = len(cluster)
    if shape == "skewed":
        way = rng.choice([-1, 1])
        far = rng.random(clusters) < 1 / 4
        chance = np.where(far, 0.9, 0.3)[cluster]
        return np.where(rng.random(rows) < chance, np.where(far, 1, -1)[cluster] * way, 0)
    leaning = {"ties": 0.9, "rare": 0.04}.get(shape, 0.6)
    sign = rng.choice([-1, 1], clusters)[cluster] if shape == "clustered" else _signs(rng, rows)
    lean = np.where(rng.random(rows) < leaning, sign, 0)
    if shape == "ties":
        lean[(rng.random(clusters) < 0.8)[cluster]] = 0
    return lean


def _signs(rng: np.random.Generator, rows: int) -> Ints:
    return rng.choice(np.array([-1, 1]), rows)


def pushed(rng: np.random.Generator, lean: Ints, bias: float) -> Ints:
    """Turn so many rows towards the stereotype that the mean rises by `bias` on average."""
    room = 1 - float(lean.mean()) if len(lean) else 1.0
    return np.where(rng.random(len(lean)) < bias / max(room, 1e-9), 1, lean)


# -- as the outcomes of an instrument -------------------------------------------------------------

Columns = Mapping[str, Any]
OfLeans = Callable[[np.random.Generator, Leans], Columns]


def _options(stratum: str | None, *further: str, per_token: bool = False) -> OfLeans:
    """The log-probabilities of a stereotype and of its opposite."""

    def made(rng: np.random.Generator, leans: Leans) -> Columns:
        base = rng.normal(-20, 3, len(leans.lean))
        found: dict[str, Any] = {"stereotype": base + leans.lean, "anti_stereotype": base}
        found |= {f"{name}_mean": found[name] / 10 for name in tuple(found)}
        names = [f"group {one}" for one in leans.group]
        return found | ({stratum: names} if stratum else {}) | dict.fromkeys(further, names)

    del per_token
    return made


def _bbq(rng: np.random.Generator, leans: Leans) -> Columns:
    """Unclear questions lean as drawn. To clear ones a lean is an error in its direction: of a
    question whose answer fits the stereotype only one against it can be made, and the reverse."""
    lean, rows = leans.lean, len(leans.lean)
    clear = _alternating(leans.cluster) % 2 == 1
    aligned = _alternating(leans.cluster) // 2 % 2 == 0
    gold = np.where(aligned, 1, -1)
    slip = (lean == -gold) & (rng.random(rows) < 0.5)
    said = np.where(clear, np.where(slip, -gold, gold), lean)
    names = {1: "biased", -1: "counter", 0: "unknown"}
    return {
        "condition": np.where(clear, "disambig", "ambig"),
        "answer": [names[one] for one in said.tolist()],
        "score": said,
        "correct": np.where(clear, said == gold, said == 0),
        "aligned": aligned,
        "masked": np.zeros(rows, dtype=bool),
        "group": [f"group {one}" for one in leans.group],
        "category": [f"category {one % 2}" for one in leans.group],
    }


def _alternating(cluster: Ints) -> Ints:
    """The place of each row within its cluster."""
    first = np.searchsorted(cluster, cluster)
    return np.arange(len(cluster)) - first + cluster


def _picked(rng: np.random.Generator, leans: Leans) -> Columns:
    del rng
    names = {1: "stereotype", -1: "anti_stereotype", 0: "unrelated"}
    return {
        "picked": [names[one] for one in leans.lean.tolist()],
        "bias_type": [f"group {one}" for one in leans.group],
    }


def _framed(rng: np.random.Generator, leans: Leans) -> Columns:
    """Each text is asked about in three framings; a lean changes the answer to another's text."""
    place = _alternating(leans.cluster) % 3
    framing = np.array(["ours", "between", "competing"])[place]
    usual = (rng.random(int(leans.cluster.max()) + 1) < 0.4)[leans.cluster]
    biased = np.where(leans.lean == 0, usual, leans.lean > 0)
    fair = rng.random(len(biased)) < 0.5  # of what a model says of its own text nothing hangs on it
    return {"framing": framing, "biased": np.where(framing == "ours", np.where(
        leans.lean == 0, usual, fair), biased)}  # fmt: skip


def _spoken(rng: np.random.Generator, leans: Leans) -> Columns:
    """A lean is "he" for what is said of men, and "she" for what is said of women."""
    men = leans.cluster % 2 == 0
    base = rng.normal(-20, 3, len(leans.lean))
    he = leans.lean * np.where(men, 1, -1)
    return {"female": base, "male": base + he, "about": np.where(men, "men", "women")}


def _squares(rng: np.random.Generator, leans: Leans) -> Columns:
    base = rng.normal(-20, 3, len(leans.lean))
    return {"first_own": base + leans.lean, "second_own": base, "first_other": base,
            "second_other": base, "kind": "world"}  # fmt: skip


OUTCOMES: Mapping[str, OfLeans] = {
    "bbq": _bbq,
    "crows_pairs": _options("bias_type"),
    "stereoset": _options("bias_type", "task"),
    "winobias": _options("kind"),
    "subtler_biases": _options("bias_type"),
    "subtler_choices": _picked,
    "framings": _framed,
    "gest": _spoken,
    "seegull": _squares,
    "redditbias": _options("dimension", "swap"),
}


def frame(name: str, rng: np.random.Generator, leans: Leans) -> pl.DataFrame:
    """Give the outcomes of an instrument, one row per item, in the order of its clusters."""
    made = OUTCOMES[name](rng, leans)
    number = np.arange(len(leans.lean))
    table = pl.DataFrame(dict(made)).with_columns(
        item_id=pl.Series(number).cast(pl.String),
        cluster=pl.Series(leans.cluster).cast(pl.String),
        state=pl.when(pl.Series(leans.known)).then(pl.lit(SCORED)).otherwise(pl.lit("missing")),
    )
    scores = [one for one in ("answer", "score", "correct", "picked", "biased") if one in made]
    scores += [one for one, kind in table.schema.items() if kind == pl.Float64]
    lost = [pl.when(pl.Series(leans.known)).then(pl.col(one)).alias(one) for one in scores]
    return table.with_columns(lost)


# -- as a run --------------------------------------------------------------------------------------


def read_alone(instrument: Scored, names: Sequence[str], columns: Sequence[str]) -> Scored:
    """Give the instrument with these measures alone, over rows that are outcomes already."""
    made = copy.copy(instrument)
    kept = tuple(replace(one, measures=tuple(m for m in one.measures if m in names))
                 for one in instrument.groups)  # fmt: skip
    vars(made).update(
        measures=tuple(instrument.measure(name) for name in names),
        groups=tuple(one for one in kept if one.measures),
        columns=tuple(name for name in columns if name not in ALWAYS),
        masked=tuple(name for name in instrument.masked if name in names),
        facts={}, further_runs=(), transitions=None, tallied=(),
        for_run=lambda *_: made, scoring=lambda *_: _as_it_is, says=_nothing, notes=_nothing,
        sections=_nothing, red_lines=_nothing,
    )  # fmt: skip
    return made


def _as_it_is(rows: pl.DataFrame) -> pl.DataFrame:
    return rows


def _nothing(*_: object) -> tuple[()]:
    return ()


def bias_scores(name: str, columns: Sequence[str]) -> Scored:
    """Give an instrument with the scores that its verdict rests on, and nothing else."""
    instrument = instrument_named(name)
    scores = [m.name for m in instrument.primary() if m.null is not None]
    return read_alone(instrument, scores, columns)


class OutcomeRun(RunReader):
    """A run that was never run: its rows are outcomes, in any order and in batches of any size."""

    def __init__(
        self, benchmark: str, rows: pl.DataFrame, rng: np.random.Generator | None = None,
        *, path: str = "simulated", seed: int | None = None,
    ) -> None:  # fmt: skip
        order = np.arange(len(rows)) if rng is None else rng.permutation(len(rows))
        self._size = len(rows) if rng is None else int(rng.integers(5, len(rows) + 5))
        self._rows = rows[order].with_columns(
            position=pl.Series(order), status=pl.lit("answered"), reason=pl.lit(None, pl.String),
            tags=pl.lit([], pl.List(pl.Struct({"name": pl.String, "value": pl.String}))),
            calls=pl.lit(1), prompt_tokens=pl.lit(100), completion_tokens=pl.lit(1),
        )  # fmt: skip
        self.path = path
        source = {"benchmark": benchmark, "sha256": "", "sampling": {}, "items": len(rows)}
        self.record = SimpleNamespace(  # type: ignore[assignment]
            source=source, planned=len(rows), created="", versions={}, seed=seed, prompts={},
            method={"name": "default", "settings": {}}, cast={"default": {"model": "simulated"}},
            told_apart=lambda _: (),
        )  # fmt: skip

    @property
    def planned(self) -> int:
        return len(self._rows)

    def totals(self) -> Any:
        return SimpleNamespace(items=len(self._rows), calls=len(self._rows))

    def verify(self) -> int:
        return 1

    def result_batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        yield from self._rows.select(columns).iter_slices(self._size)

    def seconds_by_item(self) -> Iterator[pl.DataFrame]:
        return iter(())
