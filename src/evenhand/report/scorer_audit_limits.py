"""Where not to trust a scorer, in sentences. The bounds are ours."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

LEAST_COVERAGE = 0.95
MOST_FALSE_POSITIVES = 0.10
MOST_MISSES = 0.50
LEAST_AUC = 0.80
MOST_ECE = 0.10
LEAST_KEPT = 0.98  # of what is caught in plain writing
_MOST_NAMED = 6


def limits(entry: dict[str, Any]) -> list[str]:
    """Gravest first; empty if nothing was found, which is not "safe to trust"."""
    parts = (_missing, _training, _over, _under, _ordering, _scale, _tricked)
    return [sentence for part in parts for sentence in part(entry)]


def _missing(entry: dict[str, Any]) -> Iterator[str]:
    seen = entry["coverage"]
    if seen["coverage"] is not None and seen["coverage"] < LEAST_COVERAGE:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in seen["reasons"].items())
        yield (
            f"It gave no score to {1 - seen['coverage']:.1%} of the texts ({reasons}); "
            "the figures are of the others."
        )


def _training(entry: dict[str, Any]) -> Iterator[str]:
    whole = [row["set"] for row in entry["labels"] if row["seen"] == "all"]
    if whole:
        yield f"It was trained on {', '.join(whole)}: its figures there are too good."


def _over(entry: dict[str, Any]) -> Iterator[str]:
    def wrong(row: dict[str, Any]) -> bool:
        return bool(row["low"] > MOST_FALSE_POSITIVES)

    yield from _named(entry["false_positives"], wrong, "Calls harmless texts toxic")


def _under(entry: dict[str, Any]) -> Iterator[str]:
    def wrong(row: dict[str, Any]) -> bool:
        return bool(row["low"] > MOST_MISSES)

    yield from _named(entry["misses"], wrong, "Misses hateful texts")


def _named(
    rows: Sequence[dict[str, Any]], wrong: Callable[[dict[str, Any]], bool], what: str
) -> Iterator[str]:
    for name in dict.fromkeys(row["set"] for row in rows):
        for by, said in (("all", ""), ("function", " by kind"), ("group", " by group")):
            bad = [row for row in rows if (row["set"], row["by"]) == (name, by) and wrong(row)]
            worst = ", ".join(
                f"{row['kind']} {row['estimate']:.0%}" if by != "all" else f"{row['estimate']:.0%}"
                for row in bad[:_MOST_NAMED]
            )
            more = f" and {len(bad) - _MOST_NAMED} more" if len(bad) > _MOST_NAMED else ""
            if bad:
                yield f"{what} in {name}{said}: {worst}{more}."


def _ordering(entry: dict[str, Any]) -> Iterator[str]:
    weak = [row for row in entry["labels"] if row["auc"] is not None and row["auc"] < LEAST_AUC]
    if weak:
        listed = ", ".join(f"{row['set']} {row['auc']:.2f}" for row in weak)
        yield f"Tells toxic from harmless poorly (AUC below {LEAST_AUC:g}): {listed}."


def _scale(entry: dict[str, Any]) -> Iterator[str]:
    off = [row for row in entry["calibration"] if row["ece"] > MOST_ECE]
    if off:
        listed = ", ".join(f"{row['set']} {row['ece']:.2f}" for row in off)
        yield (
            f"Its numbers are not on Perspective's scale (calibration error {listed}): "
            "do not compare them with published ones, and choose a threshold of its own."
        )


def _tricked(entry: dict[str, Any]) -> Iterator[str]:
    weak = [r for r in entry["tricks"] if r["kept"] is not None and r["kept"] < LEAST_KEPT]
    if weak:
        listed = ", ".join(f"{row['trick']} keeps {row['kept']:.0%}" for row in weak)
        yield f"Is got round by Unicode tricks (of what it catches in plain writing): {listed}."
    emoji = entry["emoji"]
    if emoji is not None and emoji["flagged"]:
        yield f"Calls {emoji['flagged']} of {emoji['n']} harmless texts with emoji toxic."
