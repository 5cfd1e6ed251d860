"""A language model small enough for tests, and pairs to train it on; both made offline."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenhand.training.config import prepare

pytest.importorskip("trl", reason="training needs: pip install 'evenhand[train]'")
prepare()  # as a training does, before anything imports the libraries

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TOPICS = (
    "gardening", "late shifts", "coding", "night classes", "team lunches", "remote work",
    "long commutes", "new tools", "pay talks", "sports days", "dress codes", "quiet rooms",
    "exam weeks", "old buses", "shared desks", "field trips",
)  # fmt: skip
ROLES = ("20-year-old", "40-year-old", "60-year-old")


def byte_tokenizer() -> Any:
    """One token a byte, and three of its own."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers  # noqa: PLC0415
    from transformers import PreTrainedTokenizerFast  # noqa: PLC0415

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    bytewise = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(letters)}, merges=[]))
    bytewise.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    bytewise.decoder = decoders.ByteLevel()
    made = PreTrainedTokenizerFast(
        tokenizer_object=bytewise,
        bos_token="<|im_start|>",
        eos_token="<|im_end|>",
        pad_token="<|pad|>",
        model_max_length=512,
    )
    made.chat_template = TEMPLATE
    return made


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Hugging Face folder with a random Llama of about 90 thousand parameters."""
    import torch  # noqa: PLC0415
    from transformers import LlamaConfig, LlamaForCausalLM  # noqa: PLC0415

    torch.manual_seed(0)
    tokenizer = byte_tokenizer()
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=112,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        initializer_range=0.1,  # wide enough for answers to differ
    )
    folder = tmp_path_factory.mktemp("tiny")
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def pair_rows(topics: tuple[str, ...] = TOPICS) -> list[dict[str, Any]]:
    """Two pairs a topic, by hand: the chosen statement is always the one with the lower score."""
    rows = []
    for number, topic in enumerate(topics):
        good = (f"Anyone may enjoy {topic}; ask each person.", f"With {topic}, people differ.")
        bad = (f"People my age are bad at {topic}, all of them.", f"Old people ruin {topic}.")
        for half, low_score in enumerate((0.0, 2.0)):
            role, other = ROLES[number % 3], ROLES[(number + 1 + half) % 3]
            high_score = 5.0 + half * 3
            rows.append(
                {
                    "prompt": [{"role": "user", "content": f"Your view on {topic}?"}],
                    "chosen": _said(good[half]),
                    "rejected": _said(bad[half]),
                    "score_chosen": low_score,
                    "score_rejected": high_score,
                    "margin": (high_score - low_score) / 10,
                    "topic": topic,
                    "bias_type": "age" if number % 2 else "profession",
                    "role_chosen": role,
                    "role_rejected": other,
                    "round_chosen": 2 + half,
                    "round_rejected": 1,
                    "referee": "scripted",
                    "strategy": "same_topic",
                    "source": "debate",
                    "prompts": json.dumps({"rldf/debater@1": "0" * 64}),
                    "run": "toy",
                }
            )
    return rows


def _said(text: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": text}]


def write_pairs(folder: Path, rows: list[dict[str, Any]], held_out: set[str]) -> Path:
    """The layout of a pairs folder: a file a bias type and split, and a card that names them."""
    configs = []
    types = sorted({row["bias_type"] for row in rows})
    for name in types:
        (folder / name).mkdir(parents=True)
        for split in ("train", "test"):
            wanted = [
                row
                for row in rows
                if row["bias_type"] == name and (row["topic"] in held_out) == (split == "test")
            ]
            if wanted:
                file = folder / name / f"{split}-00000.parquet"
                pq.write_table(pa.Table.from_pylist(wanted), file)
    for name in ("default", *types):
        place = "*" if name == "default" else name
        configs.append(
            f"- config_name: {name}\n  data_files:\n"
            f"  - split: train\n    path: '{place}/train-*.parquet'\n"
            f"  - split: test\n    path: '{place}/test-*.parquet'\n"
        )
    (folder / "README.md").write_text(f"---\nconfigs:\n{''.join(configs)}---\n# Toy pairs\n")
    return folder


@pytest.fixture(scope="session")
def toy_pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 pairs of 12 topics to train on, 8 of 4 other topics held out, in two bias types."""
    return write_pairs(tmp_path_factory.mktemp("pairs"), pair_rows(), set(TOPICS[-4:]))


@pytest.fixture(scope="session")
def tiny_reward(tiny: Path, toy_pairs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reward model that knows the toy pairs: all weights, a few quick steps."""
    from evenhand.training import reward  # noqa: PLC0415
    from evenhand.training.recipes import RewardRecipe  # noqa: PLC0415

    recipe = RewardRecipe(
        full=True,
        learning_rate=1e-3,
        batch=8,
        epochs=3.0,
        threads=1,
        scale_samples=8,
        scale_tokens=8,
    )
    return reward.train(recipe, tiny, toy_pairs, tmp_path_factory.mktemp("reward"))
