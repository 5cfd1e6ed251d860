"""What a reward model is asked, and the figures made of its rewards, worked out by hand."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenhand as eh
from evenhand.core.errors import Undefined, UserError
from evenhand.findings.audit import Audit
from evenhand.findings.comparison import compare as comparison
from evenhand.findings.gate import GateCheck, gate
from evenhand.findings.plan import plan
from evenhand.findings.totals import RunTotals
from evenhand.instruments import Instrument, Measure
from evenhand.instruments.reward.instrument import Reward
from evenhand.instruments.reward.measures import RewardEffect
from evenhand.runs.store import RunReader
from evenhand.statistics.metrics import reward_probes as metric
from evenhand.training.probes import (
    BIASED_TAIL,
    NEUTRAL_TAIL,
    Messages,
    ProbePair,
    Probes,
    ProbeTexts,
    Score,
    drawn,
    held_out,
    unopened,
)
from evenhand.views import markdown, page_of
from tests.errors import raises_naming
from tests.training.weights.conftest import TOPICS, pair_rows, write_pairs

TEXTS = ProbeTexts.shipped()
Audited = Callable[[list[ProbePair], Score], Audit]
GOOD, BIASED = "Ask each person, for all are EQUAL here.", "They are LAZY, all of them are."


def pairs(topics: int = 12, a_topic: int = 2) -> list[ProbePair]:
    return [
        ProbePair(
            prompt=[{"role": "user", "content": f"What of topic {topic}?"}],
            chosen=f"{GOOD} {topic}.{number}",
            rejected=f"{BIASED} {topic}.{number}",
            topic=f"topic {topic}",
            bias_type="age" if topic % 2 else "beauty",
        )
        for topic in range(topics)
        for number in range(a_topic)
    ]


def score_all(made: list[ProbePair], score: Score) -> None:
    probes = Probes(made, TEXTS)
    for position in range(len(made)):
        probes.scores(position, score)


def reader(prompts: Sequence[Messages], responses: Sequence[str]) -> list[float]:
    """What a reward model should be: the biased word counts, wherever it stands."""
    return [-1.0 if "LAZY" in text else float("EQUAL" in text) for text in responses]


@pytest.fixture
def audited(tmp_path_factory: pytest.TempPathFactory) -> Audited:
    def run(made: list[ProbePair], score: Score) -> Audit:
        return eh.audit(Reward(score, made), out=tmp_path_factory.mktemp("audit") / "run")

    return run


def states(audit: Audit) -> dict[str, str]:
    return {check.name: check.state for check in audit.checks}


def failed(audit: Audit) -> set[str]:
    return {name for name, state in states(audit).items() if state == "fail"}


def groups(audit: Audit, column: str) -> dict[str, float]:
    return {value: e.value for value, (e,) in audit.more["groups"][column].items()}


def test_a_tie_is_not_right(audited: Audited) -> None:
    """Of four pairs two are ties: one of them is right, of one the biased answer gets more."""
    rewards = {"topic 0": (2.0, 1.0), "topic 1": (1.0, 1.0), "topic 2": (1.0, 0.0),
               "topic 3": (0.0, 1.0)}  # fmt: skip

    def score(prompts: Sequence[Messages], responses: Sequence[str]) -> list[float]:
        return [
            rewards[prompt[0]["content"][8:-1]]["LAZY" in text]
            for prompt, text in zip(prompts, responses, strict=True)
        ]

    check = audited(pairs(topics=4, a_topic=1), score)["accuracy"]
    assert (check.value, check.n, check.clusters) == (0.5, 4, 4)


def test_taking_the_longer_answer_gets_half_of_equal_ones(audited: Audited) -> None:
    lengths = [(3, 1), (2, 2), (5, 9)]
    made = [
        ProbePair(prompt=[{"role": "user", "content": str(n)}], chosen="x" * a, rejected="y" * b,
                  topic=str(n), bias_type="age")
        for n, (a, b) in enumerate(lengths)
    ]  # fmt: skip
    (value,) = (
        e.value for e in audited(made, reader).estimates if e.name == "longer_wins_accuracy"
    )
    assert value == 0.5  # (1 + ½ + 0) / 3


def test_a_worthless_answer_wins_where_one_of_its_wordings_gets_no_less(audited: Audited) -> None:
    """A refusal ties in the first topic, another wording of it is above in the last."""
    first, second, *_ = next(key.wordings for key in TEXTS.keys if key.kind == "refusal")

    def score(prompts: Sequence[Messages], responses: Sequence[str]) -> list[float]:
        rewards = reader(prompts, responses)
        for at, (prompt, text) in enumerate(zip(prompts, responses, strict=True)):
            topic = prompt[0]["content"]
            if (topic, text) in (("What of topic 0?", first), ("What of topic 3?", second)):
                rewards[at] = 1.0 if text == first else 5.0
        return rewards

    audit = audited(pairs(topics=4, a_topic=1), score)
    assert audit["key:refusal"].value == 0.5
    best = {row[0]: row[1:] for row in audit.section("best_wordings").rows}  # type: ignore[union-attr]
    assert best[TEXTS.said()["refusal"]] == (first, 0.25)


def test_an_effect_is_told_in_gaps_with_an_interval_over_topics() -> None:
    rows = pl.DataFrame({
        "item_id": list("0123"), "cluster": list("aabb"), "state": ["scored"] * 4,
        "longer": [1.0, 0, 2, 1], "plain": [0.0] * 4, "chosen": [2.0] * 4, "rejected": [0.0] * 4,
    })  # fmt: skip
    effect = Measure(name="effect", label="", statistic=RewardEffect(
        pl.col("longer") - pl.col("plain"), pl.col("chosen") - pl.col("rejected")
    ))  # fmt: skip
    found = RunTotals.of(_with(effect), [rows]).estimate(effect)
    assert found.value == 0.5  # 4/8
    # u = (1 − 2, 3 − 2), se² = 2/1 · (1 + 1)/8² = 1/16, and t of one degree of freedom is 12.706
    assert found.high == pytest.approx(0.5 + 12.7062 / 4, abs=1e-4)
    none = rows.with_columns(rejected=pl.Series([1.0, 2, 3, 2]))
    assert RunTotals.of(_with(effect), [none]).estimate(effect).undefined == metric.NO_GAP


def _with(measure: Measure) -> Instrument:
    instrument = type("One", (Reward,), {"measures": (measure,), "groups": ()})()
    assert isinstance(instrument, Instrument)
    return instrument


def test_the_correlation_with_length_is_of_ranks() -> None:
    assert metric.length_correlation([1, 9, 8], [10, 30, 20], list("abc")).estimate == 1
    assert metric.length_correlation([1, 3, 2], [10, 20, 30], list("abc")).estimate == 0.5
    with pytest.raises(Undefined):
        metric.length_correlation([1, 2], [5, 5], list("ab"))


def test_the_effect_of_length_is_the_slope_in_gaps_and_not_how_even_it_is() -> None:
    # z = (−1, 1), r − r̄ = (−1, 1): the slope is 1 a standard deviation, and the gap is 4.
    assert metric.length_effect([1, 3], [10, 20], [4, 4], list("ab")).estimate == 0.25
    tiny = metric.length_effect([1, 1.001], [10, 20], [4, 4], list("ab")).estimate
    assert tiny == pytest.approx(0.000125)  # although the correlation is 1
    with raises_naming(Undefined, "equally long"):
        metric.length_effect([1, 3], [10, 10], [4, 4], list("ab"))


def test_padding_is_told_in_standard_deviations_of_the_rewards() -> None:
    assert metric.padding_difference([1, 2], [1, 2.5], [0, 2]) == 0.5


def test_pairs_against_the_usual_length_are_judged_apart() -> None:
    lengths = [(9, 1)] * 12 + [(1, 9), (2, 8)] * 5 + [(5, 5)]
    chosen, rejected = ([pair[side] for pair in lengths] for side in (0, 1))
    right = [a > b for a, b in lengths]
    topics = [str(number) for number in range(len(lengths))]
    found = metric.against_length(right, chosen, rejected, topics)
    assert (found.estimate, found.n) == (0.0, 10)
    with raises_naming(Undefined, "2 pairs"):
        metric.against_length(right[:14], chosen[:14], rejected[:14], topics[:14])


def test_every_text_is_scored_once_and_prompts_are_swapped_between_topics() -> None:
    asked: list[tuple[str, str]] = []

    def recording(prompts: Sequence[Messages], responses: Sequence[str]) -> list[float]:
        if len(responses) > 2:  # padding asks for one and two at a time
            asked.extend((p[-1]["content"], r) for p, r in zip(prompts, responses, strict=True))
        return reader(prompts, responses)

    made = pairs(topics=3, a_topic=2)
    score_all(made, recording)
    assert len(asked) == len(set(asked))
    refusals = [prompt for prompt, text in asked if text == TEXTS.keys[2].wordings[0]]
    assert sorted(refusals) == [f"What of topic {n}?" for n in range(3)]  # not once a pair
    for pair in made:
        behind = {prompt for prompt, text in asked if text == pair.chosen}
        assert len(behind) == 2
        assert pair.prompt[0]["content"] in behind


def test_a_reward_that_is_no_number_is_refused() -> None:
    with raises_naming(UserError, "nan", "''"):
        score_all(pairs(2), lambda _, texts: [math.nan for _ in texts])


def test_a_reward_that_is_no_number_beside_a_longer_text_is_refused() -> None:
    """Padding that breaks a reward must not pass for padding that moves none."""

    def broken(prompts: Sequence[Messages], responses: Sequence[str]) -> list[float]:
        return [math.nan, 0.0] if len(responses) == 2 else reader(prompts, responses)

    with raises_naming(UserError, "nan", "EQUAL here."):
        score_all(pairs(2), broken)


@given(st.text(min_size=1), st.text(max_size=300))
def test_filler_makes_an_answer_far_longer_than_the_other_and_changes_nothing(
    answer: str, other: str
) -> None:
    filled = TEXTS.filled(answer, other)
    assert filled.startswith(answer.lstrip())
    assert len(filled) >= max(1.5 * len(other), len(answer.strip()) + 1)


@given(
    st.sampled_from(["Nobody is the same.", "I like it.", "NASA did.", "Ask them."]), st.integers(0)
)
def test_an_opener_comes_off_as_it_went_on(answer: str, number: int) -> None:
    opened = TEXTS.opened(answer, "", number)
    assert opened.startswith("As ")
    assert unopened(opened, "") == answer
    assert TEXTS.opened(opened, "", number + 1) == opened  # one is enough


def test_a_draw_takes_topics_in_turn() -> None:
    some = [pair.topic for pair in drawn(pairs(topics=4, a_topic=3), 6)]
    assert set(some[:4]) == {f"topic {n}" for n in range(4)}
    assert some[4:] == some[:2]


def test_a_draw_of_few_is_not_of_the_first_topics() -> None:
    """Files are sorted by bias type, so the first topics would be of one type. By hand, as
    `printf 'topic 2' | sha256sum` says: 2 comes first of the four (6a36…), then 0 (b189…)."""
    assert [pair.topic for pair in drawn(pairs(topics=4), 2)] == ["topic 2", "topic 0"]


def test_held_out_pairs_are_those_of_the_test_side(tmp_path: Path) -> None:
    folder = write_pairs(tmp_path / "pairs", pair_rows(), set(TOPICS[-4:]))
    found = held_out(folder)
    assert {pair.topic for pair in found} == set(TOPICS[-4:])
    assert found[0].chosen.startswith("Anyone may enjoy")
    with raises_naming(UserError, tmp_path, "(*/test-*.parquet)"):
        held_out(tmp_path)


# -- what is concluded ---------------------------------------------------------------------------


def test_a_model_that_reads_passes_on_sixty_topics_and_is_open_on_twelve(audited: Audited) -> None:
    audit = audited(pairs(), reader)
    assert (audit.state, failed(audit)) == ("inconclusive", set())
    assert audit["accuracy"].value == 1.0
    # 0 of 12 topics still allow 24 %
    assert states(audit)["key:refusal"] == "inconclusive"
    assert states(audit)["longer_wins"] == "pass"
    assert {"prompt_not_read", "few_topics"} <= {*audit.notes}
    more = audited(pairs(topics=60, a_topic=1), reader)
    assert states(more)["key:refusal"] == "pass"
    assert more.state == "pass"


def lover(text: str) -> Score:
    """A model that reads, but likes one worthless answer best."""

    def score(prompts: Sequence[Messages], responses: Sequence[str]) -> list[float]:
        plain = reader(prompts, responses)
        return [2.0 if said == text else got for said, got in zip(responses, plain, strict=True)]

    return score


@pytest.mark.parametrize("kind", [key.kind for key in TEXTS.keys])
def test_each_worthless_answer_that_is_preferred_is_named(audited: Audited, kind: str) -> None:
    wording = next(key.wordings[-1] for key in TEXTS.keys if key.kind == kind)
    audit = audited(pairs(), lover(wording))
    assert failed(audit) == {f"key:{kind}"}
    assert audit.section("means").rows[0] == (TEXTS.said()[kind], 2.0)  # type: ignore[union-attr]


def test_a_model_that_reads_only_the_end_takes_a_fair_sentence_for_a_fair_answer(
    audited: Audited,
) -> None:
    def last_sentence(prompts: Sequence[Messages], responses: Sequence[str]) -> list[float]:
        fair = {*TEXTS.neutral_tails}
        return [
            1.0 if any(text.endswith(tail) for tail in fair) else reader([], [text])[0]
            for text in responses
        ]

    assert failed(audited(pairs(), last_sentence)) == {f"key:{NEUTRAL_TAIL}"}


def test_a_model_that_reads_only_the_start_does_not_see_a_biased_tail(audited: Audited) -> None:
    def start(prompts: Sequence[Messages], responses: Sequence[str]) -> list[float]:
        return reader([], [text[:45] for text in responses])

    assert f"key:{BIASED_TAIL}" in failed(audited(pairs(), start))


def test_a_model_that_is_moved_by_its_batch_is_caught(audited: Audited) -> None:
    def leaking(prompts: Sequence[Messages], responses: Sequence[str]) -> list[float]:
        return [got + 0.01 * len(responses) for got in reader(prompts, responses)]

    assert "padding" in failed(audited(pairs(), leaking))  # two in a batch get 0.01 more than one


def test_a_model_that_gives_all_the_same_fails_everything_that_asks_for_more(
    audited: Audited,
) -> None:
    audit = audited(pairs(), lambda _, texts: [0.5 for _ in texts])
    assert failed(audit) == {"accuracy", "gap", *(f"key:{kind}" for kind in TEXTS.said())}
    assert states(audit)["longer_wins"] == "not_measured"  # there is no gap to compare with


def test_one_topic_is_not_enough_to_pass(audited: Audited) -> None:
    audit = audited(pairs(topics=1, a_topic=40), reader)
    assert (audit.state, states(audit)["accuracy"]) == ("inconclusive", "inconclusive")
    (elsewhere,) = (e for e in audit.estimates if e.name == "accuracy_behind_other_prompts")
    assert elsewhere.value is None


def test_a_fail_comes_before_any_figure_of_the_page(audited: Audited) -> None:
    text = markdown.render(page_of(audited(pairs(), lover("Okay."))))
    assert text.index("FAILS") < text.index("a bare assent")
    assert text.index("a bare assent") < text.index("accuracy on held-out")
    assert "0.735 to 1.000" in text  # 0.025^(1/12)


def test_what_is_the_same_in_every_topic_has_no_interval_and_is_held_against_its_bound(
    audited: Audited,
) -> None:
    """Filler moves nothing for a reader: 0 in each of 12 topics, which is at most half a gap."""
    check = audited(pairs(), reader)["longer_wins"]
    assert (check.value, check.low, check.high, check.clusters) == (0.0, None, None, 12)
    assert (check.undefined, check.state) == ("no_spread", "pass")


def test_accuracy_is_told_by_topic_the_worst_first(audited: Audited) -> None:
    def blind_to_three(prompts: Sequence[Messages], responses: Sequence[str]) -> list[float]:
        return [
            0.0 if " 3." in text else got
            for text, got in zip(responses, reader([], responses), strict=True)
        ]

    audit = audited(pairs(), blind_to_three)
    assert audit.section("by_topic").rows[0][:2] == ("topic 3", 0)  # type: ignore[union-attr]
    assert audit["accuracy"].value == pytest.approx(22 / 24)
    # topic 3 is of age
    assert groups(audit, "bias_type") == {"age": pytest.approx(10 / 12), "beauty": 1.0}


# -- by the code that runs every instrument ------------------------------------------------------


def test_two_audits_of_the_same_pairs_are_compared_planned_and_gated(tmp_path: Path) -> None:
    def worse(prompts: Sequence[Messages], responses: Sequence[str]) -> list[float]:
        flipped = [" 1" in text or " 2" in text for text in responses]
        plain = reader(prompts, responses)
        return [-got if wrong else got for wrong, got in zip(flipped, plain, strict=True)]

    for name, score in (("before", reader), ("after", worse)):
        eh.audit(Reward(score, pairs(topics=40, a_topic=1)), out=tmp_path / name)
    diff = eh.compare(tmp_path / "before", tmp_path / "after")
    assert (diff["accuracy"].before, diff.verdict.state) == (1.0, "detected")
    assert (diff["accuracy"].p or 1) < 0.001
    pilot = comparison(Reward(), *(RunReader(tmp_path / name) for name in ("before", "after")))
    assert plan(Reward(), pilot=pilot, measure="accuracy").rows
    check = GateCheck(name="c", instrument=Reward(), measure=Reward().measure("accuracy"))
    runs = RunReader(tmp_path / "before"), RunReader(tmp_path / "after")
    assert gate([check], {"c": runs}).checks[0].verdict == "fail"
    again = runs[0], runs[0]
    assert gate([check], {"c": again}).checks[0].verdict != "fail"


def test_an_audit_goes_on_from_its_folder_and_asks_for_no_reward_twice(tmp_path: Path) -> None:
    first = eh.audit(Reward(reader, pairs()), out=tmp_path / "run")

    def none(prompts: Sequence[Messages], responses: Sequence[str]) -> list[float]:
        raise AssertionError(prompts, responses)

    assert eh.audit(Reward(none, pairs()), out=tmp_path / "run").checks == first.checks


def test_an_audit_stops_early_once_the_question_is_decided(tmp_path: Path) -> None:
    """Only what has an interval that holds at every look is concluded then."""
    made = pairs(topics=120, a_topic=1)
    audit = eh.audit(Reward(reader, made), out=tmp_path / "run", stop_when="accuracy=0.2", seed=1)
    assert audit.coverage is not None
    assert audit.coverage.n < 120
    assert states(audit)["accuracy"] == "pass"
    assert states(audit)["padding"] == "not_measured"
    assert audit.state == "inconclusive"
