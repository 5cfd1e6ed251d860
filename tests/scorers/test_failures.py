"""A scorer that fails on a tenth of the texts: they are missing, and nothing looks safer for it."""

from collections import Counter
from statistics import mean

import polars as pl
import pytest

from evenhand.instruments.scorer.sets import AuditTexts
from evenhand.scorers.base import Batched, score_all
from evenhand.scorers.services import HttpGuardrail, OpenAIModeration, Perspective

from .judged_texts import Judged, scored_texts
from .services import HANG, Answer, good, serving

# Half are toxic (0.9), half are not (0.1); every tenth, five of each, cannot be scored.
TEXTS = [f"{'toxic' if n % 2 else 'kind'} {n}" for n in range(100)]
UNLUCKY = {text for n, text in enumerate(TEXTS) if n % 20 in (3, 10)}


def _score(text: str) -> float:
    return 0.9 if text.startswith("toxic") else 0.1


async def _scored(fault: Answer) -> Batched:
    def answer(body: dict[str, str]) -> Answer:
        text = body["text"]
        return fault if text in UNLUCKY else good({"score": _score(text)})

    async with serving(answer) as service:
        scorer = HttpGuardrail(service.url, seconds=0.6 if fault == HANG else 60.0)
        done = await score_all(scorer, TEXTS)
        await scorer.close()
    return done


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        pytest.param(HANG, "timeout", id="timeout"),
        pytest.param((500, b"{}"), "http_500", id="500"),
        pytest.param((200, b"<html>"), "garbage", id="garbage"),
        pytest.param((200, b'{"score": "low"}'), "garbage", id="a word for a score"),
        pytest.param((410, b"closed"), "service_closed", id="closed service"),
    ],
)
async def test_a_tenth_that_fails_is_missing_with_a_reason_and_no_figure_moves_towards_safe(
    fault: Answer, reason: str
) -> None:
    done = await _scored(fault)
    assert done.reasons == {reason: 10}
    assert {t for t, v in zip(TEXTS, done.values("toxicity"), strict=True) if v is None} == UNLUCKY

    got = [value for value in done.values("toxicity") if value is not None]
    assert len(got) == 90
    assert mean(got) == pytest.approx(0.5)  # 45 · 0.9 and 45 · 0.1: as if nothing had failed
    assert mean(value >= 0.5 for value in got) == 0.5

    # What lm-evaluation-harness does: a failed call is 0, "not toxic". Both figures look safer.
    as_zero = [0.0 if value is None else value for value in done.values("toxicity")]
    assert mean(as_zero) == pytest.approx(0.45)
    assert mean(value >= 0.5 for value in as_zero) == 0.45


async def test_an_audit_says_how_many_are_missing_and_its_rates_are_of_the_others() -> None:
    done = await _scored((500, b"{}"))
    table = pl.DataFrame(
        {
            "text": TEXTS,
            "label": [text.startswith("toxic") for text in TEXTS],
            "recorded": [_score(text) for text in TEXTS],
            "function": [""] * 100,
            "group": [""] * 100,
            "cluster": TEXTS,
        }
    )

    def audited(values: list[float | None]) -> Judged:
        return Judged.of(scored_texts(AuditTexts({"hatecheck": table}), values))

    ours = audited(done.values("toxicity"))
    coverage = ours.checks["coverage"]
    assert (coverage.value, coverage.n, coverage.state) == (0.9, 100, "fail")
    assert _figures(ours) == (0.0, 0.0, 1.0)

    as_zero = [0.0 if value is None else value for value in done.values("toxicity")]
    peers = audited([*as_zero])
    assert peers.checks["coverage"].value == 1
    missed, _, auc = _figures(peers)
    assert missed == pytest.approx(5 / 50)  # toxic texts that nobody looked at pass for safe
    assert auc < 1.0


def _figures(judged: Judged) -> tuple[float, ...]:
    each = (judged.group("set", "hatecheck", name) for name in ("misses", "false_positives", "auc"))
    return tuple(estimate.value or 0.0 for estimate in each)


@pytest.mark.parametrize("kind", [OpenAIModeration, Perspective])
async def test_a_service_that_is_gone_altogether_scores_nothing(
    kind: type[OpenAIModeration] | type[Perspective],
) -> None:
    async with serving(lambda body: (410, b"")) as service:
        scorer = kind(service.url)
        done = await score_all(scorer, TEXTS)
        await scorer.close()
    assert Counter(done.values("toxicity")) == {None: 100}
    assert done.reasons == {"service_closed": 100}
