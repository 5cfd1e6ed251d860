"""Checks of single runs: what a report says of a control, compared with what was planted."""

from collections.abc import Iterator, Sequence

from evenhand.findings.decision_rules import ALPHA
from evenhand.findings.estimates import Estimate
from evenhand.findings.report import Report
from evenhand.instruments.bbq.words import AT_CHANCE
from evenhand.validation.controls import policies
from evenhand.validation.controls.policies import Control
from evenhand.validation.self_test.bench import (
    Bench,
    ControlClaim,
    ControlReading,
    holds,
    too_often,
    too_seldom,
)

_CONFIDENCE = 1 - ALPHA
_POWER = 0.9  # our choice: what is planted is large, and shown nearly always
_ANYWHERE = "category"  # the groups that each control is read in


async def gold_reader(bench: Bench) -> ControlReading:
    """No category of no sample may show a bias of a reader who is always right."""
    control = policies.gold_reader()
    samples = -(-bench.replications // 4)  # our choice: it is read exactly, so few samples tell
    reports = [await bench.measure(control, sample_seed=seed) for seed in range(samples)]
    reports.append(await bench.measure(control, preset="all"))
    claims, count = list[ControlClaim](), 0
    for report in reports:
        for where, estimate in _everywhere(report):
            if estimate.name in control.truth and estimate.value is not None:
                count += 1
                expected = control.truth[estimate.name]
                statement = (
                    f"{estimate.name} is {expected:g} in {where}; read: {estimate.value:+.3f}"
                )
                claims.append(ControlClaim(statement, abs(estimate.value - expected) < 1e-9))
        claims.append(_defined(report, control))
        claims.append(ControlClaim("no bias is shown", report.verdict.state != "detected"))
    exact = sum(claim.holds for claim in claims)
    read = f"exact in {exact:,} of {len(claims):,} numbers of {len(reports)} samples"
    return ControlReading.of(
        control.name, "s_amb 0, s_dis 0, accuracy 1, in every category", read, claims
    )


async def always_unknown(bench: Bench) -> ControlReading:
    """Who never names anybody has no bias score in clear questions: it is undefined, and not 0."""
    control = policies.always_unknown()
    report = await bench.measure(control)
    claims = [
        ControlClaim(
            f"{name} is {truth:g}; read: {_number(report[name].value)}",
            report[name].value is not None and holds(report[name], truth),
        )
        for name, truth in control.truth.items()
    ]
    bias = report["s_dis"]
    claims.append(
        ControlClaim(f"s_dis is undefined; read: {_number(bias.value)}", bias.value is None)
    )
    read = f"over-abstention {_number(report['over_abstention'].value)}, s_dis undefined"
    return ControlReading.of(control.name, control.plants, read, claims)


async def one_category(bench: Bench) -> ControlReading:
    """A bias in one category is shown there and nowhere else."""
    control = policies.one_category()
    claims, hits = list[ControlClaim](), 0
    reports = [await bench.measure(control, draw) for draw in range(2)]
    for report in reports:
        groups = report.groups[_ANYWHERE]
        for category, estimates in groups.items():
            score = next(estimate for estimate in estimates if estimate.name == "s_amb")
            is_shown = score.p_holm is not None and score.p_holm <= ALPHA
            truth = control.by_category.get(category, {}).get("s_amb")
            statement = f"s_amb of {category} is {truth or 0:g}; read: {_number(score.value)}"
            if truth is None:
                claims.append(ControlClaim(statement, score.value == 0 and not is_shown))
            else:
                claims.append(ControlClaim(f"a bias in {category} is shown", is_shown))
                hits += holds(score, truth)
    claims.append(ControlClaim(f"intervals hold the truth; {hits} of {len(reports)} do", hits > 0))
    read = "shown there, 0 in all others" if all(c.holds for c in claims) else "not so"
    return ControlReading.of(control.name, control.plants, read, claims)


async def planted(
    bench: Bench, control: Control, *, biased: bool, at_chance: bool = False
) -> ControlReading:
    """Check that intervals cover the planted values, and that the verdict detects a planted bias.

    Args:
        bench: Runs the control.
        control: The control.
        biased: Whether the control is biased, so that the verdict should be "detected".
        at_chance: Whether the report should note that the accuracy is at chance level.

    Returns:
        The reading, with what was misread.
    """
    reports = await bench.several(control)
    claims = [_held(reports, name, truth) for name, truth in control.truth.items()]
    shown_count = sum(report.verdict.state == "detected" for report in reports)
    right = not too_seldom(shown_count, len(reports), _POWER) if biased else not too_often(
        shown_count, len(reports), ALPHA
    )  # fmt: skip
    expected = "shows the bias" if biased else "shows no bias"
    claims.append(
        ControlClaim(f"the verdict {expected}; shown in {shown_count} of {len(reports)}", right)
    )
    if at_chance:
        flags = [AT_CHANCE in report.notes for report in reports]
        enough = not too_seldom(sum(flags), len(flags), _CONFIDENCE**2)  # of two accuracies
        claims.append(
            ControlClaim(f"the report says that it is at chance; {sum(flags)} do", enough)
        )
    score = [report["s_amb"].value for report in reports]
    read = f"s_amb {_number(_mean(score))}, " + ", ".join(
        f"{label} {_number(_mean([report[name].value for report in reports]))}"
        for name, label in (("unsupported_attribution", "names"), ("s_dis", "s_dis"))
    )
    return ControlReading.of(control.name, control.plants, read, claims)


def _held(reports: Sequence[Report], name: str, truth: float) -> ControlClaim:
    hits = sum(holds(report[name], truth) for report in reports)
    mean = _number(_mean([report[name].value for report in reports]))
    statement = (
        f"intervals of {name} hold {truth:.3g}; {hits} of {len(reports)} do, their mean is {mean}"
    )
    return ControlClaim(statement, not too_seldom(hits, len(reports), _CONFIDENCE))


def _defined(report: Report, control: Control) -> ControlClaim:
    """Over all questions each number has a value."""
    lacking = [name for name in control.truth if report[name].value is None]
    return ControlClaim(
        f"every measure has a value; these have none: {', '.join(lacking)}", not lacking
    )


def _everywhere(report: Report) -> Iterator[tuple[str, Estimate]]:
    yield from (("all questions", estimate) for estimate in report.estimates)
    for values in report.groups.values():
        yield from (
            (value, estimate) for value, estimates in values.items() for estimate in estimates
        )


def _mean(values: Sequence[float | None]) -> float | None:
    available = [value for value in values if value is not None]
    return sum(available) / len(available) if available else None


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:+.3f}"
