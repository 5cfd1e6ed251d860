"""Whether the cheaper designs hold what they promise, where the truth is known. No endpoint.

    EVENHAND_DATA=… python -m bench.cheaper                     # or `make bench-cheaper`
    EVENHAND_DATA=… python -m bench.cheaper --simulations 100 --splits 20 --texts 800

Screen: labelled texts that the offline scorer was not trained on. A part of a set gives the
cut-offs; is the missed harm of the others as promised, also of each group?
Sequence: UnifiedQA's answers to BBQ, templates drawn anew. Does any interval of a run miss the
truth, however often one looks; and when is the question decided, beside a run of all templates?
Predictions: the same texts, a few of them labelled. Is the mean in the interval, and how wide is it
beside that of the labels alone?
"""

import argparse
import asyncio
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bench.simulated.population import outcomes
from evenhand.experiments.config import data_folder
from evenhand.instruments.scorer.sets import ToxicitySets, held_out
from evenhand.scorers.base import score_all
from evenhand.scorers.kinds import offline
from evenhand.statistics._shared import t_quantile
from evenhand.statistics.prediction_powered import chances_to_label, powered_mean
from evenhand.statistics.screening import SMALL, Screen, calibrate, has_drifted
from evenhand.statistics.sequences import log_wealth

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
CONFIDENCE = 0.95
# The other texts of a split are a sample too: that their share is kept in 95 of 100 splits asks for
# more than that the share of all texts is.
SURER = 0.99
NAN = float("nan")
LIMIT = float(np.log(2 / (1 - CONFIDENCE)))  # the wealth at which one side is refuted


# -- screen ----------------------------------------------------------------------------------------


# By set, what is asked of the offline scorer.
SETS = {"hatecheck": "hate", "toxigen": "hate", "identity_templates": "toxicity",
        "davidson": "toxicity"}  # fmt: skip
TRAINED_ON = ("toxigen", "davidson")  # but for a fifth


@dataclass(frozen=True)
class Texts:
    """Labelled texts with the scorer's numbers: whether they are harmful, and about whom."""

    label: NDArray[np.bool_]
    score: Floats  # NaN where there is none
    other: Floats  # of the other attribute
    group: list[str | None]

    def part(self, places: Ints) -> "Texts":
        groups = [self.group[place] for place in places]
        return Texts(self.label[places], self.score[places], self.other[places], groups)


def scored_texts(name: str, most: int) -> Texts:
    """At most so many texts of a set, drawn at random; of a set that the scorer was trained on,
    only of the fifth that was held out."""
    folder = data_folder()
    rows = ToxicitySets(local=folder.local, cache=folder.cache).table(name)
    if name in TRAINED_ON:
        unseen = [held_out(text) for text in rows["text"]]
        rows = rows.filter(pl.Series(unseen, dtype=pl.Boolean))
    rows = rows.sample(min(most, len(rows)), seed=1, shuffle=True)
    done = asyncio.run(score_all(offline(), rows["text"].to_list()))
    asked = (SETS[name], "toxicity" if SETS[name] == "hate" else "hate")
    score, other = (np.array(done.values(one), dtype=float) for one in asked)
    return Texts(
        rows["label"].to_numpy(), score, other, [one.lower() or None for one in rows["group"]]
    )


def missed(screen: Screen, texts: Texts, group: object) -> float:
    """The share of harmful texts, of one group or of all, that the screen calls clean."""
    mine = np.array([group is None or one == group for one in texts.group])
    return float((texts.score[texts.label & mine] < screen.low).mean())


def screens(name: str, texts: Texts, splits: int) -> tuple[float, float]:
    """Prints a line a bound; gives the least share of splits in which a promise held for the other
    texts, and the least share of draws in which all promises held at once for a known whole."""
    least, whole, size = 1.0, 1.0, len(texts.label)
    for alpha in (0.01, 0.05, 0.10):
        rng, judged = np.random.default_rng(7), list[float]()
        held, drawn = dict[Hashable, list[bool]](), list[bool]()
        for _ in range(splits):
            order = rng.permutation(size)
            one, others = texts.part(order[: size * 2 // 5]), texts.part(order[size * 2 // 5 :])
            screen = calibrate(one.score, one.label, one.group, missed=alpha, confidence=SURER)
            for group in _promised(screen):
                held.setdefault(group, []).append(missed(screen, others, group) <= alpha)
            again = texts.part(rng.integers(size, size=size // 2))
            screen = calibrate(again.score, again.label, again.group, missed=alpha,
                               false_alarms=alpha, confidence=CONFIDENCE)  # fmt: skip
            judged.append(screen.judged(texts.score))
            drawn.append(all(missed(screen, texts, one) <= alpha for one in _promised(screen)))
        shares = {group: float(np.mean(one)) for group, one in held.items()}
        least, whole = min(least, *shares.values(), 1.0), min(whole, float(np.mean(drawn)))
        worst = min(shares, key=lambda group: shares[group], default=None)
        print(
            f"screen {name} alpha={alpha:g}: held on the others {shares.get(None, NAN):.3f} for "
            f"all texts, at least {shares.get(worst, NAN):.3f} for each of "
            f"{max(len(shares) - 1, 0)} groups ({worst}); all at once, of a known whole, "
            f"{np.mean(drawn):.3f}; to the judge {np.mean(judged):.3f}",
            flush=True,
        )
    return least, whole


def _promised(screen: Screen) -> list[Hashable]:
    """All texts, and each group that is promised something by itself."""
    return [
        one.group
        for one in screen.promises
        if one.kind == "missed harm" and one.guaranteed and one.group != SMALL
    ]


def elsewhere(one: Texts, other: Texts) -> None:
    """What no promise is about: cut-offs of one set, used on another, and whether that is seen."""
    screen = calibrate(one.score, one.label, one.group, missed=0.05)
    drift = has_drifted(one.score, [other.score])
    print(
        f"screen of HateCheck, alpha=0.05, on ToxiGen: missed {missed(screen, other, None):.3f}; "
        f"drift seen: {drift.drifted} (p={drift.p_value:.2g})",
        flush=True,
    )


# -- sequence --------------------------------------------------------------------------------------

MARGIN, TEMPLATES, EACH, BLOCK = 0.05, 343, 4, 10
AGAIN = 0.10  # of the answers are drawn again by a second run of the same model
DESIGNS = {"one run": (-1.0, 1.0), "two runs": (-2.0, 2.0)}


@dataclass(frozen=True)
class Templates:
    """The scores (1, 0, −1) of a model's answers to the unclear questions of each template."""

    scores: Floats  # a row a template, as many as it has
    sizes: Ints

    @classmethod
    def of_bbq(cls) -> "Templates":
        known = outcomes("race").filter(
            pl.col("condition") == "ambig", pl.col("score").is_not_null()
        )
        rows = known.group_by("cluster", maintain_order=True).agg("score")["score"].to_list()
        sizes = np.array([len(row) for row in rows])
        scores = np.zeros((len(rows), sizes.max()))
        for place, row in enumerate(rows):
            scores[place, : len(row)] = row
        return cls(scores, sizes)

    @property
    def mean(self) -> float:
        return float((self.scores.sum(axis=1) / self.sizes).mean())

    def values(self, design: str, effect: float, runs: int, rng: np.random.Generator) -> Floats:
        """A row a run, a value a template: means of 4 answers, or of their changes. On average they
        are `effect`: templates have their sign turned, or some answers become stereotyped."""
        which = rng.integers(len(self.sizes), size=(runs, TEMPLATES))
        first = self.answers(which, rng)
        if design == "one run":
            turned = rng.random(which.shape) >= (1 + effect / self.mean) / 2
            return np.asarray(np.where(turned, -1.0, 1.0) * first.mean(axis=2))
        anew = rng.random(first.shape) < AGAIN
        second = np.where(anew, self.answers(which, rng), first)
        second[rng.random(first.shape) < effect / (1 - self.mean)] = 1.0
        return np.asarray((second - first).mean(axis=2))

    def answers(self, which: Ints, rng: np.random.Generator) -> Floats:
        """Answers to four questions of each of these templates."""
        column = (rng.random((*which.shape, EACH)) * self.sizes[which][..., None]).astype(np.int64)
        return np.asarray(self.scores[which[..., None], column])


@dataclass(frozen=True)
class Looked:
    """What became of many runs: whether an interval missed, when each stopped, and as what."""

    missed: NDArray[np.bool_]
    beyond: NDArray[np.bool_]
    within: NDArray[np.bool_]
    stopped: Ints  # templates

    @classmethod
    def at_blocks(
        cls, values: Floats, truth: Floats, ends: tuple[float, float], of: int | None
    ) -> "Looked":
        def refuted(mean: float, sign: int) -> NDArray[np.bool_]:
            sides = (sign * ends[0], sign * ends[1])
            won = log_wealth(sign * values, sign * mean, within=(min(sides), max(sides)), of=of)
            return np.logical_or.accumulate(won >= LIMIT, axis=1)

        above, below = refuted(MARGIN, 1), refuted(-MARGIN, -1)
        inside = refuted(MARGIN, -1) & refuted(-MARGIN, 1)
        looks = np.arange(TEMPLATES) % BLOCK == BLOCK - 1
        looks[-1] = True
        decided = (above | below | inside) & looks
        first = np.where(decided.any(axis=1), decided.argmax(axis=1), TEMPLATES - 1)
        at = (np.arange(len(values)), first)
        wrong = np.array([
            any((log_wealth(s * row, s * t, within=(-max(ends), max(ends)), of=of) >= LIMIT).any()
                for s in (1, -1))
            for row, t in zip(values, truth, strict=True)
        ])  # fmt: skip
        return cls(wrong, (above | below)[at], inside[at], first + 1)


def sequences(simulations: int) -> tuple[float, list[float], float]:
    """Prints a line a design and effect; gives the least coverage, the calls saved by a comparison
    of two runs at each effect, and the largest share of wrong verdicts."""
    templates, least, saved, wrong = Templates.of_bbq(), 1.0, [], 0.0
    for design, ends in DESIGNS.items():
        for margins in (0, 1, 2):
            rng = np.random.default_rng([margins, *design.encode()])
            effect = margins * MARGIN
            values = templates.values(design, effect, simulations, rng)
            for of in (None, TEMPLATES):
                truth = np.full(simulations, effect) if of is None else values.mean(axis=1)
                found = Looked.at_blocks(values, truth, ends, of)
                false = found.beyond & (np.abs(truth) <= MARGIN + 1e-9)
                false |= found.within & (np.abs(truth) > MARGIN + 1e-9)
                least, wrong = min(least, 1 - found.missed.mean()), max(wrong, false.mean())
                saves = 1 - found.stopped.mean() / TEMPLATES
                if design == "two runs" and of is None:
                    saved.append(float(saves))
                whose = "any templates" if of is None else "these 343"
                print(
                    f"sequence {design}, {whose}, effect {margins} margins: all intervals hold "
                    f"{1 - found.missed.mean():.3f}, beyond {found.beyond.mean():.3f}, within "
                    f"{found.within.mean():.3f}, wrong {false.mean():.3f}, calls saved {saves:.3f}",
                    flush=True,
                )
            print(f"  a fixed run of {TEMPLATES}: {_fixed(values)}", flush=True)
    return float(least), saved, float(wrong)


def _fixed(values: Floats) -> str:
    """The verdicts by t intervals at the full size, and what t would say at some look before."""
    n = np.arange(1, TEMPLATES + 1)
    mean = np.cumsum(values, axis=1) / n
    spread = np.maximum(np.cumsum(values**2, axis=1) - n * mean**2, 0) / np.maximum(n - 1, 1)
    reach = np.array([t_quantile(max(int(df), 1), 0.975) for df in n - 1]) * np.sqrt(spread / n)
    beyond, within = np.abs(mean) - reach >= MARGIN, np.abs(mean) + reach <= MARGIN
    looks = np.arange(2 * BLOCK - 1, TEMPLATES, BLOCK)
    peeked = beyond[:, looks].any(axis=1).mean()
    return (
        f"beyond {beyond[:, -1].mean():.3f}, within {within[:, -1].mean():.3f}; "
        f"t looked at after every block would ever say beyond in {peeked:.3f}"
    )


# -- predictions -----------------------------------------------------------------------------------

PEOPLE, LABELS = 2_000, (50, 100, 300)
JUDGES = {"right in 99 %": 0.99, "right in 95 %": 0.95, "right in 80 %": 0.80, "a coin": 0.50}


def predictions(texts: Texts, simulations: int) -> tuple[float, float, float, float]:
    """Prints a line a predictor and number of labels; gives least and largest coverage where a
    predictor errs at least ten times among the labels, the largest ratio of widths and its mean."""
    scored = ~np.isnan(texts.score)
    label, hate = texts.label[scored].astype(float), texts.score[scored]
    toxicity = texts.other[scored]
    covers, ratios, means = [], [], []
    for name, right, n in _settings():
        rng, hits, widths = np.random.default_rng([n, *name.encode()]), [], []
        outcome = hate if name == "a graded outcome" else label
        for _ in range(simulations):
            drawn = rng.integers(len(label), size=PEOPLE)
            y = outcome[drawn]
            if right is not None:
                f = np.where(rng.random(PEOPLE) < right, y, 1 - y)
            else:
                f = (toxicity if name == "a graded outcome" else hate)[drawn]
            at, chances = np.arange(n), None
            if name == "the offline scorer, active":
                chance = chances_to_label(np.sqrt(f * (1 - f)), n)
                at = np.flatnonzero(rng.random(PEOPLE) < chance)
                chances = chance[at]
            found = powered_mean(f, y[at], at, chances=chances)
            hits.append(found.low <= outcome.mean() <= found.high)
            widths.append(found.width_ratio)
        coverage = float(np.mean(hits))
        ratios.append(max(widths))
        means.append(float(np.mean(widths)))
        if right is None or n * (1 - right) >= 10:
            covers.append(coverage)
        print(
            f"predictions by {name}, {n} labels of {PEOPLE}: coverage {coverage:.3f}, width "
            f"{means[-1]:.3f} of labels alone on average, {ratios[-1]:.3f} at most",
            flush=True,
        )
    return min(covers), max(covers), max(ratios), float(np.mean(means))


# By what a scorer says of the texts that it is sure of and of the others: the share of the others,
# and how much of what it is sure of is harmful all the same.
SURE = {"sure at one in a million": (1e-6, 0.5), "0 or 1": (0.0, 1.0), "a word list": (0.0, 0.9)}
UNSURE = ((0.02, 0.05), (0.05, 0.03), (0.1, 0.03), (0.1, 0.06), (0.2, 0.03))


def sure_scorers(simulations: int) -> float:
    """Prints a line a scorer, setting and number of labels; gives the least coverage. Every scorer
    is sure that most texts are clean, and some of them are not."""
    covers = []
    for name, (sure, unsure) in SURE.items():
        for (share, missed), n in product(UNSURE, (60, 150)):
            rng, hits, widths = np.random.default_rng([n, *name.encode()]), 0, []
            for _ in range(simulations):
                others = rng.random(3_000) < share
                f = np.where(others, unsure, sure)
                y = (rng.random(3_000) < np.where(others, 0.5, missed)).astype(float)
                chance = chances_to_label(np.sqrt(f * (1 - f)), n)
                at = np.flatnonzero(rng.random(3_000) < chance)
                found = powered_mean(f, y[at], at, chances=chance[at])
                hits += found.low <= y.mean() <= found.high
                widths.append(min(1.0, found.high) - max(0.0, found.low))
            covers.append(hits / simulations)
            print(
                f"predictions by a scorer ({name}), {n} labels of 3000, unsure of {share:g}, "
                f"harmful among the sure {missed:g}: coverage {covers[-1]:.3f}, width "
                f"{np.mean(widths):.3f}",
                flush=True,
            )
    return min(covers)


def _settings() -> Iterator[tuple[str, float | None, int]]:
    others = ("the offline scorer", "the offline scorer, active", "a graded outcome")
    for n in LABELS:
        yield from ((name, right, n) for name, right in JUDGES.items())
        yield from ((name, None, n) for name in others)


def screened(splits: int, most: int) -> str:
    texts, kept = {}, list[tuple[float, float]]()
    for name in SETS:
        texts[name] = scored_texts(name, most)
        found = texts[name].label
        print(f"{name}: {len(found)} texts, {int(found.sum())} harmful", flush=True)
        kept.append(screens(name, texts[name], splits))
    elsewhere(texts["hatecheck"], texts["toxigen"])
    held, of_whole = (min(column) for column in zip(*kept, strict=True))
    return f" miss_held={held:.3f} miss_held_of_whole={of_whole:.3f}"


def sequenced(simulations: int) -> str:
    coverage, saved, wrong = sequences(simulations)
    saves = ",".join(f"{one:.2f}" for one in saved)
    return f" seq_coverage={coverage:.3f} seq_wrong={wrong:.3f} calls_saved={saves}"


def predicted(simulations: int, most: int) -> str:
    texts = scored_texts("hatecheck", most)
    low, high, widest, usual = predictions(texts, simulations)
    sure = sure_scorers(simulations)
    said = f" ppi_coverage={low:.3f}-{high:.3f} ppi_width={usual:.3f} ppi_widest={widest:.3f}"
    return f"{said} ppi_sure_coverage={sure:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--simulations", type=int, default=2_000, help="runs drawn at each effect")
    parser.add_argument("--splits", type=int, default=200, help="of the labelled texts")
    parser.add_argument("--texts", type=int, default=6_000, help="of each set at most")
    parts = ("screen", "sequence", "predictions")
    parser.add_argument("--only", choices=parts, action="append", help="one part; may be repeated")
    given = parser.parse_args()
    asked, said = given.only or parts, ""
    if "screen" in asked:
        said += screened(given.splits, given.texts)
    if "sequence" in asked:
        said += sequenced(given.simulations)
    if "predictions" in asked:
        said += predicted(given.simulations, given.texts)
    print(f"RESULT{said}")


if __name__ == "__main__":
    main()
