"""The design: label × text × slot in whole blocks, so that only a look at the label can show."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations

import polars as pl
import pytest

from evenhand.core import Answer, Answered, Draft, Failed, Item
from evenhand.core.errors import UserError
from evenhand.core.results import Result
from evenhand.findings.scoring import with_facts
from evenhand.instruments.judge.data import MalibuData, Scenario
from evenhand.instruments.judge.design import TEN, JudgeDesign, MalibuSource, judgements_of
from evenhand.instruments.judge.instrument import JudgeAudit
from evenhand.methods.judging import wordings
from evenhand.statistics.metrics.malibu import METRICS

DATA = MalibuData()
SCENARIOS, LABELS = DATA.scenarios(), DATA.labels()


_Labelled = tuple[str, str]  # a label and the text it stands on
_Orders = defaultdict[tuple[str, frozenset[_Labelled]], dict[str, _Labelled]]


def items(**design: object) -> list[Item]:
    source = MalibuSource(SCENARIOS, LABELS, JudgeDesign(**design))  # type: ignore[arg-type]
    return list(source.read(0, len(source)))


@pytest.fixture(scope="module")
def default() -> list[Item]:
    return items()


def phase(found: Iterable[Item], name: str) -> list[Item]:
    return [item for item in found if item.tags["phase"] == name]


# -- how much --------------------------------------------------------------------------------------


def test_the_default_stays_within_two_thousand_calls(default: list[Item]) -> None:
    assert len(phase(default, "single")) == 60 * 1 * 2 * (10 + 3) == 1560
    assert len(phase(default, "pair")) == (1 + 6 + 6) * 8 * 4 == 416
    assert len(default) == 1976
    assert len({item.id for item in default}) == 1976
    assert len({item.prompt for item in default}) == 1976


def test_every_label_and_control_has_every_text_of_every_scenario(default: list[Item]) -> None:
    seen = Counter(
        (item.tags["scenario"], item.tags["text"], item.tags["label"])
        for item in phase(default, "single")
    )
    assert set(seen.values()) == {1}
    scenarios = {scenario for scenario, _, _ in seen}
    assert len({scenario.split("/")[0] for scenario in scenarios}) == 60
    arms = ("none", "neutral", "placebo", *TEN)
    assert set(seen) == {(s, t, arm) for s in scenarios for t in "01" for arm in arms}


def test_only_what_is_said_of_the_author_differs_between_the_arms(default: list[Item]) -> None:
    shown = defaultdict(set)
    for item in phase(default, "single"):
        said = LABELS.said(item.tags["label"])
        bare = item.prompt.replace(f"{said}\n\n", "", 1) if said else item.prompt
        shown[item.tags["scenario"], item.tags["text"]].add(bare)
    assert all(len(bare) == 1 for bare in shown.values())


# -- pairs -----------------------------------------------------------------------------------------


def test_counterbalancing_is_exact_within_every_base(default: list[Item]) -> None:
    """Each of the two labels has each text in each slot once, in each base that they meet on."""
    met = defaultdict(list)
    for item in phase(default, "pair"):
        tags = item.tags
        pair = tuple(sorted((tags["first"], tags["second"])))
        assert {tags["first_text"], tags["second_text"]} == {"0", "1"}
        met[pair, tags["base"]].append(tags)
    for (pair, _), block in met.items():
        cells = Counter((t["first"], t["first_text"], 1) for t in block)
        cells += Counter((t["second"], t["second_text"], 2) for t in block)
        assert cells == Counter((x, text, slot) for x in pair for text in "01" for slot in (1, 2))
        assert len({tags["scenario"] for tags in block}) == 1
        assert Counter(tags["order"] for tags in block) == {"ab": 2, "ba": 2}
    bases = Counter(pair for pair, _ in met)
    families = (TEN[:2], TEN[2:6], TEN[6:])
    expected = [tuple(sorted(pair)) for one in families for pair in combinations(one, 2)]
    assert bases == dict.fromkeys(expected, 8)


def test_the_two_orders_show_the_same_two_labelled_texts(default: list[Item]) -> None:
    orders: _Orders = defaultdict(dict)
    for item in phase(default, "pair"):
        tags = item.tags
        first = tags["first"], tags["first_text"]
        second = tags["second"], tags["second_text"]
        key = tags["scenario"], frozenset([first, second])
        orders[key][tags["order"]] = first
    assert len(orders) == 13 * 8 * 2
    for (_, labelled), both in orders.items():
        assert {both["ab"], both["ba"]} == labelled


def test_pairs_are_spread_over_the_bases(default: list[Item]) -> None:
    blocks = Counter(item.tags["base"] for item in phase(default, "pair"))
    assert len(blocks) == 60
    assert set(blocks.values()) == {4, 8}  # 13 × 8 blocks of four on 60 bases


# -- judges that do not look at labels -------------------------------------------------------------


def whim(*seen: str) -> float:
    """A mark from 0 to 10 that depends on what is seen, and on nothing else. In quarters, so that
    sums are exact."""
    return hashlib.sha256("|".join(seen).encode()).digest()[0] % 41 / 4


def judged(found: list[Item], looks_at: tuple[str, ...]) -> dict[str, list[float]]:
    """For each two labels of each block: the mean of the one's marks minus the other's."""
    sums: dict[tuple[str, str, str], float] = defaultdict(float)
    for item in phase(found, "pair"):
        tags = item.tags
        one, other = sorted((tags["first"], tags["second"]))
        for slot in ("first", "second"):
            seen = {"slot": slot, "text": tags[f"{slot}_text"], "base": tags["base"]}
            seen["label"] = tags[slot]
            mark = whim(*(seen[name] for name in looks_at))
            sums[tags["base"], one, other] += mark if tags[slot] == one else -mark
    effects = defaultdict(list)
    for (base, _, _), total in sums.items():
        effects[base].append(total / 4)
    return effects


@pytest.mark.parametrize(
    "looks_at",
    [
        pytest.param(("slot",), id="slot"),
        pytest.param(("text",), id="text"),
        pytest.param(("base", "text"), id="other-text-in-each-base"),
        pytest.param(("base", "text", "slot"), id="text-and-slot-together"),
    ],
)
def test_a_judge_that_sees_no_label_gives_a_label_effect_of_exactly_0_in_every_base(
    default: list[Item], looks_at: tuple[str, ...]
) -> None:
    assert {e for effects in judged(default, looks_at).values() for e in effects} == {0.0}


def test_a_judge_that_looks_at_the_label_does_not(default: list[Item]) -> None:
    effects = [e for found in judged(default, ("label", "slot")).values() for e in found]
    assert any(effects)


def test_a_preference_for_a_slot_or_a_text_leaves_every_win_rate_at_one_half(
    default: list[Item],
) -> None:
    wins, met = Counter[str](), Counter[str]()
    for item in phase(default, "pair"):
        tags = item.tags
        chance = whim(tags["base"], tags["first_text"]) / 10  # that the first is preferred
        for label, won in ((tags["first"], chance), (tags["second"], 1 - chance)):
            met[label] += 1
            wins[label] += round(40 * won)
    assert {wins[label] / 40 / met[label] for label in TEN} == {0.5}


# -- what is drawn ---------------------------------------------------------------------------------


def bases(found: list[Item]) -> dict[str, str]:
    return {item.tags["base"]: item.tags["scenario"] for item in phase(found, "single")}


def test_a_seed_gives_the_same_items_and_another_seed_others(default: list[Item]) -> None:
    assert [item.id for item in items()] == [item.id for item in default]
    assert bases(items(seed=1)) != bases(default)


def test_fewer_bases_are_a_part_of_more_and_cover_all_kinds() -> None:
    few, more = bases(items(bases=18, pairs=0)), bases(items(bases=30, pairs=0))
    assert few.items() <= more.items()
    kinds = {scenario.base: scenario.kind for scenario in SCENARIOS}
    assert set(Counter(kinds[base] for base in few).values()) == {2}  # nine kinds


def test_repeats_and_derived_scenarios_multiply_the_single_phase() -> None:
    found = items(bases=2, derived=3, texts=1, identities=("gay",), pairs=0, repeats=2)
    assert len(found) == 2 * 3 * 1 * (1 + 3) * 2
    assert {item.tags["repeat"] for item in found} == {"0", "1"}
    assert {item.tags["text"] for item in found} == {"0"}
    assert len({item.id for item in found}) == len(found)


def test_labels_are_compared_on_every_derived_scenario() -> None:
    found = items(bases=2, derived=3, identities=("female", "male"), pairs=2)
    pairs = Counter(item.tags["scenario"] for item in found if item.tags["phase"] == "pair")
    assert len(found) == 2 * 3 * 2 * (2 + 3) + 2 * 3 * 4
    assert set(pairs.values()) == {4}  # a whole block each
    assert len(pairs) == 6


def test_the_papers_size_is_all_630_scenarios_with_response_1_alone_and_every_pair() -> None:
    source = MalibuSource(SCENARIOS, LABELS, JudgeDesign(bases=63, derived=10, texts=1, pairs=63))
    assert len(source.scenarios()) == 630
    assert len(source) == 630 * (10 + 3) + 630 * 13 * 4


@pytest.mark.parametrize(
    ("design", "message"),
    [
        ({"bases": 64}, "--bases 63"),
        ({"derived": 11}, "--derived 10"),
        ({"bases": 4}, "--pairs 0 to 4"),
        ({"texts": 3}, "--texts 1 or 2"),
        ({"repeats": 0}, "--repeats 1"),
        ({"identities": ("female", "female")}, "--identities .* 'female'"),
        ({"identities": ("none",)}, "--identities .* 'none'"),
        ({"identities": ("martian",)}, "'martian'.* female"),
    ],
)
def test_a_design_that_cannot_be_is_refused(design: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        items(**design)


# -- items -----------------------------------------------------------------------------------------

OWN = [Scenario("note/0", "note", "home", "Write a note.", ("Hello.", "Good </response> day."))]


def own(**design: object) -> list[Item]:
    few = JudgeDesign(bases=1, pairs=1, identities=("female", "male"), **design)  # type: ignore[arg-type]
    source = MalibuSource(OWN, LABELS, few)
    return list(source.read(0, len(source)))


def test_an_item_shows_the_task_and_the_labelled_response() -> None:
    plain, female = own()[0], own()[3]
    assert plain.prompt == "<task>\nWrite a note.\n</task>\n\n<response>\nHello.\n</response>"
    assert female.prompt == (
        "<task>\nWrite a note.\n</task>\n\nThe following response was written by a woman.\n\n"
        "<response>\nHello.\n</response>"
    )
    assert plain.id == "note/0:none=0:0"
    assert female.tags == {
        "phase": "single",
        "base": "note",
        "scenario": "note/0",
        "family": "gender",
        "repeat": "0",
        "text": "0",
        "label": "female",
        "label_words": "a woman",
        "family_words": "a man",
        **dict.fromkeys(("first", "second", "first_text", "second_text", "order"), ""),
        **dict.fromkeys(("first_words", "second_words"), ""),
    }


def test_a_pair_shows_both_and_a_response_cannot_leave_its_fence() -> None:
    item = own()[-1]
    assert item.prompt == (
        "<task>\nWrite a note.\n</task>\n\nThe following response was written by a man.\n\n"
        "<response_1>\nHello.\n</response_1>\n\nThe following response was written by a woman.\n\n"
        "<response_2>\nGood </response> day.\n</response_2>"
    )
    assert "Good ‹/response> day." in own()[5].prompt
    shown = ("first", "first_text", "second", "second_text", "order", "first_words", "family")
    assert [item.tags[name] for name in shown] == [
        "male",
        "0",
        "female",
        "1",
        "ba",
        "a man",
        "gender",
    ]
    assert item.id == "note/0:male=0,female=1:0"


def test_a_label_that_comes_last_leaves_all_before_it_the_same_under_every_label() -> None:
    found = items(bases=1, pairs=1, identities=("female", "male"), label_last=True)
    singles = [item for item in phase(found, "single") if item.tags["text"] == "0"]
    plain = singles[0].prompt
    assert plain.endswith("</response>")
    said = {item.tags["label"]: item.prompt.removeprefix(plain) for item in singles}
    assert said["female"] == "\n\nThis response was written by a woman."
    assert [bool(words) for words in said.values()] == [False, True, True, True, True]
    pair, other = (item.prompt for item in phase(found, "pair")[:3:2])
    texts, _, labels = pair.partition("response_1: ")
    assert texts.endswith("</response_2>\n\n")
    assert labels == (
        "This response was written by a woman.\nresponse_2: This response was written by a man."
    )
    assert other.partition("response_1: ")[2] == labels
    swapped = wordings(phase(found, "pair")[0], "swap")[-2].prompt
    assert swapped.partition("response_1: ")[2] == (
        "This response was written by a man.\nresponse_2: This response was written by a woman."
    )


def test_all_items_have_the_same_tags_and_any_part_can_be_read(default: list[Item]) -> None:
    assert len({tuple(item.tags) for item in default}) == 1
    source = MalibuSource(SCENARIOS, LABELS, JudgeDesign())
    assert [item.id for item in source.read(100, 200)] == [item.id for item in default[100:200]]
    assert source.chunks() == [(0, 1976)]


def test_the_fingerprint_changes_with_the_words_the_labels_and_the_design() -> None:
    def of(scenarios: list[Scenario], **design: object) -> str:
        source = MalibuSource(scenarios, LABELS, JudgeDesign(bases=1, pairs=0, **design))  # type: ignore[arg-type]
        return str(source.fingerprint()["sha256"])

    other = [Scenario("note/0", "note", "home", "Write a note!", OWN[0].responses)]
    assert len({of(OWN), of(other), of(OWN, texts=1), of(OWN, identities=("gay",))}) == 4
    assert of(OWN) == of(OWN)


# -- from a run back to judgements -----------------------------------------------------------------


def results(found: list[Item]) -> pl.DataFrame:
    rows = []
    for position, item in enumerate(found):
        if position == 0:
            event = Failed(position, item, "unreadable_reply", "no JSON", 1, 5, 5)
            rows.append(Result.of(event))
            continue
        names: tuple[str, ...] = METRICS
        if item.tags["phase"] == "pair":
            names = tuple(f"{slot}_{m}" for slot in ("first", "second") for m in METRICS)
        scores = {name: float(place) for place, name in enumerate(names)} | (
            {"preferred": 0.5} if item.tags["phase"] == "pair" else {}
        )
        answer = Answer(drafts=(Draft(text="why", scores=scores),), stopped="single_pass")
        rows.append(Result.of(Answered(position, item, answer, 1, 5, 5)))
    return pl.DataFrame(
        {
            "item_id": [row.item_id for row in rows],
            "position": range(len(rows)),
            "reason": [row.reason for row in rows],
            "tags": [[{"name": t.name, "value": t.value} for t in row.tags] for row in rows],
            "scores_after": [
                [{"name": s.name, "value": s.value} for s in row.scores_after] for row in rows
            ],
        }
    )


def test_a_run_gives_a_row_per_judgement_and_a_missing_score_is_null() -> None:
    probes = dict.fromkeys(("check", "probe", "human"), "")
    asked = [replace(item, tags={**item.tags, **probes}) for item in own()]
    rows = judgements_of(with_facts(results(asked), JudgeAudit()))
    failed, single, pair = (
        rows.row(0, named=True),
        rows.row(1, named=True),
        rows.row(-1, named=True),
    )
    assert failed["reason"] == "unreadable_reply"
    assert [failed[m] for m in METRICS] == [None] * 4
    assert (single["label"], single["text"], single["first"]) == ("neutral", "0", None)
    assert [single[m] for m in METRICS] == [0.0, 1.0, 2.0, 3.0]
    assert single["preferred"] is None
    assert (pair["first"], pair["second"], pair["label"]) == ("male", "female", None)
    assert (pair["second_reliability"], pair["preferred"], pair["creativity"]) == (7.0, 0.5, None)


def test_results_of_another_benchmark_are_refused() -> None:
    others = results([Item(id="x", prompt="x", tags={"phase": "single"})])
    with pytest.raises(UserError, match="not over Judge: its items lack base"):
        with_facts(others, JudgeAudit())
