"""Local weights: each token's log-probability against a loop that reads one token at a time."""

from pathlib import Path
from typing import Any

import pytest

from evenhand.errors import UserError
from evenhand.models.likelihood import Failure, TokenLogprobs
from evenhand.training.local_likelihood import LocalLikelihood

TEXTS = ("The nurse said that she", "a", "Grüße, 北京!", "He is a plumber.", "x" * 40)


def _naively(folder: Path, text: str, *, starts: bool) -> list[float]:
    """For each token a whole pass over what stands before it, and over nothing else."""
    import torch  # noqa: PLC0415
    from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    start = tokenizer.bos_token_id
    found = []
    for place, token in enumerate(ids):
        before = [start, *ids[:place]] if starts or place == 0 else ids[:place]
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
        assert list(one.logprobs) == pytest.approx(_naively(folder, text, starts=starts), abs=1e-5)
        assert one.uncounted is None


async def test_neither_company_nor_filling_changes_a_text(tiny: Path) -> None:
    alone = [one for text in TEXTS for one in await _of(LocalLikelihood(tiny), text)]
    together = await _of(LocalLikelihood(tiny), *TEXTS)
    backwards = await _of(LocalLikelihood(tiny, tokens_at_once=70), *reversed(TEXTS))
    for one, two, three in zip(alone, together, reversed(backwards), strict=True):
        assert one.logprobs == pytest.approx(two.logprobs, abs=1e-5)
        assert one.logprobs == pytest.approx(three.logprobs, abs=1e-5)


async def test_a_text_that_is_too_long_or_empty_has_a_reason_and_no_number(tiny: Path) -> None:
    long, empty, fine = await LocalLikelihood(tiny).log_likelihoods(["x" * 65, "", "x" * 64])
    assert isinstance(long, Failure)
    assert long.reason == "too_long"
    assert isinstance(empty, Failure)
    assert empty.reason == "empty"
    assert isinstance(fine, TokenLogprobs)


def test_the_record_says_what_precedes_a_text(tiny: Path, tiny_with_start: Path) -> None:
    alone: dict[str, Any] = LocalLikelihood(tiny).describe()
    after: dict[str, Any] = LocalLikelihood(tiny_with_start).describe()
    assert (alone["start"], alone["start_precedes"]) == ("<s>", "its first token alone")
    assert (after["start"], after["start_precedes"]) == ("<s>", "the text")
    assert len(alone["sha256"]) == 64


def test_a_folder_without_safetensors_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="from-gguf"):
        LocalLikelihood(tmp_path)
