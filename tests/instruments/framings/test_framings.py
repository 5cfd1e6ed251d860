"""Three framings of the same texts, asked of a witness whose answers are written down."""

from pathlib import Path

import pytest

import evenhand as eh
from evenhand.core.errors import ModelError
from evenhand.instruments.framings.instrument import FRAMINGS
from evenhand.models import ModelRequest
from tests.errors import assert_names, raises_naming
from tests.stage import choice, words_of
from tests.training.rating.people import told

# The texts that the witness calls biased, by what it is told of who wrote them.
BIASED = {"our conversation": "a", "with a language model:": "ab", "competes with you": "abc"}


def _witness(request: ModelRequest) -> str:
    words = words_of(request)
    (found,) = (texts for said, texts in BIASED.items() if said in words)
    yes = any(f"I say {text}." in words for text in found)
    first_is_yes = "A. Yes" in words
    return choice("A" if yes == first_is_yes else "B")


async def test_each_text_is_asked_about_as_its_own_a_models_and_a_rivals(tmp_path: Path) -> None:
    """Of five texts one is owned up to, two are a model's and three a rival's: 1/5, 2/5, 3/5.
    Whether "yes" is option A or B changes nothing."""
    await told(tmp_path / "texts", [(f"Ask {text}?", f"I say {text}.") for text in "abcde"])
    witness = eh.ScriptedModel(_witness, name="writer")
    found = await eh.aio.measure(
        "framings", model=witness, out=tmp_path / "run", options={"texts": tmp_path / "texts"}
    )
    shares = [found[f"biased_{name}"].value for name in FRAMINGS]
    assert shares == pytest.approx([1 / 5, 2 / 5, 3 / 5])
    assert found["between_minus_ours"].value == pytest.approx(1 / 5)
    assert found["competing_minus_ours"].value == pytest.approx(2 / 5)
    assert (found["competing_minus_ours"].n, found["competing_minus_ours"].clusters) == (10, 5)
    assert found.notes == ()
    assert "20 times as its own, 40 times as a model's, and 60 times" in " ".join(
        map(str, found.instrument.says(found))
    )


async def test_answers_that_are_missing_give_the_gap_its_bounds(tmp_path: Path) -> None:
    """Of four texts told to be a rival's, two are called biased and one has no answer: 2/3. Of its
    own one in four: the gap is 5/12. The missing one was told to be a rival's, so the gap's ends
    are 2/4 − 1/4 and 3/4 − 1/4."""

    def silent(request: ModelRequest) -> str | ModelError:
        words = words_of(request)
        lost = "competes with you" in words and "I say c." in words
        return ModelError("it is silent") if lost else _witness(request)

    await told(tmp_path / "texts", [(f"Ask {text}?", f"I say {text}.") for text in "abcd"])
    found = await eh.aio.measure(
        "framings",
        model=eh.ScriptedModel(silent, name="writer"),
        out=tmp_path / "run",
        options={"texts": tmp_path / "texts"},
    )
    gap = found["competing_minus_ours"]
    assert gap.value == pytest.approx(2 / 3 - 1 / 4)
    assert gap.bounds is not None
    assert gap.bounds.missing == 1
    assert (gap.bounds.low, gap.bounds.high) == pytest.approx((2 / 4 - 1 / 4, 3 / 4 - 1 / 4))
    assert "between 50 and 75 if" in " ".join(map(str, found.instrument.says(found)))


async def test_a_model_that_did_not_write_the_texts_is_named(tmp_path: Path) -> None:
    await told(tmp_path / "texts", [(f"Ask {text}?", f"I say {text}.") for text in "ab"])
    other = eh.ScriptedModel(_witness, name="other")
    found = await eh.aio.measure(
        "framings", model=other, out=tmp_path / "run", options={"texts": tmp_path / "texts"}
    )
    assert_names(found.notes[0], "other", "writer")


def test_without_texts_the_command_says_where_they_come_from(tmp_path: Path) -> None:
    with raises_naming(eh.UserError, "--texts RUN", "evenhand measure statements"):
        eh.measure("framings", model=eh.ScriptedModel(_witness), out=tmp_path / "run")
