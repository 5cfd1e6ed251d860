"""Local weights: each token's log-probability against a loop that reads one token at a time."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from evenhand.core.errors import UserError
from evenhand.models.likelihood import LikelihoodFailure, TokenLogprobs
from evenhand.training.local_likelihood import LocalLikelihood
from tests.errors import raises_naming

TEXTS = ("The nurse said that she", "a", "Grüße, 北京!", "He is a plumber.", "x" * 40)


def _naively(folder: Path, text: str, start: str = "<s>") -> list[float]:
    """For each token a whole pass over the start token and what stands before it."""
    import torch  # noqa: PLC0415
    from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    found = []
    for place, token in enumerate(ids):
        before = [tokenizer.convert_tokens_to_ids(start), *ids[:place]]
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor([before])).logits[0, -1]
        found.append(float(logits.double().log_softmax(-1)[token]))
    return found


async def _of(model: LocalLikelihood, *texts: str) -> list[TokenLogprobs]:
    found = await model.log_likelihoods(texts)
    assert all(isinstance(one, TokenLogprobs) for one in found)
    return [one for one in found if isinstance(one, TokenLogprobs)]


@pytest.mark.parametrize("starts", [False, True])
async def test_every_token_has_the_probability_that_one_pass_per_token_gives(
    starts: bool, tiny: Path, tiny_with_start: Path
) -> None:
    folder = tiny_with_start if starts else tiny
    found = await _of(LocalLikelihood(folder), *TEXTS)
    for text, one in zip(TEXTS, found, strict=True):
        assert list(one.logprobs) == pytest.approx(_naively(folder, text), abs=1e-5)
        assert one.uncounted is None


async def test_neither_company_nor_filling_changes_a_text(tiny: Path) -> None:
    alone = [one for text in TEXTS for one in await _of(LocalLikelihood(tiny), text)]
    together = await _of(LocalLikelihood(tiny), *TEXTS)
    backwards = await _of(LocalLikelihood(tiny, tokens_at_once=70), *reversed(TEXTS))
    for one, two, three in zip(alone, together, reversed(backwards), strict=True):
        assert one.logprobs == pytest.approx(two.logprobs, abs=1e-5)
        assert one.logprobs == pytest.approx(three.logprobs, abs=1e-5)


async def test_a_text_that_is_too_long_or_empty_has_a_reason_and_no_number(tiny: Path) -> None:
    long, empty, fine = await LocalLikelihood(tiny).log_likelihoods(["x" * 64, "", "x" * 63])
    assert isinstance(long, LikelihoodFailure)
    assert long.reason == "too_long"
    assert isinstance(empty, LikelihoodFailure)
    assert empty.reason == "empty"
    assert isinstance(fine, TokenLogprobs)


async def test_another_start_token_stands_before_every_token_of_a_text(tiny: Path) -> None:
    (found,) = await _of(LocalLikelihood(tiny, start="Q"), TEXTS[0])
    assert list(found.logprobs) == pytest.approx(_naively(tiny, TEXTS[0], "Q"), abs=1e-5)
    (usual,) = await _of(LocalLikelihood(tiny), TEXTS[0])
    assert found.logprobs[-1] != pytest.approx(usual.logprobs[-1], abs=1e-5)


def test_the_token_that_separates_documents_comes_before_that_of_a_chat(
    tiny: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "chat"
    shutil.copytree(tiny, folder)
    described: dict[str, Any] = LocalLikelihood(tiny).describe()
    assert (described["start"], len(described["sha256"])) == ("<s>", 64)
    text = (folder / "tokenizer.json").read_text("utf-8")
    letter = '"x": '  # a token of its own in a model that reads bytes: it takes the name
    (folder / "tokenizer.json").write_text(text.replace(letter, '"<|endoftext|>": '), "utf-8")
    chat = LocalLikelihood(folder)
    assert chat.describe()["start"] == "<|endoftext|>"
    other = chat.after_another_start()
    assert other is not None
    assert other.describe()["start"] == "<s>"
    assert LocalLikelihood(tiny).after_another_start() is None


async def test_a_start_that_is_no_token_is_refused(tiny: Path) -> None:
    with raises_naming(UserError, "<nowhere>", "<s>"):
        await LocalLikelihood(tiny, start="<nowhere>").log_likelihoods(["a"])


def test_a_folder_without_safetensors_is_refused(tmp_path: Path) -> None:
    with raises_naming(UserError, tmp_path, ".safetensors", "train from-gguf"):
        LocalLikelihood(tmp_path)
