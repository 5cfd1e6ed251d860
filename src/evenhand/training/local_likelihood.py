"""How likely local weights find a text: a Hugging Face folder, on this machine.

Every text is read after one start token, and so is every token of it: log p(text | start). It is
the token that the tokenizer puts in front (Llama); where it puts none (SmolLM2, Qwen, GPT-2), the
one that separates documents, for a sentence at the beginning of a document is the least that can
be given. Texts of about one length are read together; what fills them up stands behind them, where
a causal model does not look.
"""

import asyncio
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from evenhand.core.errors import UserError
from evenhand.models.likelihood import LikelihoodFailure, TokenLogprobs
from evenhand.training.cards import name_of
from evenhand.training.config import prepare
from evenhand.training.folders import sha256_of_files

_SEPARATOR = "<|endoftext|>"  # between documents in training: GPT-2, Qwen, SmolLM2, OLMo
_AT_ONCE = 1_024  # ours: tokens of a batch; a vocabulary of 50,000 makes 200 MB of logits of them


class LocalLikelihood:
    """
    >>> model = LocalLikelihood(Path("weights/smollm2"))
    >>> (found,) = await model.log_likelihoods(["The sky is blue."])

    `start` is the token to read every text after; None: the one above.
    """

    def __init__(
        self, folder: Path, *, start: str | None = None, tokens_at_once: int = _AT_ONCE
    ) -> None:
        if not (folder / "config.json").is_file() or not list(folder.glob("*.safetensors")):
            raise UserError(
                f"{folder} is not a Hugging Face folder with config.json and .safetensors. Create "
                "one from a GGUF file with `evenhand train from-gguf`."
            )
        self._folder = folder
        self._given_start = start
        self._tokens_at_once = tokens_at_once
        self._one_at_a_time = asyncio.Lock()

    @property
    def name(self) -> str:
        return name_of(self._folder.resolve())

    def describe(self) -> dict[str, Any]:
        loaded = self._loaded
        return {
            "kind": "local",
            "model": self.name,
            "sha256": sha256_of_files(sorted(self._folder.glob("*.safetensors"))),
            "dtype": "float32",
            "start": self._start,
            "torch": str(loaded.torch.__version__),
        }

    async def close(self) -> None:
        return None

    def after_another_start(self) -> "LocalLikelihood | None":
        others = [token for token in self._loaded.starts() if token != self._start]
        if not others:
            return None
        other = LocalLikelihood(self._folder, start=others[0], tokens_at_once=self._tokens_at_once)
        other._loaded = self._loaded  # the weights are in memory once
        return other

    async def log_likelihoods(
        self, texts: Sequence[str]
    ) -> list[TokenLogprobs | LikelihoodFailure]:
        async with self._one_at_a_time:
            return await asyncio.to_thread(self._read, texts)

    def _read(self, texts: Sequence[str]) -> list[TokenLogprobs | LikelihoodFailure]:
        loaded = self._loaded
        results: list[TokenLogprobs | LikelihoodFailure] = [
            LikelihoodFailure("empty", "the text has no token")
        ] * len(texts)
        rows: dict[int, list[int]] = {}
        for index, text in enumerate(texts):
            ids = loaded.ids(self._start, text)
            if len(ids) > loaded.longest:
                message = f"{len(ids)} tokens, the model reads {loaded.longest}"
                results[index] = LikelihoodFailure("too_long", message)
            elif len(ids) > 1:
                rows[index] = ids
        for places in _batches(rows, self._tokens_at_once):
            values = loaded.log_probabilities([rows[index] for index in places])
            for index, row in zip(places, values, strict=True):
                results[index] = TokenLogprobs(tuple(row))
        return results

    @cached_property
    def _loaded(self) -> "_LoadedWeights":
        return _LoadedWeights(self._folder)

    @cached_property
    def _start(self) -> str:
        starts = self._loaded.starts()
        start = self._given_start or starts[0]
        if start not in self._loaded.tokenizer.get_vocab():
            raise UserError(
                f"{start!r} is not a token of {self._folder}; for --start use: {', '.join(starts)}"
            )
        return start


def _batches(rows: dict[int, list[int]], tokens: int) -> Iterator[list[int]]:
    """Places of rows, the shortest first, so many that the filled-up batch has that many tokens."""
    batch: list[int] = []
    for index in sorted(rows, key=lambda index: len(rows[index])):
        if batch and (len(batch) + 1) * len(rows[index]) > tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


class _LoadedWeights:
    """The weights in memory; torch is imported here, when the first text comes."""

    def __init__(self, folder: Path) -> None:
        prepare()
        import torch  # noqa: PLC0415 seconds to import
        from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415
        from transformers.utils import logging  # noqa: PLC0415

        logging.disable_progress_bar()  # the command has one of its own
        self.torch: Any = torch
        self.tokenizer: Any = AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
        self._model: Any = AutoModelForCausalLM.from_pretrained(
            folder,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            dtype=torch.float32,
        )
        self._model.eval()
        self.longest: int = getattr(self._model.config, "max_position_embeddings", None) or 2**31

    def starts(self) -> list[str]:
        """The tokens of this tokenizer that can stand before a text, the best first."""
        tokenizer = self.tokenizer
        bare, encoded = (
            tokenizer("a", add_special_tokens=special)["input_ids"] for special in (False, True)
        )
        put_in_front = tokenizer.convert_ids_to_tokens(encoded[: encoded.index(bare[0])])[-1:]
        separator = [_SEPARATOR] if _SEPARATOR in tokenizer.get_vocab() else []
        candidates = [*put_in_front, *separator, tokenizer.bos_token, tokenizer.eos_token]
        available = list(dict.fromkeys(token for token in candidates if token is not None))
        if not available:
            raise UserError(
                f"The tokenizer of {tokenizer.name_or_path} has no start token and no end token. "
                "Name one of its tokens with --start."
            )
        return available

    def ids(self, start: str, text: str) -> list[int]:
        first = self.tokenizer.convert_tokens_to_ids(start)
        return [first, *self.tokenizer(text, add_special_tokens=False)["input_ids"]]

    def log_probabilities(self, rows: Sequence[list[int]]) -> list[list[float]]:
        """Of each token of the text, given those before it."""
        torch = self.torch
        widest = max(len(row) for row in rows)
        filled = torch.tensor([row + [row[0]] * (widest - len(row)) for row in rows])
        real = torch.tensor([[1] * len(row) + [0] * (widest - len(row)) for row in rows])
        with torch.inference_mode():
            logits = self._model(input_ids=filled, attention_mask=real).logits[:, :-1].float()
            selected = logits.gather(-1, filled[:, 1:, None]).squeeze(-1)
            values = (selected - logits.logsumexp(-1)).tolist()
        return [value[: len(row) - 1] for value, row in zip(values, rows, strict=True)]
