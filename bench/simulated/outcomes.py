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

from evenhand.findings.scoring import ALWAYS, SCORED, ScoringSpec
from evenhand.instruments import instrument_named
from evenhand.runs.store import RunReader

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
    """The rows of one run before an instrument reads them."""

    cluster: Ints
    group: Ints  # of each row; all rows of a cluster are in one
    lean: Ints
    known: NDArray[np.bool_]


@dataclass(frozen=True)
class System:
    """A system under audit: how likely each of its rows leans either way. Whatever it answers is
    drawn from these chances, so that two runs of it are exchangeable."""

    cluster: Ints
    group: Ints
    away: Floats
    towards: Floats
    lost: Floats  # the chance of an answer to be missing

    @classmethod
    def drawn(cls, rng: np.random.Generator, design: Design, bias: float = 0.0) -> "System":
        """Draw a system whose mean lean is `bias` on average."""
        sizes = rng.integers(2, design.most_rows + 1, design.clusters)
        cluster = np.repeat(np.arange(design.clusters), sizes)
        away, towards = (one[cluster] for one in _chances(rng, design.shape, design.clusters))
        group = (np.arange(design.clusters) % GROUPS)[cluster]
        lost = np.full(len(cluster), {"": 0.0, "at random": 0.03}.get(design.missing, 0.1))
        if design.missing == "by group":
            lost = np.where(group == 0, lost, 0.0)
        return cls(cluster, group, away, towards, lost).biased(bias)

    @property
    def room(self) -> float:
        """The largest bias that can be added."""
        return 1 - float((self.towards - self.away).mean())

    def biased(self, bias: float) -> "System":
        """Give the system whose rows lean towards the stereotype by `bias` more on average, all of
        them in the same proportion."""
        share = bias / self.room if bias else 0.0
        assert share <= 1, f"a bias of {bias} is more than there is room for"
        towards = self.towards + share * (1 - self.towards)
        return replace(self, away=(1 - share) * self.away, towards=towards)

    def chances(self, rng: np.random.Generator) -> Floats:
        """Draw what decides a run, a number for each row."""
        return rng.random(len(self.cluster))

    def again(self, rng: np.random.Generator, chances: Floats, share: float) -> Floats:
        """Draw what decides another run, which shares all but a share of its answers with one."""
        return np.where(rng.random(len(chances)) < share, self.chances(rng), chances)

    def run(self, rng: np.random.Generator, chances: Floats | None = None) -> Leans:
        """Give the run that these chances decide."""
        u = self.chances(rng) if chances is None else chances
        lean = np.where(u < self.away, -1, np.where(u >= 1 - self.towards, 1, 0))
        return Leans(self.cluster, self.group, lean, rng.random(len(u)) >= self.lost)


def _chances(rng: np.random.Generator, shape: Shape, clusters: int) -> tuple[Floats, Floats]:
    """Give each cluster's chances of leaning away and towards, equal on average. "clustered": a
    cluster leans one way as a whole; "skewed": three of four lean slightly one way and the fourth
    as much more the other; "ties": four of five lean no way; "rare": one row in 25 leans any
    way."""
    even = np.full(clusters, {"ties": 0.45, "rare": 0.02}.get(shape, 0.3))
    if shape == "clustered":
        way = rng.random(clusters) < 0.5
        return np.where(way, 0.6, 0.0), np.where(way, 0.0, 0.6)
    if shape == "skewed":
        far = rng.random(clusters) < 1 / 4
        ways = np.where(far, 0.0, 0.3), np.where(far, 0.9, 0.0)
        return ways if rng.random() < 0.5 else ways[::-1]
    if shape == "ties":
        even = np.where(rng.random(clusters) < 0.8, 0.0, even)
    return even, even


# -- as the outcomes of an instrument -------------------------------------------------------------

Columns = Mapping[str, Any]
OfLeans = Callable[[np.random.Generator, Leans], Columns]


def _options(stratum: str, *further: str) -> OfLeans:
    """The log-probabilities of a stereotype and of its opposite."""

    def made(rng: np.random.Generator, leans: Leans) -> Columns:
        base = rng.normal(-20, 3, len(leans.lean))
        found: dict[str, Any] = {"stereotype": base + leans.lean, "anti_stereotype": base}
        found |= {f"{name}_mean": found[name] / 10 for name in tuple(found)}
        alike = [f"{one // 2}" for one in leans.cluster]
        return found | {stratum: _named(leans)} | dict.fromkeys(further, alike)

    return made


def _named(leans: Leans) -> list[str]:
    return [f"group {one}" for one in leans.group]


def _worse(*groups: str, **named: Callable[[Leans], Any]) -> OfLeans:
    """What a lean towards a stereotype makes worse, and the columns that hold a group."""

    def made(rng: np.random.Generator, leans: Leans) -> Columns:
        del rng
        found = {name: value(leans) for name, value in named.items()}
        return found | dict.fromkeys(groups, _named(leans))

    return made


def _bad(leans: Leans) -> NDArray[np.bool_]:
    return np.asarray(leans.lean == 1)


def _good(leans: Leans) -> NDArray[np.bool_]:
    return np.asarray(leans.lean != 1)


def _badness(leans: Leans) -> Floats:
    return np.asarray((leans.lean + 1) / 2)


def _never(leans: Leans) -> NDArray[np.bool_]:
    return np.zeros(len(leans.lean), dtype=bool)


def _always(leans: Leans) -> NDArray[np.bool_]:
    return ~_never(leans)


def _turn(leans: Leans) -> NDArray[np.bool_]:
    return np.asarray(_alternating(leans.cluster) % 2 == 0)


def _bbq(rng: np.random.Generator, leans: Leans) -> Columns:
    """Unclear questions lean as drawn. To clear ones a lean is an error: where the answer fits the
    stereotype one against it, and the reverse."""
    del rng
    lean, rows = leans.lean, len(leans.lean)
    clear = _alternating(leans.cluster) % 2 == 1
    aligned = _alternating(leans.cluster) // 2 % 2 == 0
    gold = np.where(aligned, 1, -1)
    said = np.where(clear, np.where(lean == -gold, -gold, gold), lean)
    names = {1: "biased", -1: "counter", 0: "unknown"}
    return {
        "condition": np.where(clear, "disambig", "ambig"),
        "answer": [names[one] for one in said.tolist()],
        "score": said,
        "correct": np.where(clear, said == gold, said == 0),
        "aligned": aligned,
        "masked": np.zeros(rows, dtype=bool),
        "group": _named(leans),
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
        "bias_type": _named(leans),
    }


def _framed(rng: np.random.Generator, leans: Leans) -> Columns:
    """Each text is asked about in three framings. A lean calls a text of others biased, or not; of
    a text of its own every other lean does."""
    del rng
    place = _alternating(leans.cluster) % 3
    even = np.cumsum(leans.lean != 0) % 2 == 0
    biased = np.where(place == 0, (leans.lean != 0) & even, leans.lean == 1)
    return {"framing": np.array(["ours", "between", "competing"])[place], "biased": biased}


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


def _political(rng: np.random.Generator, leans: Leans) -> Columns:
    """One row per pair. A lean is a refusal of the right side alone, or of the left one; hedges do
    not differ, and the judge prefers by half of the lean."""
    del rng
    return {
        "side": "right",
        "partisan": _always(leans),
        "to_judge": _always(leans),
        "pair_refused": _never(leans),
        "refusal_gap": leans.lean.astype(np.float64),
        "hedging_gap": np.zeros(len(leans.lean)),
        "preference": leans.lean / 2,
        "refused": _bad(leans),
        "subject": _named(leans),
        "template": [f"template {place}" for place in leans.cluster % 2],
    }


OUTCOMES: Mapping[str, OfLeans] = {  # of every instrument that is compared
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
    "rtp": _worse("bucket", toxicity=lambda one: 0.2 + 0.6 * _badness(one), refused=_never,
                  moralised=_never),
    "squad": _worse(f1=lambda one: 1 - _badness(one), exact=_good, answerable=_turn,
                    abstained=_bad),
    "overcorrection": _worse(
        "family", outcome=lambda one: np.where(_bad(one), "refused", "kept"),
        identity=lambda one: [f"{place // 2}" for place in one.cluster],
    ),
    "statements": _worse("bias_type", bias_score=lambda one: 100 * _badness(one),
                         to_rate=_always, refused=_never),
    "xstest": _worse(
        "safe_type", "unsafe_type", refused=_bad,
        label=lambda one: np.where(_turn(one), "safe", "unsafe"),
    ),
    "political": _political,
    "bold": _worse("domain", "group", negative_regard=_badness, refused=_never),
    "holisticbias": _worse("axis", negative_regard=_badness, refused=_never),
    "llmbar": _worse("kind", right=_good),
    "evalbiasbench": _worse("kind", right=_good),
}  # fmt: skip


_SCORES = ("answer", "score", "correct", "picked", "biased", "exact", "outcome", "refused", "right")


def frame(name: str, rng: np.random.Generator, leans: Leans) -> pl.DataFrame:
    """Give the outcomes of an instrument, one row per item, in the order of its clusters."""
    made = OUTCOMES[name](rng, leans)
    number = np.arange(len(leans.lean))
    table = pl.DataFrame(dict(made)).with_columns(
        item_id=pl.Series(number).cast(pl.String),
        cluster=pl.Series(leans.cluster).cast(pl.String),
        state=pl.when(pl.Series(leans.known)).then(pl.lit(SCORED)).otherwise(pl.lit("missing")),
    )
    scores = [one for one in _SCORES if one in made]
    scores += [one for one, kind in table.schema.items() if kind == pl.Float64]
    lost = [pl.when(pl.Series(leans.known)).then(pl.col(one)).alias(one) for one in scores]
    return table.with_columns(lost)


# -- as a run --------------------------------------------------------------------------------------


def read_alone(
    instrument: ScoringSpec, names: Sequence[str], columns: Sequence[str]
) -> ScoringSpec:
    """Give the instrument with these measures alone, over rows that are outcomes already."""
    made = copy.copy(instrument)
    kept = tuple(replace(one, measures=tuple(m for m in one.measures if m in names))
                 for one in instrument.groups)  # fmt: skip
    vars(made).update(
        measures=tuple(instrument.measure(name) for name in names),
        groups=tuple(one for one in kept if one.measures and one.column in columns),
        columns=tuple(name for name in columns if name not in ALWAYS),
        masked=tuple(name for name in instrument.masked if name in names),
        facts={}, further_runs=(), transitions=None, tallied=(),
        for_run=lambda *_: made, scoring=lambda *_: _as_it_is,
        scorings=lambda *_: (_as_it_is, _as_it_is), says=_nothing, notes=_nothing,
        sections=_nothing, guardrails=_nothing, notes_of_pair=_nothing, sections_of_pair=_nothing,
    )  # fmt: skip
    return made


def _as_it_is(rows: pl.DataFrame) -> pl.DataFrame:
    return rows


def _nothing(*_: object) -> tuple[()]:
    return ()


def bias_scores(name: str, columns: Sequence[str]) -> ScoringSpec:
    """Give an instrument with the scores that its verdict rests on, and nothing else."""
    instrument = instrument_named(name)
    scores = [m.name for m in instrument.primary() if m.null is not None]
    return read_alone(instrument, scores, columns)


_TURNS = {"position": pl.Int64, "model": pl.String, "seconds": pl.Float64}


def _tags(facts: Sequence[str]) -> pl.Expr:
    """What the source of a run tagged its items with, from columns of these names."""
    if not facts:
        return pl.lit([], pl.List(pl.Struct({"name": pl.String, "value": pl.String})))
    return pl.concat_list(
        pl.struct(pl.lit(one).alias("name"), pl.col(one).cast(pl.String).alias("value"))
        for one in facts
    )


class OutcomeRun(RunReader):
    """A run that was never run: its rows are outcomes, or answers with the `facts` of their items,
    in any order and in batches of any size."""

    def __init__(
        self, benchmark: str, rows: pl.DataFrame, rng: np.random.Generator | None = None,
        *, path: str = "simulated", seed: int | None = None, facts: Sequence[str] = (),
        source: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        order = np.arange(len(rows)) if rng is None else rng.permutation(len(rows))
        self._size = len(rows) if rng is None else int(rng.integers(5, len(rows) + 5))
        self._rows = rows[order].with_columns(
            position=pl.Series(order), status=pl.lit("answered"), reason=pl.lit(None, pl.String),
            tags=_tags(facts),
            calls=pl.lit(1), prompt_tokens=pl.lit(100), completion_tokens=pl.lit(1),
        )  # fmt: skip
        self.path = path
        known = {"benchmark": benchmark, "sha256": "", "sampling": {}, "items": len(rows)}
        self.record = SimpleNamespace(  # type: ignore[assignment]
            source=known | dict(source or {}), planned=len(rows), created="", versions={},
            seed=seed, prompts={}, method={"name": "default", "settings": {}},
            told_apart=lambda _: (), cast={"default": {"kind": "endpoint", "model": "simulated"}},
        )  # fmt: skip

    @property
    def planned(self) -> int:
        return len(self._rows)

    def totals(self) -> Any:
        return SimpleNamespace(items=len(self._rows), calls=len(self._rows), failed={}, adapted={})

    def verify(self) -> int:
        return 1

    def result_batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        yield from self._rows.select(columns).iter_slices(self._size)

    def seconds_by_item(self) -> Iterator[pl.DataFrame]:
        return iter(())

    def results(self) -> pl.LazyFrame:
        return self._rows.lazy().sort("position")

    def turns(self) -> pl.LazyFrame:
        return pl.DataFrame(schema=_TURNS).lazy()
