# ruff: noqa: T201
"""The scorer of regard on sets of others, none of which it was trained on or chosen by."""

import csv
import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from evenhand.scorers.regard import RegardScorer
from evenhand.statistics.metrics import scorer_intervals
from evenhand.statistics.metrics.scorer_quality import auc, spearman

# Said of each group in turn: what is thought of a group's name alone shows as a difference.
_SAME = ("{} works in the town hall.", "{} was late for the meeting.", "Everybody likes {}.",
         "{} stole a bicycle.", "I had lunch with {} yesterday.", "{} is known for being honest.",
         "People say that {} is dangerous.", "My new neighbour is {}.")  # fmt: skip
_REDDIT = {"religion1": "jews", "religion2": "muslims", "race": "black", "orientation": "lgbtq"}


class Text(NamedTuple):
    """A text that is to be scored, whether it speaks ill, and what it is alike with."""

    text: str
    ill: bool
    cluster: str
    kind: str = ""


def measure(data: Path, weights: Path) -> None:
    """Print every figure of the card that rests on sets of others."""
    scorer = RegardScorer(weights)
    print(scorer.name)
    rated = list(_rated(data))
    scores = _scored(scorer, [text for text, _, _ in rated])
    marks = [mark for _, mark, _ in rated]
    ends = scorer_intervals.spearman(scores, marks, [attribute for _, _, attribute in rated])
    rho = f"{spearman(scores, marks):.3f} {_said(ends)}"
    print(f"SeeGULL, offensiveness: n={len(rated):,} Spearman {rho}")
    seegull = [
        Text(text, mark >= 2, attribute)
        for text, mark, attribute in rated
        if mark >= 2 or mark <= 0
    ]
    _table("SeeGULL, offensive (2 or more) against not (0 or less)", scorer, seegull)
    reddit = list(_reddit(data))
    _table("RedditBias, a negative against a positive attribute", scorer, reddit)
    subtler = list(_subtler(data))
    _table("Subtler biases, a negative against a positive attribute", scorer, subtler)
    hate = list(_hatecheck(data))
    _table("HateCheck, hateful against not", scorer, hate)
    plain = [one for one in hate if one.kind.startswith(("derog", "ident"))]
    _table("HateCheck, derogation against neutral or positive statements", scorer, plain)
    for kind in ("negate_neg_nh", "negate_pos_h", "counter_quote_nh", "target_obj_nh"):
        mine = next(one.ill for one in hate if one.kind == kind)
        beside = [one for one in hate if one.kind == kind or one.ill != mine]
        _table(f"  {kind} against the other label", scorer, beside, ends=False)
    _wikipedia(data, scorer)
    _same_for_all(data, scorer)


def _table(name: str, scorer: RegardScorer, texts: list[Text], *, ends: bool = True) -> None:
    scores, ill = _scored(scorer, [one.text for one in texts]), [one.ill for one in texts]
    found = scorer_intervals.auc(scores, ill, [one.cluster for one in texts]) if ends else None
    above = [
        np.mean([score >= 0.5 for score, one in zip(scores, ill, strict=True) if one == label])
        for label in (True, False)
    ]
    print(f"{name}: n={len(texts):,}, ill {sum(ill):,}, AUC {auc(scores, ill):.3f} {_said(found)}; "
          f"above 0.5: {above[0]:.2f} of ill, {above[1]:.2f} of others")  # fmt: skip


_kept: dict[str, float] = {}


def _scored(scorer: RegardScorer, texts: list[str]) -> list[float]:
    """Each text once; one without words counts as 0.5, and hardly occurs."""
    new = [text for text in dict.fromkeys(texts) if text not in _kept]
    for text, one in zip(new, scorer.score_now(new), strict=True):
        _kept[text] = 0.5 if one is None else one
    return [_kept[text] for text in texts]


def _said(ends: scorer_intervals.IntervalEnds | None) -> str:
    return "" if ends is None else f"({ends.low:.3f} to {ends.high:.3f})"


def _rated(data: Path) -> Iterator[tuple[str, float, str]]:
    for row in _csv(data / "seegull/dataset/stereotypes_global_v2.csv.gz"):
        if row["Annotation1"]:
            text = f"{row['identity']} people are {row['attribute']}."
            yield text, float(row["mean offensiveness_score"]), row["attribute"]


def _reddit(data: Path) -> Iterator[Text]:
    for folder, group in _REDDIT.items():
        start = f"redditbias/data/{folder}/reddit_comments_{folder}_{group}_processed_phrase"
        rows = _csv(data / f"{start}_unbiased_testset_pos_attr_reduced.csv.gz")
        for place, row in enumerate(rows):
            two = [row[name] for name in ("comments", "comments_processed") if name in row]
            if len(two) == 2 and two[0] != two[1]:
                yield Text(two[0], True, f"{group} {place}")
                yield Text(two[1], False, f"{group} {place}")


def _subtler(data: Path) -> Iterator[Text]:
    for place, row in enumerate(_csv(data / "subtler_biases/dataset.csv.gz")):
        if row["type_category"] == "type1" and place % 4 == 0:
            negative = row["item_category"] == "negative"
            for name, ill in (("stereotype", negative), ("anti_stereotype", not negative)):
                yield Text(row["context"].replace("BLANK", row[name]), ill, row["stereotype"])


def _hatecheck(data: Path) -> Iterator[Text]:
    for row in _csv(data / "hatecheck/test_suite_cases.csv"):
        yield Text(
            row["test_case"], row["label_gold"] == "hateful", row["templ_id"], row["functionality"]
        )


def _wikipedia(data: Path, scorer: RegardScorer) -> None:
    for file in sorted((data / "bold/data/wikipedia").glob("*.json.gz")):
        with gzip.open(file) as stream:
            groups = json.load(stream)
        means = {}
        for group, titles in groups.items():
            texts = [text for said in titles.values() for text in said][:60]
            means[group] = float(np.mean(_scored(scorer, texts)))
        least, most = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
        domain = file.name.removesuffix("_wiki.json.gz")
        ends = f"{least} {means[least]:.3f} to {most} {means[most]:.3f}"
        print(f"Wikipedia, {domain}: mean {np.mean(list(means.values())):.3f}, {ends}")


def _same_for_all(data: Path, scorer: RegardScorer) -> None:
    people = {
        f"a {row['identity']} person"
        for row in _csv(data / "seegull/dataset/stereotypes_global_v2.csv.gz")
    }
    _moved("SeeGULL's identities", scorer, sorted(people))
    described: dict[str, list[str]] = {"": [], "dispreferred": []}
    axes = json.loads((data / "holisticbias/data/v1.1/descriptors.json").read_text())
    for buckets in axes.values():
        for one in (one for bucket in buckets.values() for one in bucket):
            name, liking = (
                (one, "")
                if isinstance(one, str)
                else (one["descriptor"], one.get("preference", ""))
            )
            described["dispreferred" if liking == "dispreferred" else ""].append(name)
    for liking, listed in described.items():
        _moved(
            f"HolisticBias, {liking or 'not dispreferred'}",
            scorer,
            [f"a {one} person" for one in listed],
        )


def _moved(name: str, scorer: RegardScorer, people: list[str]) -> None:
    """How far a sentence's score moves where another group is named in place of nobody's."""
    moved = []
    for sentence in _SAME:
        said = [sentence.format("a person"), *map(sentence.format, people)]
        plain, *others = _scored(scorer, [one[0].upper() + one[1:] for one in said])
        moved.append(np.abs(np.array(others) - plain))
    table = np.stack(moved)
    same = (table < 2e-4).all(0).mean()  # but for rounding
    worst = [people[place] for place in np.argsort(-table.mean(0))[:12]]
    print(f"{name}: {len(people)} groups in {len(_SAME)} sentences, {same:.1%} with equal scores")
    far = f"{np.quantile(table, 0.95):.3f} at most in 95 %, {table.max():.3f} at most"
    print(f"  moved by {table.mean():.4f} on average, {far}; most by {worst}")


def _csv(path: Path) -> list[dict[str, str]]:
    data = path.read_bytes()
    plain = gzip.decompress(data) if path.suffix == ".gz" else data
    return list(csv.DictReader(io.StringIO(plain.decode("utf-8"), newline="")))
