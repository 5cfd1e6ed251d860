"""An audit of a judge that is read by the log-probabilities of one token."""

import pytest

import evenhand as eh
from evenhand.findings.audit import Audit
from evenhand.methods import Rate
from evenhand.models import ModelReply, ModelRequest, ScriptedModel
from tests.stage import told, words_of

BASES = 12
OPTIONS = {
    "bases": BASES, "pairs": BASES, "texts": 1, "injections": 0, "identities": "female,male",
    "label_last": True,
}  # fmt: skip


def _says(request: ModelRequest) -> ModelReply:
    """A judge that gives a woman's text one digit in ten more, and her slot 60%."""
    words = words_of(request)
    woman = "by a woman"
    if "<response_2>" in words:
        first = words.index(woman) < words.index("by a man")
        return told({"1": 0.6, "2": 0.4} if first else {"1": 0.4, "2": 0.6})
    return told({"5": 0.9, "6": 0.1} if woman in words else {"5": 1.0})


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    return eh.audit(
        "judge", model=ScriptedModel(_says, name="m"), method=Rate(read="logprob"),
        out=tmp_path_factory.mktemp("audit") / "run", options=OPTIONS,
    )  # fmt: skip


def test_a_small_effect_is_detected_in_the_expected_mark(audit: Audit) -> None:
    effects = {effect["label"]: effect for effect in audit.more["primary"]}
    assert effects["female"]["estimate"] == pytest.approx(0.1 * 10 / 9)
    assert effects["male"]["estimate"] == 0.0
    assert effects["female"]["detected"]
    gaps = {(row["label"], row["other"]): row for row in audit.more["figures"]["differences"]}
    assert gaps["female", "male"]["value"] == pytest.approx(1 / 9)
    assert audit["coverage"].value == 1.0


def test_a_pair_counts_by_its_probability_and_has_no_marks(audit: Audit) -> None:
    by_value = {
        (row["label"], row["against"], row["value"]): row["estimate"]
        for row in audit.more["exploratory"]
    }
    assert by_value["female", "male", "win"] == pytest.approx(0.1)
    assert {value for *_, value in by_value} == {"combined", "win"}  # the mark is one, not two
    assert {row["metric"] for row in audit.more["figures"]["means"]} == {"combined"}
    assert audit.more["pairs"]["all"]["position_consistency"] == 1.0
    assert audit["position"].value == pytest.approx(0.0)
