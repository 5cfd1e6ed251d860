"""The audit of judges of political answers: the planted pairs, and judges that must not pass."""

import itertools
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import evenhand as eh
from evenhand.agents import Cast
from evenhand.core import Item
from evenhand.experiments.certificates import certificates_of
from evenhand.findings.audit import AuditCheck, checks_of, overall
from evenhand.findings.certificate import Certificate
from evenhand.findings.report import estimates_over_all
from evenhand.findings.totals import RunTotals
from evenhand.instruments import DataFolder
from evenhand.instruments.judge.certificate import keep
from evenhand.instruments.political.data import prompt_pairs
from evenhand.instruments.political.sides import by_pair
from evenhand.instruments.political.slant_audit import SlantAudit, planted
from evenhand.instruments.political.slant_certificate import required_of
from evenhand.methods import Rate
from evenhand.methods.two_sides import SCORES, ComparedByDigit, CompareSides
from tests.errors import raises_naming
from tests.stage import inside, told

from .scripted import SHORT, always, careful, judge

SCORED_AS = {"first": (1.0, 0.0), "second": (0.0, 0.0), "same": (0.5, 1.0)}
_Says = Callable[[Item, str, str], str | None]  # of an item with its first and its second answer


def _checks(says: _Says) -> dict[str, AuditCheck]:
    """The checks of a judge who says this of each item; None is a reply that cannot be read."""
    rows = []
    for position, item in enumerate(planted()):
        answers = (inside("answer_1", item.prompt), inside("answer_2", item.prompt))
        preferred = says(item, *answers)
        values = None if preferred is None else SCORED_AS[preferred]
        scores = [] if values is None else [
            {"name": name, "value": value}
            for name, value in itertools.zip_longest(SCORES, values, fillvalue=0.0)
        ]  # fmt: skip
        reason = None if preferred is not None else "unreadable_reply:not_json"
        rows.append({"item_id": item.id, "position": position, "reason": reason,
                     "scores_after": scores, **item.tags})  # fmt: skip
    kind = pl.List(pl.Struct({"name": pl.String, "value": pl.Float64}))
    table = pl.DataFrame(rows, schema_overrides={"scores_after": kind, "reason": pl.String})
    audit = SlantAudit()
    estimates = estimates_over_all(audit, RunTotals.of(audit, [audit.outcomes(table)]))
    return {check.name: check for check in checks_of(audit.measures, estimates)}


def _by(prefers: Callable[[str, str], str]) -> _Says:
    return lambda item, first, second: prefers(first, second)


def _toward(side: str) -> _Says:
    """A judge that takes this side where no answer has a fault."""

    def says(item: Item, first: str, second: str) -> str:
        seen = careful(first, second)
        on_left = "first" if item.tags["order"] == "left_first" else "second"
        other = {"first": "second", "second": "first"}[on_left]
        return (on_left if side == "left" else other) if seen == "same" else seen

    return says


# -- the planted pairs -----------------------------------------------------------------------------


def test_each_topic_has_a_whole_pair_and_the_fault_on_either_side_in_both_orders() -> None:
    items = list(planted())
    assert len({item.id for item in items}) == len(items) == 24 * 3 * 2
    assert Counter(item.tags["against"] for item in items) == {
        "neither": 48, "left": 48, "right": 48,
    }  # fmt: skip
    assert Counter(item.tags["order"] for item in items) == {"left_first": 72, "right_first": 72}
    topics = {item.tags["topic"]: item.tags["fault"] for item in items}
    assert Counter(topics.values()) == {"cut": 8, "undercut": 8, "hedged": 8}


def test_both_arguments_of_a_topic_are_about_equally_long_and_faults_stand_where_planted() -> None:
    for item in planted():
        texts = [inside(f"answer_{place}", item.prompt) for place in (1, 2)]
        lengths = sorted(len(text.split()) for text in texts)
        if item.tags["against"] == "neither":
            assert SHORT < lengths[0] <= lengths[1] <= 1.2 * lengths[0], item.id
            assert careful(*texts) == "same"
        else:
            weak_first = item.tags["order"] == f"{item.tags['against']}_first"
            assert careful(*texts) == ("second" if weak_first else "first"), item.id


def test_no_planted_stance_is_one_of_the_benchmark(data_folder: Path) -> None:
    if not (data_folder / "political_neutrality").is_dir():
        pytest.skip(f"no political pairs at {data_folder}; name their folder in EVENHAND_DATA")
    pairs = prompt_pairs(DataFolder(local=data_folder, cache=Path("none")))
    asked = " ".join(prompt for pair in pairs for prompt in pair.prompts).casefold()
    for item in planted():
        stance = inside("request_1", item.prompt).partition("arguing that ")[2].rstrip(".")
        assert stance
        assert stance.casefold() not in asked


# -- judges ----------------------------------------------------------------------------------------


def test_a_judge_who_sees_every_planted_fault_passes_each_check() -> None:
    """All of 48 in 24 topics: the lower end of 1.0 is 0.025^(1/24) = 0.858."""
    checks = _checks(_by(careful))
    assert overall(checks.values()) == "pass"
    assert checks["slant_detected"].value == 1.0
    assert checks["slant_detected"].low == pytest.approx(0.025 ** (1 / 24), abs=2e-3)
    assert (checks["lean"].value, checks["first_position"].value) == (0, 0)


@pytest.mark.parametrize(
    ("says", "failed", "values"),
    [
        (_by(always("first")), {"slant_detected", "first_position"}, (0.0, 0.0, 1.0)),
        (_by(always("second")), {"slant_detected", "first_position"}, (0.0, 0.0, -1.0)),
        (_by(always("same")), {"slant_detected"}, (0.0, 0.0, 0.0)),
    ],
    ids=["first", "second", "same"],
)
def test_a_judge_who_reads_the_position_or_nothing_fails(
    says: _Says, failed: set[str], values: tuple[float, ...]
) -> None:
    checks = _checks(says)
    assert {name for name, check in checks.items() if check.state == "fail"} == failed
    names = ("slant_detected", "lean", "first_position")
    assert tuple(checks[name].value for name in names) == values


@pytest.mark.parametrize(("side", "lean"), [("left", -1 / 3), ("right", 1 / 3)])
def test_a_judge_who_sees_faults_but_takes_a_side_else_does_not_pass(
    side: str, lean: float
) -> None:
    """Of three pairs of a topic the whole one is decided by the side: a third."""
    checks = _checks(_toward(side))
    assert checks["slant_detected"].value == 1.0
    assert checks["lean"].value == pytest.approx(lean)
    assert checks["lean"].state != "pass"
    assert overall(checks.values()) != "pass"


def test_a_judge_who_forgives_the_faults_of_one_side_fails() -> None:
    """It sees a fault against the left alone: 24 of 48, and prefers the right by a third."""

    def says(item: Item, first: str, second: str) -> str:
        return "same" if item.tags["against"] == "right" else careful(first, second)

    checks = _checks(says)
    assert checks["slant_detected"].value == 0.5
    assert checks["slant_detected"].state == "fail"
    assert checks["lean"].value == pytest.approx(1 / 3)


def test_verdicts_that_cannot_be_read_never_help() -> None:
    """One order of every pair of six topics is lost: 18 of 144 judgments, and 12 of 48 pairs with a
    fault, which count as not detected at the lower end."""
    lost = {item.tags["topic"] for item in itertools.islice(planted(), 36)}
    assert len(lost) == 6

    def says(item: Item, first: str, second: str) -> str | None:
        gone = item.tags["topic"] in lost and item.tags["order"] == "right_first"
        return None if gone else careful(first, second)

    checks = _checks(says)
    assert checks["slant_detected"].value == 1.0
    assert checks["slant_detected"].state == "inconclusive"
    assert checks["slant_detected"].n == 36
    assert overall(checks.values()) == "inconclusive"


def test_another_method_is_refused() -> None:
    audit = SlantAudit()
    with raises_naming(eh.UserError, "rate", "--method"):
        audit.worded(Rate(), audit.options_from({}))


# -- both orders -----------------------------------------------------------------------------------


def _verdicts(*rows: tuple[str, float | None]) -> pl.DataFrame:
    names = [name for name in SCORES if name != "preferred"]
    return pl.DataFrame(
        [{"item_id": id_, "preferred": p, **dict.fromkeys(names, 0.0)} for id_, p in rows]
    )


def test_the_two_orders_of_a_pair_become_one_preference() -> None:
    """a: the right answer in both orders. b: the first one in both. c: left, then same. d: one
    verdict is missing."""
    pairs = by_pair(
        _verdicts(("a:left_first", 0.0), ("a:right_first", 1.0),
                  ("b:left_first", 1.0), ("b:right_first", 1.0),
                  ("c:left_first", 1.0), ("c:right_first", 0.5),
                  ("d:left_first", 1.0), ("d:right_first", None))
    )  # fmt: skip
    assert pairs["preference"].to_list() == [1.0, 0.0, -0.5, None]
    assert pairs["toward_first"].to_list() == [0.0, 1.0, 0.5, None]
    assert pairs.select("least", "most").rows() == [(1, 1), (-1, 1), (-1, 0), (None, None)]


# -- the certificate -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """Of a whole audit of the careful judge."""
    folder = tmp_path_factory.mktemp("certificates")
    out = tmp_path_factory.mktemp("audit") / "run"
    audit = eh.audit("slant", model=judge(), out=out, certificates=folder)
    assert audit.state == "pass"
    [path] = folder.glob("*.json")
    assert path.read_bytes() == (out / "slant-certificate.json").read_bytes()
    return Certificate.from_bytes(path.read_bytes(), str(path))


def test_a_certificate_holds_for_this_model_and_this_reading_alone(
    certificate: Certificate, tmp_path: Path
) -> None:
    keep(certificate, tmp_path)

    def passes(model: eh.ScriptedModel, method: CompareSides) -> bool:
        [(looked_up, lookup)] = certificates_of(method, Cast(model), tmp_path)
        assert (looked_up.role, looked_up.audit) == ("judge", "slant")
        return lookup.passes

    assert passes(judge(), CompareSides())
    assert not passes(judge(name="another"), CompareSides())
    assert not passes(judge(), CompareSides(read="logprob"))
    assert certificate.lacking(required_of(CompareSides(), "careful").checks) == []


def test_a_certificate_with_a_wider_bound_or_other_pairs_does_not_hold(
    certificate: Certificate, tmp_path: Path
) -> None:
    wider = {**certificate.margins, "lean": 0.5}
    other = {**certificate.benchmark, "planted": "0" * 64}
    for change in ({"margins": wider}, {"benchmark": other}):
        keep(certificate.model_copy(update=change).sealed(), tmp_path)
    [(_, lookup)] = certificates_of(CompareSides(), Cast(judge()), tmp_path)
    assert lookup.certificate is None
    assert re.search("planted|margins", lookup.problem)


def test_a_failed_audit_stands_beside_an_older_pass(
    certificate: Certificate, tmp_path: Path
) -> None:
    checks = [check.model_copy(update={"state": "fail"}) if check.name == "lean" else check
              for check in certificate.checks]  # fmt: skip
    later = {"checks": checks, "state": "fail"}
    keep(certificate, tmp_path)
    keep(certificate.model_copy(update=later).sealed(), tmp_path)
    [(_, lookup)] = certificates_of(CompareSides(), Cast(judge()), tmp_path)
    assert not lookup.passes
    assert lookup.certificate is not None
    assert lookup.certificate.state == "fail"


# -- by log-probabilities --------------------------------------------------------------------------


def test_a_judge_read_by_log_probabilities_gives_shares() -> None:
    """With 0.6 on the first, 0.1 on the second and 0.3 on neither: 0.6 + 0.15 = 0.75, even 0.3."""
    [sample] = told({"1": 0.6, "2": 0.1, "0": 0.3}).samples
    scores = ComparedByDigit.read_sample(sample).scores()
    assert scores == pytest.approx({"preferred": 0.75, "same": 0.3})
    assert CompareSides(read="logprob").judge.reply is ComparedByDigit
