"""A trained reward model: a scalar for a prompt and a response, on the scale of SFT samples."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Self

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from evenhand.core.errors import UserError
from evenhand.training.folders import require_model
from evenhand.training.weights import Messages, padded, render

SCALE = "reward_scale.json"


@dataclass(frozen=True, slots=True)
class RewardScale:
    """(raw - shift) / scale has mean 0 and standard deviation 1 over samples of the SFT model, so
    that the weight of the KL term means the same for every reward model."""

    shift: float = 0.0
    scale: float = 1.0

    @classmethod
    def of(cls, raw: Sequence[float]) -> Self:
        if len(raw) < 2 or (spread := stdev(raw)) < 1e-6:
            raise UserError(
                "The reward model gives all samples the same reward, so no scale can be set. "
                "Train it on more pairs or for longer."
            )
        return cls(shift=fmean(raw), scale=spread)

    @classmethod
    def load(cls, folder: Path) -> Self:
        file = folder / SCALE
        if not file.is_file():
            return cls()
        content = json.loads(file.read_text())
        return cls(shift=float(content["shift"]), scale=float(content["scale"]))

    def save(self, folder: Path) -> None:
        content = {"shift": self.shift, "scale": self.scale}
        (folder / SCALE).write_text(json.dumps(content, indent=1) + "\n")


@dataclass(slots=True)
class RewardModel:
    """
    >>> rewards = RewardModel.load(Path("runs/reward/model")).score([prompt], ["An answer."])
    """

    model: Any
    tokenizer: Any
    scale: RewardScale
    max_length: int = 2048  # paper 002: "The maximum sequence length … is set to 2048"
    batch: int = 16

    @classmethod
    def load(cls, folder: Path, *, max_length: int = 2048, device: str = "cpu") -> Self:
        if not (folder / "config.json").is_file():
            raise UserError(
                f"{folder} has no reward model. Pass the `model` folder of one (`evenhand train "
                "reward`)."
            )
        require_model(folder)
        tokenizer = AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
        model = AutoModelForSequenceClassification.from_pretrained(
            folder,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            dtype=torch.float32,
        )
        if model.config.num_labels != 1:
            raise UserError(
                f"{folder} has {model.config.num_labels} labels; a reward model has one. "
                "Train one with `evenhand train reward`"
            )
        places = getattr(model.config, "max_position_embeddings", None) or max_length
        most = min(max_length, places, tokenizer.model_max_length)  # as it was trained
        model.eval().requires_grad_(False).to(device)
        return cls(model, tokenizer, RewardScale.load(folder), most)

    def ids(self, prompt: Messages, response: str) -> list[int]:
        return render(self.tokenizer, prompt, response, self.max_length)

    def score(self, prompts: Sequence[Messages], responses: Sequence[str]) -> list[float]:
        """Higher is less biased."""
        shift, scale = self.scale.shift, self.scale.scale
        return [(raw - shift) / scale for raw in self.raw(prompts, responses)]

    def raw(self, prompts: Sequence[Messages], responses: Sequence[str]) -> list[float]:
        """As the model gives them, before the scale."""
        return self.raw_of_ids([self.ids(*pair) for pair in zip(prompts, responses, strict=True)])

    def raw_of_ids(self, rows: Sequence[Sequence[int]]) -> list[float]:
        results = [0.0] * len(rows)
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))  # little to fill up
        for start in range(0, len(order), self.batch):
            places = order[start : start + self.batch]
            rewards = self._forward([rows[i] for i in places])
            for index, reward in zip(places, rewards, strict=True):
                results[index] = reward
        return results

    @torch.inference_mode()
    def _forward(self, rows: Sequence[Sequence[int]]) -> list[float]:
        ids, mask = padded(rows, self.tokenizer.pad_token_id, self.model.device)
        logits = self.model(input_ids=ids, attention_mask=mask).logits
        return [float(reward) for reward in logits[:, 0].float().tolist()]
