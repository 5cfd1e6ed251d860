"""A run's numbers against numbers worked out by hand, and what a comparison says of two."""

from pathlib import Path
from typing import Any

import pytest

from evenhand.core.errors import UserError
from evenhand.findings.comparison import Comparison, compare, together
from evenhand.findings.estimates import Estimate
from evenhand.findings.report import Report, report
from evenhand.instruments._options import OTHER_START, OptionItem, OptionSource
from evenhand.instruments.likelihood_sets import all_sets
from evenhand.models.likelihood import LikelihoodFailure, TokenLogprobs
from evenhand.runs.runners.likelihood import run_likelihood
from evenhand.runs.runners.progress import Progress
from evenhand.runs.store import RunReader
from evenhand.views import page_of
from tests.coded import coded
from tests.errors import assert_names, raises_naming
from tests.instruments.likelihood.conftest import Planted

S, A, U = "stereotype", "anti_stereotype", "unrelated"


def _set(name: str, items: list[OptionItem]) -> OptionSource:
    return OptionSource(all_sets()[name], items, {"items": "all", "seed": 0})


def _planted(
    rows: list[tuple[str, str, dict[str, float]]], **tags: str
) -> tuple[list[OptionItem], dict[str, float]]:
    """Items from rows of (cluster, group, option → log-probability); a text is two words long."""
    items: list[OptionItem] = []
    totals: dict[str, float] = {}
    for number, (cluster, group, options) in enumerate(rows):
        texts = {name: f"{number} {name}" for name in options}
        totals |= {texts[name]: total for name, total in options.items()}
        items.append(
            OptionItem(
                id=f"i{number}", group=group, cluster=cluster, options=texts, tags=dict(tags)
            )
        )
    return items, totals


async def _report(model: Planted, drawn: OptionSource, out: Path) -> Report:
    await run_likelihood(model, drawn, out, progress=Progress())
    return report(all_sets()[drawn.fingerprint()["benchmark"]], RunReader(out))


async def _measured(model: Planted, drawn: OptionSource, out: Path) -> dict[str, Estimate]:
    return {one.name: one for one in (await _report(model, drawn, out)).estimates}


async def test_a_report_says_how_many_preferences_turn_round_after_another_start(
    tmp_path: Path,
) -> None:
    usual = [("w1", "age", {S: -4.0, A: -6.0}), ("w2", "age", {S: -4.0, A: -6.0}),
             ("w3", "age", {S: -6.0, A: -4.0}), ("w4", "age", {S: -5.0, A: -6.0})]  # fmt: skip
    items, totals = _planted(usual)
    turned = totals | {f"0 {S}": -7.0, f"2 {S}": -1.0, f"3 {A}": -3.0}  # 1, 0, 1, 1 -> 0, 1, 1, 0
    drawn, out = _set("crows_pairs", items), tmp_path / "run"
    first = await _report(Planted(totals), drawn, out)
    assert first.notes == ()  # it was not looked at
    other = Planted(turned, start="<other>")
    await run_likelihood(other, drawn.part(120), out / OTHER_START, progress=Progress())
    (note,) = report(all_sets()["crows_pairs"], RunReader(out)).notes
    assert_names(note, "<other>", "<s>", "3 of 4")
    assert_names(note, "50.0%", "75.0%")


async def test_crows_pairs_is_the_share_of_pairs_with_the_stereotype_likelier(
    tmp_path: Path,
) -> None:
    items, totals = _planted(
        [
            ("w1", "age", {S: -4.0, A: -6.0}),
            ("w1", "age", {S: -8.0, A: -6.0}),
            ("w2", "gender", {S: -2.0, A: -6.0}),
            ("w3", "gender", {S: -6.0, A: -6.0}),  # a tie: neither
        ]
    )
    found = await _measured(Planted(totals), _set("crows_pairs", items), tmp_path)
    assert found["stereotype_score"].value == pytest.approx((100 + 0 + 100 + 50) / 4)
    assert (found["stereotype_score"].n, found["stereotype_score"].clusters) == (4, 3)
    # Two tokens a text: (4+6+8+6+2+6+6+6)/2 = 22 over 8 texts.
    assert found["log_prob_per_token"].value == pytest.approx(-22 / 8)


async def test_stereoset_is_a_mean_over_target_terms_and_not_over_items(tmp_path: Path) -> None:
    items, totals = _planted(
        [
            ("one", "race", {S: -1.0, A: -2.0, U: -3.0}),  # LMS 100, SS 100
            ("one", "race", {S: -1.0, A: -4.0, U: -3.0}),  # LMS 50, SS 100
            ("one", "race", {S: -2.0, A: -1.0, U: -3.0}),  # LMS 100, SS 0
            ("two", "race", {S: -5.0, A: -4.0, U: -3.0}),  # LMS 0, SS 0
        ],
        task="intrasentence",
    )
    found = await _measured(Planted(totals), _set("stereoset", items), tmp_path)
    lms, ss = (250 / 3 + 0) / 2, (200 / 3 + 0) / 2  # means of the two terms
    assert found["lms"].value == pytest.approx(lms)
    assert found["ss"].value == pytest.approx(ss)
    assert found["icat"].value == pytest.approx(lms * min(ss, 100 - ss) / 50)
    assert found["ss"].clusters == 2


async def test_between_sentences_only_the_end_counts_per_token(tmp_path: Path) -> None:
    """The sums prefer the short stereotype; per token of the end, the longer one is likelier."""
    given = "A B C D"
    options = {S: f"{given} x", A: f"{given} x y z", U: f"{given} q"}
    totals = {given: -4.0, options[S]: -6.0, options[A]: -7.0, options[U]: -9.0}
    items = [
        OptionItem(
            id=f"i{n}",
            group="race",
            cluster=f"c{n}",
            options=options,
            given=given,
            tags={"task": "intersentence"},
        )
        for n in range(2)
    ]
    found = await _measured(Planted(totals), _set("stereoset", items), tmp_path)
    # Per token: −2/1 against −3/3. Over the whole text it would be −6/5 against −7/7.
    assert found["ss"].value == 0.0
    assert found["ss_sum"].value == 100.0
    assert found["log_prob_per_token"].value == pytest.approx((-2.0 - 1.0) / 2)


async def test_winobias_compares_the_pronouns_by_sentence(tmp_path: Path) -> None:
    items, totals = _planted(
        [
            ("nurse", "type1", {S: -4.0, A: -5.6}),
            ("carpenter", "type2", {S: -4.0, A: -3.6}),
        ]
    )
    found = await _measured(Planted(totals), _set("winobias", items), tmp_path)
    assert found["stereotype_score"].value == 50.0
    assert found["stereotype_gap"].value == pytest.approx((1.6 - 0.4) / 2)


async def test_winogenders_gap_is_that_of_the_occupation_and_rises_with_the_share_of_women(
    tmp_path: Path,
) -> None:
    items: list[OptionItem] = []
    totals: dict[str, float] = {}
    for place in range(12):  # 0, 10 … 110 percent, gaps from −1.1 to +1.1
        gap = 0.2 * place - 1.1
        for group, extra in (("occupation", 0.0), ("participant", 7.0)):
            texts = {g: f"{place} {group} {g}" for g in ("female", "male", "neutral")}
            totals |= {texts["female"]: gap + extra, texts["male"]: 0.0, texts["neutral"]: -1.0}
            items.append(
                OptionItem(
                    id=f"{place}.{group}",
                    group=group,
                    cluster=f"job {place}",
                    options=texts,
                    tags={"women_percent": str(10 * place)},
                )
            )
    found = await _report(Planted(totals), _set("winogender", items), tmp_path)
    assert found["female_gap"].value == pytest.approx(0.0)
    assert found["female_gap"].n == 12
    assert found["women_slope"].value == pytest.approx(0.2)
    assert found["women_slope"].n == 12  # a pronoun of the participant says nothing about it
    assert found["women_slope"].low is None  # twelve occupations are too few to resample
    assert found["log_prob_per_token"].value == pytest.approx(-1 / 3)  # of "they" alone
    table = found.section("occupations")
    assert table is not None
    first, *_, last = table.rows
    assert list(first) == ["job 11", pytest.approx(1.1), 110.0, 1]
    assert list(last) == ["job 0", pytest.approx(-1.1), 0.0, 1]
    assert str(found.verdict.says[1]).startswith("most male: job 0 -1.10, job 1 -0.90")


async def test_subtler_biases_counts_the_stereotype_and_the_unrelated_word(tmp_path: Path) -> None:
    items, totals = _planted(
        [
            ("p1", "age", {S: -1.0, A: -2.0, U: -3.0}),
            ("p2", "age", {S: -2.0, A: -1.0, U: -3.0}),
            ("p3", "age", {S: -2.0, A: -3.0, U: -1.0}),
            ("p4", "age", {S: -1.0, A: -3.0, U: -2.0}),
        ]
    )
    found = await _measured(Planted(totals), _set("subtler_biases", items), tmp_path)
    assert found["stereotype_score"].value == 75.0
    assert found["unrelated_wins"].value == 25.0
    assert found["lms"].value == pytest.approx((100 + 100 + 0 + 50) / 4)


def _occupations(gaps: dict[str, list[float]]) -> tuple[list[OptionItem], dict[str, float]]:
    items: list[OptionItem] = []
    totals: dict[str, float] = {}
    for group, values in gaps.items():
        for place, gap in enumerate(values):
            given = f"The {group}{place} said that"
            texts = {"female": f"{given} she", "male": f"{given} he"}
            totals |= {given: -10.0, texts["female"]: -12.0 + gap, texts["male"]: -12.0}
            name = f"{group}{place}"
            items.append(OptionItem(id=name, group=group, cluster=name, options=texts, given=given))
    return items, totals


async def test_the_gap_of_two_lists_of_occupations(tmp_path: Path) -> None:
    gaps = {"female": [1.6, 0.4] * 10, "male": [-0.5, 0.1] * 10}
    items, totals = _occupations(gaps)
    found = await _measured(Planted(totals), _set("occupations", items), tmp_path)
    assert found["female_gap"].value == pytest.approx((1.0 - 0.2) / 2)
    assert found["lists_gap"].value == pytest.approx(1.0 - -0.2)
    assert found["lists_gap"].low is not None
    assert 0.5 < found["lists_gap"].low < 1.2


async def test_a_gap_of_lists_of_three_occupations_has_no_interval(tmp_path: Path) -> None:
    items, totals = _occupations({"female": [1.6, 0.4], "male": [-0.5]})
    found = await _measured(Planted(totals), _set("occupations", items), tmp_path)
    assert found["lists_gap"].value == pytest.approx(1.5)  # (1.6 + 0.4)/2 + 0.5
    assert (found["lists_gap"].low, found["lists_gap"].high) == (None, None)
    assert "too few" in (found["lists_gap"].undefined or "")


async def test_a_missing_option_takes_its_item_out_and_is_counted_by_reason(
    tmp_path: Path,
) -> None:
    rows = [(f"w{n}", "age", {S: -1.0, A: -2.0}) for n in range(10)]
    items, totals = _planted(rows)
    broken = Planted(totals, broken=[items[3].options[A]])
    found = await _report(broken, _set("crows_pairs", items), tmp_path)
    assert found["stereotype_score"].n == 9
    assert (found.coverage.n, found.coverage.scored) == (10, 9)
    assert found.coverage.by_reason == {"too_long": 1}
    assert found["stereotype_score"].value == 100.0


@pytest.mark.parametrize("name", all_sets())
async def test_a_set_of_which_nothing_could_be_scored_has_reasons_and_no_numbers(
    tmp_path: Path, name: str
) -> None:
    options = dict.fromkeys(all_sets()[name].names, -1.0)
    facts = {fact: "1" for fact in all_sets()[name].facts if fact not in ("group", "cluster")}
    items, totals = _planted([("a", "g", options), ("b", "g", options)], **facts)
    found = await _report(Planted(totals, broken=list(totals)), _set(name, items), tmp_path)
    assert found.coverage.by_reason == {"too_long": 2}
    assert all(one.value is None and one.undefined for one in found.estimates)
    assert page_of(found, full=True)


async def test_options_that_differ_in_a_token_without_a_probability_cannot_be_compared(
    tmp_path: Path,
) -> None:
    class NoStart(Planted):
        def _one(self, text: str) -> TokenLogprobs | LikelihoodFailure:
            return TokenLogprobs((-1.0,), uncounted=text.split(maxsplit=1)[0])

    same = OptionItem(id="same", group="g", cluster="a", options={S: "He x", A: "He y"})
    other = OptionItem(id="other", group="g", cluster="b", options={S: "He x", A: "She x"})
    assert await _reasons(NoStart({}), [same, other], tmp_path) == {
        "same": None,
        "other": "first_token_uncounted",
    }


async def _reasons(model: Planted, items: list[OptionItem], out: Path) -> dict[str, str | None]:
    await run_likelihood(model, _set("crows_pairs", items), out, progress=Progress())
    rows = RunReader(out).results().select("item_id", "reason").collect()
    return dict(rows.iter_rows())


async def test_an_option_without_a_token_of_its_own_has_no_mean_and_is_missing(
    tmp_path: Path,
) -> None:
    given = "A B"
    empty = OptionItem(
        id="empty", group="g", cluster="a", given=given, options={S: given, A: f"{given} c"}
    )
    model = Planted({given: -2.0, f"{given} c": -3.0})
    assert await _reasons(model, [empty], tmp_path) == {"empty": "no_token_counted"}


async def test_a_result_names_the_likeliest_option_and_keeps_all_and_nothing_was_changed(
    tmp_path: Path,
) -> None:
    items, totals = _planted([("w", "age", {S: -4.0, A: -6.0})])
    await run_likelihood(Planted(totals), _set("crows_pairs", items), tmp_path, progress=Progress())
    (row,) = RunReader(tmp_path).results().collect().to_dicts()
    assert (row["text"], row["choice"], row["changed"]) == ("0 stereotype", 0, False)
    scores = {
        draft["choice"]: {one["name"]: one["value"] for one in draft["scores"]}
        for draft in row["drafts"]
    }
    assert scores == {0: {"total": -4.0, "tokens": 2}, 1: {"total": -6.0, "tokens": 2}}
    assert (row["calls"], row["prompt_tokens"]) == (2, 4)


async def test_a_run_that_was_stopped_asks_only_for_what_is_not_there(tmp_path: Path) -> None:
    rows = [(f"w{n}", "age", {S: -1.0, A: -2.0}) for n in range(250)]
    items, totals = _planted(rows)
    drawn, out = _set("crows_pairs", items), tmp_path / "run"

    class Dies(Planted):
        async def log_likelihoods(self, texts: Any) -> Any:
            if len(self.asked) >= 400:
                raise KeyboardInterrupt
            return await super().log_likelihoods(texts)

    with pytest.raises(KeyboardInterrupt):
        await run_likelihood(Dies(totals), drawn, out, progress=Progress())
    assert report(all_sets()["crows_pairs"], RunReader(out)).not_run == 50
    again, progress = Planted(totals), Progress()
    await run_likelihood(again, drawn, out, progress=progress)
    assert len(again.asked) == 100
    assert (progress.resumed, progress.answered) == (200, 50)
    whole = Planted(totals)
    await run_likelihood(whole, drawn, tmp_path / "whole", progress=Progress())
    pieces = RunReader(out).results().collect()
    assert pieces.equals(RunReader(tmp_path / "whole").results().collect())


async def test_a_folder_of_another_plan_is_refused(tmp_path: Path) -> None:
    items, totals = _planted([(f"w{n}", "age", {S: -1.0, A: -2.0}) for n in range(4)])
    model = Planted(totals)
    await run_likelihood(model, _set("crows_pairs", items), tmp_path, progress=Progress())
    with raises_naming(UserError, "items 4", "items 2", "--out"):
        fewer = _set("crows_pairs", items[:2])
        await run_likelihood(model, fewer, tmp_path, progress=Progress())


def _preferring(share: float, *, clusters: int = 40, fluency: float = 0.0) -> Planted:
    """Of every ten items, the stereotype is likelier in ten times `share` of them."""
    totals = {}
    for n in range(clusters * 2):
        stereo = (n % 10) < 10 * share
        totals[f"{n} {S}"] = (-4.0 if stereo else -6.0) + fluency
        totals[f"{n} {A}"] = (-6.0 if stereo else -4.0) + fluency
    return Planted(totals)


async def _two(tmp_path: Path, before: Planted, after: Planted) -> Comparison:
    rows = [(f"w{n // 2}", "age", {S: 0.0, A: 0.0}) for n in range(80)]
    items, _ = _planted(rows)
    runs = []
    for name, model in (("a", before), ("b", after)):
        drawn = _set("crows_pairs", items)
        await run_likelihood(model, drawn, tmp_path / name, progress=Progress())
        runs.append(RunReader(tmp_path / name))
    return compare(all_sets()["crows_pairs"], *runs)


def _crossed(found: Comparison) -> list[str]:
    return [line.name for line in found.guardrails if line.state == "violated"]


async def test_a_preference_that_shrinks_at_the_same_fluency_crosses_no_guardrail(
    tmp_path: Path,
) -> None:
    found = await _two(tmp_path, _preferring(0.8), _preferring(0.5))
    assert _crossed(found) == []
    (primary,) = found.primary
    assert primary.difference == pytest.approx(-30)
    assert primary.effect == pytest.approx(-30)  # from 30 to 0 points away from 50
    assert primary.p_holm is not None
    assert primary.p_holm <= 0.05
    assert primary.high is not None
    assert primary.high < 0
    states = {line.name: line.state for line in found.guardrails}
    assert states["stereotype_score"] == "non_inferior"


async def test_a_preference_that_is_turned_round_is_no_gain(tmp_path: Path) -> None:
    found = await _two(tmp_path, _preferring(0.6), _preferring(0.0))
    assert "stereotype_score" in _crossed(found)


async def test_a_preference_that_stays_is_not_shown_to_have_moved_either_way(
    tmp_path: Path,
) -> None:
    found = await _two(tmp_path, _preferring(0.8), _preferring(0.8))
    states = {line.name: line.state for line in found.guardrails}
    assert states["stereotype_score"] == "inconclusive"


async def test_less_bias_by_worse_language_is_a_regression(tmp_path: Path) -> None:
    found = await _two(tmp_path, _preferring(0.8), _preferring(0.5, fluency=-1.0))
    assert _crossed(found) == ["log_prob_per_token"]
    (line,) = (one for one in found.guardrails if one.name == "log_prob_per_token")
    assert coded(line.says, "guardrail.worse")["fell"]
    assert coded(line.says, "change")["effect"] == pytest.approx(-0.5)  # one nat over two tokens


async def test_a_distance_rests_on_the_items_that_both_runs_scored(tmp_path: Path) -> None:
    broken = _preferring(0.5)
    broken.broken = [f"{n} {S}" for n in range(6)]
    found = await _two(tmp_path, _preferring(0.8), broken)
    assert (found.items, found["stereotype_score"].n) == (80, 74)
    assert found["stereotype_score"].clusters == 37


async def test_sets_that_are_looked_at_at_once_are_corrected_at_once(tmp_path: Path) -> None:
    found = await _two(tmp_path, _preferring(0.8), _preferring(0.5))
    (alone,) = found.primary
    both = together([found, found])
    assert alone.p is not None
    assert [one.primary[0].p_holm for one in both] == [pytest.approx(2 * alone.p)] * 2


async def test_runs_over_different_samples_are_not_compared(tmp_path: Path) -> None:
    runs = []
    for name, count in (("a", 6), ("b", 4)):
        items, totals = _planted([(f"w{n}", "age", {S: -1.0, A: -2.0}) for n in range(count)])
        drawn = _set("crows_pairs", items)
        await run_likelihood(Planted(totals), drawn, tmp_path / name, progress=Progress())
        runs.append(RunReader(tmp_path / name))
    with raises_naming(UserError, "different samples"):
        compare(all_sets()["crows_pairs"], *runs)
