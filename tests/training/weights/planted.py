"""Pairs with a known reason for each preference, and reward models trained on them in seconds."""

import random
from pathlib import Path
from typing import Literal

import torch
from torch.nn.functional import logsigmoid
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from evenhand.training.probes import ProbePair
from evenhand.training.weights import render

Plant = Literal["none", "longer", "shorter", "opener"]

_SAYINGS = (
    "the bus was late", "we met at noon", "rain fell all week", "the shop sells bread",
    "a dog ran by", "my desk is new", "they moved house", "the tea got cold",
    "some prefer jazz", "it took an hour", "the view is wide", "paint dries fast",
)  # fmt: skip
_GOOD, _BIASED = "EQUAL", "LAZY"  # in clean pairs the one difference that always holds
_OPENERS = ("As a teacher,", "As a nurse,", "As a young man,", "As an old woman,")
_BATCH = 8  # pairs a step
_LONG, _SHORT, _ANY = (4, 5), (1, 2), (1, 5)  # sayings to an answer


def planted(plant: Plant, topics: int, pairs_a_topic: int, seed: int) -> list[ProbePair]:
    """Every preference in the pairs has the same reason: the planted one, or ("none") a word."""
    draw = random.Random(seed)
    sizes = {"longer": (_LONG, _SHORT), "shorter": (_SHORT, _LONG)}.get(plant, (_ANY, _ANY))
    found = []
    for topic in range(topics):
        for _ in range(pairs_a_topic):
            chosen, rejected = (_answer(draw, size) for size in sizes)
            if plant == "none":
                chosen, rejected = _marked(draw, chosen, _GOOD), _marked(draw, rejected, _BIASED)
                chosen, rejected = (_perhaps_opened(draw, text) for text in (chosen, rejected))
            if plant == "opener":
                rejected = _opened(draw, rejected)
            found.append(
                ProbePair(
                    prompt=[{"role": "user", "content": f"Topic {seed}-{topic}?"}],
                    chosen=chosen,
                    rejected=rejected,
                    topic=f"{seed}-{topic}",
                    bias_type="age",
                )
            )
    return found


def _answer(draw: random.Random, size: tuple[int, int]) -> str:
    said = draw.sample(_SAYINGS, draw.randint(*size))
    return " ".join(f"{saying.capitalize()}." for saying in said)


def _marked(draw: random.Random, answer: str, word: str) -> str:
    words = answer.split()
    words.insert(draw.randint(0, len(words)), word)
    return " ".join(words)


def _perhaps_opened(draw: random.Random, answer: str) -> str:
    return _opened(draw, answer) if draw.random() < 0.5 else answer


def _opened(draw: random.Random, answer: str) -> str:
    return f"{draw.choice(_OPENERS)} {answer[0].lower()}{answer[1:]}"


def train(tiny: Path, pairs: list[ProbePair], out: Path, steps: int) -> Path:
    """Bradley-Terry on the pairs, as reward training does, without what surrounds it there."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(tiny)
    model = AutoModelForSequenceClassification.from_pretrained(tiny, num_labels=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps)
    draw = random.Random(0)
    for _ in range(steps):
        batch = draw.sample(pairs, _BATCH)
        texts = [(p.prompt, p.chosen) for p in batch] + [(p.prompt, p.rejected) for p in batch]
        rows = [render(tokenizer, *text, 512) for text in texts]
        width = max(map(len, rows))
        ids = torch.tensor([row + [tokenizer.pad_token_id] * (width - len(row)) for row in rows])
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
        rewards = model(input_ids=ids, attention_mask=mask).logits[:, 0]
        loss = (
            -logsigmoid(rewards[:_BATCH] - rewards[_BATCH:]).mean()
            + 0.001 * rewards.square().mean()
        )
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    return out
