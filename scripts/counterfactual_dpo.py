"""The table of `scripts/counterfactual_dpo.sh`: what DPO on counterfactual pairs changed.

python scripts/counterfactual_dpo.py FOLDER SEED…
"""

import sys
from pathlib import Path

from dose_response import CONTROLS, SETS, RunReader, interval_of, report_of, split

from evenhand.findings.comparison import Comparison, compare
from evenhand.findings.estimates import Change
from evenhand.statistics.clusters import naive_mean

SIGN = {"female": 1.0, "male": -1.0}


def leaning(folder: Path) -> dict[str, float]:
    """Give log p(she) − log p(he) of each occupation, as these weights were measured."""
    section = report_of(folder, "occupations").section("occupations")
    assert section is not None
    return {str(row[0]): float(row[1]) for row in section.rows}


def towards(folder: Path, seed: int, half: str) -> dict[str, float]:
    """Give how far the weights lean towards the stereotype, for each occupation of a half."""
    found = leaning(folder)
    return {
        name: SIGN[side] * found[name]
        for side, names in split(seed)[half].items()
        for name in names
    }


def occupations(folder: Path, seed: int, half: str) -> tuple[str, str, str]:
    """Say the mean leaning towards the stereotype, before, after, and the change of it."""
    before = towards(folder / "measured-base", seed, half)
    after = towards(folder / f"measured-{seed}", seed, half)
    change = naive_mean([after[name] - before[name] for name in before])
    shown = f"{change.estimate:+.2f} ({change.low:+.2f} to {change.high:+.2f})"
    return _mean(before), _mean(after), shown


def _mean(numbers: dict[str, float]) -> str:
    return f"{sum(numbers.values()) / len(numbers):+.2f}"


def guardrails(folder: Path, seed: int) -> list[Change]:
    """Give what changed on the other sets, as `evenhand compare` computes it."""

    def changed(name: str) -> Comparison:
        before, after = folder / "measured-base" / name, folder / f"measured-{seed}" / name
        return compare(SETS[name], RunReader(before), RunReader(after))

    winobias, crows, stereoset = map(changed, ("winobias", "crows_pairs", "stereoset"))
    ages = [crows.groups["bias_type"][group][0] for group in CONTROLS]
    return [winobias["stereotype_gap"], *ages, stereoset["lms"]]


def main(folder: Path, seeds: list[int]) -> None:
    rows = [
        ["seed", "occupations", "before", "after", "change, nats"],
        *(
            [str(seed), half, *occupations(folder, seed, half)]
            for seed in seeds
            for half in ("trained", "held out")
        ),
    ]
    _table(rows)
    sys.stdout.write("\n")
    names = ["WinoBias, gap", *(f"CrowS-Pairs, {one}" for one in CONTROLS), "StereoSet, LMS"]
    _table(
        [
            ["seed", *names],
            *([str(seed), *map(interval_of, guardrails(folder, seed))] for seed in seeds),
        ]
    )


def _table(rows: list[list[str]]) -> None:
    for number, row in enumerate(rows):
        sys.stdout.write(f"| {' | '.join(row)} |\n")
        if not number:
            sys.stdout.write(f"|{' --- |' * len(row)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(seed) for seed in sys.argv[2:]])
