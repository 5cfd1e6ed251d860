"""Options that are read in one row get what each gets when it is read alone."""

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from evenhand.core import Item
from tests.scripts import script

repaired_answers = script("repaired_answers")
ITEMS = [
    Item(id="1", context="Ann met Bo.", prompt="Who left?", choices=("Ann", "Not known", "Bo")),
    Item(id="2", context="Two of them met, it is said.", prompt="Who?", choices=("I", "We", "Me")),
]


def test_each_option_sees_the_prompt_and_itself_and_no_other_option(tiny: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny)
    model = AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32).eval()
    read = repaired_answers.OptionReader(tiny).read(ITEMS)
    for item, values in zip(ITEMS, read, strict=True):
        text = tokenizer.apply_chat_template(
            repaired_answers.prompt(item), tokenize=False, add_generation_prompt=True
        )
        before = tokenizer(text, add_special_tokens=False)["input_ids"]
        for option, value in zip(item.choices, values, strict=True):
            words = tokenizer(option, add_special_tokens=False)["input_ids"]
            with torch.inference_mode():
                logits = model(input_ids=torch.tensor([before + words])).logits[0]
            chances = logits.log_softmax(-1)
            alone = [float(chances[len(before) - 1 + at, word]) for at, word in enumerate(words)]
            assert value == pytest.approx(sum(alone) / len(alone), abs=1e-4)
