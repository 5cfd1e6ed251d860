"""A Hugging Face sequence classifier, from a folder or the hub, its weights as safetensors only.

A `.bin` or `.pt` file is a pickle, and a pickle runs what its author wrote into it: such a model is
refused. Torch and transformers are loaded when the first text comes, in a thread.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from evenhand.core.errors import UserError
from evenhand.scorers.base import (
    Labels,
    Scorer,
    Scores,
    Unscored,
    by_attribute,
    checked_labels,
    score_the_scorable,
)

_SAFE_FILES = ("*.safetensors", "*.json", "*.txt", "*.model")
_BATCH = 32
_LONGEST = 512  # pieces, if the tokenizer names no bound of its own
_INSTALL = "a classifier needs torch and transformers: pip install 'evenhand[scorers]'"
# Known names of labels; a model with others needs `labels` in the config.
LABELS: Labels = {
    "toxicity": ("toxic", "toxicity", "hate", "hateful", "offensive"),
    "severe_toxicity": ("severe_toxic", "severe_toxicity"),
    "insult": ("insult",),
    "identity_attack": ("identity_hate", "identity_attack"),
    "threat": ("threat",),
    "profanity": ("obscene", "profanity"),
    "sexual": ("sexual_explicit", "sexually_explicit"),
}


@dataclass(frozen=True, slots=True)
class _LoadedClassifier:
    torch: Any
    tokenizer: Any
    model: Any
    longest: int
    names: tuple[str, ...]
    each: bool  # labels are independent of each other, not one out of several


class Classifier(Scorer):
    """
    >>> scorer = Classifier("models/toxic-bert")
    """

    def __init__(
        self, source: str, *, revision: str | None = None, labels: Labels = LABELS
    ) -> None:
        self._source = source
        self._revision = revision
        lowered = {k: tuple(name.lower() for name in names) for k, names in labels.items()}
        self._labels = checked_labels(lowered)
        self._one_at_a_time = asyncio.Lock()

    @property
    def name(self) -> str:
        last = self._source.rstrip("/").rpartition("/")[2]
        return f"classifier@1:{last}+{self._sha256[:12]}"

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(self._labels)

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "classifier",
            "source": self._source,
            "revision": self._revision,
            "sha256": self._sha256,
            "labels": dict(self._labels),
        }

    async def score(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        async with self._one_at_a_time:
            return await score_the_scorable(texts, self._in_a_thread)

    async def _in_a_thread(self, texts: list[str]) -> list[Scores | Unscored]:
        return await asyncio.to_thread(self._score, texts)

    def _score(self, texts: list[str]) -> list[Scores | Unscored]:
        outcomes: list[Scores | Unscored] = [Unscored("not_run", "")] * len(texts)
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))  # little to fill up
        for start in range(0, len(order), _BATCH):
            places = order[start : start + _BATCH]
            for index, outcome in zip(places, self._batch([texts[i] for i in places]), strict=True):
                outcomes[index] = outcome
        return outcomes

    def _batch(self, texts: list[str]) -> list[Scores | Unscored]:
        loaded = self._loaded
        try:
            rows = _highest(loaded, texts)
        except (RuntimeError, ValueError, IndexError) as error:
            return [Unscored("model_error", f"{type(error).__name__}: {error}"[:300])] * len(texts)
        return [
            by_attribute(dict(zip(loaded.names, row, strict=True)), self._labels) for row in rows
        ]

    @cached_property
    def _folder(self) -> Path:
        folder = Path(self._source)
        if not folder.is_dir():
            folder = _from_hub(self._source, self._revision)
        if not list(folder.glob("*.safetensors")):
            raise UserError(
                f"{self._source} holds no .safetensors; .bin and .pt files are pickles, which can "
                "run code when they are opened, and are refused. Convert it, or take a revision "
                "that has safetensors"
            )
        return folder

    @cached_property
    def _sha256(self) -> str:
        digest = hashlib.sha256()
        for path in sorted(self._folder.glob("*.safetensors")):
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()

    @cached_property
    def _loaded(self) -> _LoadedClassifier:
        loaded = _load(self._folder)
        known_labels = {name for names in self._labels.values() for name in names}
        if not set(self._labels["toxicity"]) & set(loaded.names):
            raise UserError(
                f"{self._source} has the labels {', '.join(loaded.names)}, none of which is known "
                f"to be toxicity (known: {', '.join(sorted(known_labels))}); name them in `labels`"
            )
        return loaded


def _load(folder: Path) -> _LoadedClassifier:
    try:
        import torch  # noqa: PLC0415 seconds to import, and not everybody has it
        from transformers import (  # noqa: PLC0415
            AutoModelForSequenceClassification,
            AutoTokenizer,
        )
    except ImportError:
        raise UserError(_INSTALL) from None
    tokenizer = AutoTokenizer.from_pretrained(
        folder, local_files_only=True, trust_remote_code=False
    )
    model = AutoModelForSequenceClassification.from_pretrained(
        folder, local_files_only=True, trust_remote_code=False, use_safetensors=True
    )
    names = tuple(model.config.id2label[i].lower() for i in range(model.config.num_labels))
    bounds = (tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", None))
    return _LoadedClassifier(
        torch=torch,
        tokenizer=tokenizer,
        model=model.eval(),
        longest=min(_LONGEST, *(bound for bound in bounds if bound)),
        names=names,
        each=model.config.problem_type == "multi_label_classification" or len(names) == 1,
    )


def _highest(loaded: _LoadedClassifier, texts: list[str]) -> list[list[float]]:
    """One row of label scores per text. A text longer than the model reads is cut into parts, and
    each label has the score of its worst part: what stands at the end is not lost."""
    cut = loaded.tokenizer(
        texts,
        truncation=True,
        max_length=loaded.longest,
        return_overflowing_tokens=True,
        padding=True,
        return_tensors="pt",
    )
    of_text = cut.pop("overflow_to_sample_mapping").tolist()
    inputs = {key: cut[key] for key in loaded.tokenizer.model_input_names if key in cut}
    with loaded.torch.inference_mode():
        logits = loaded.model(**inputs).logits
        scores = logits.sigmoid() if loaded.each else logits.softmax(-1)
    rows: list[list[float]] = [[0.0] * len(loaded.names) for _ in texts]
    for text, row in zip(of_text, scores.tolist(), strict=True):
        rows[text] = [max(pair) for pair in zip(rows[text], row, strict=True)]
    return rows


def _from_hub(name: str, revision: str | None) -> Path:
    try:
        from huggingface_hub import snapshot_download  # noqa: PLC0415 as above
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError  # noqa: PLC0415
    except ImportError:
        raise UserError(f"{name} is not a folder, and {_INSTALL}") from None
    try:
        patterns = list(_SAFE_FILES)
        return Path(snapshot_download(name, revision=revision, allow_patterns=patterns))
    except (HfHubHTTPError, HFValidationError, OSError) as error:
        raise UserError(f"{name} cannot be found or fetched: {str(error)[:300]}") from None
