"""A sequence classifier: what is refused without torch, and a tiny one with it."""

import json
from pathlib import Path

import pytest

from evenhand.core.errors import UserError
from evenhand.scorers import Scores, Unscored
from evenhand.scorers.classifier import Classifier

WORDS = "[PAD] [UNK] [CLS] [SEP] you are a fool friend kind and".split()


def test_weights_that_are_a_pickle_are_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'touch ran'\ntR.")
    with pytest.raises(UserError, match="pickles"):
        _ = Classifier(str(tmp_path)).name
    assert not Path("ran").exists()


def test_the_name_holds_the_hash_of_the_weights(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"one")
    first = Classifier(str(tmp_path)).name
    assert first.startswith(f"classifier@1:{tmp_path.name}+")
    (tmp_path / "model.safetensors").write_bytes(b"two")
    assert Classifier(str(tmp_path)).name != first


def test_labels_must_say_what_toxicity_is() -> None:
    with pytest.raises(UserError, match="toxicity"):
        Classifier("folder", labels={"insult": ("insult",)})
    with pytest.raises(UserError, match="rudeness"):
        Classifier("folder", labels={"toxicity": ("toxic",), "rudeness": ("rude",)})


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A BERT of random weights, whose labels are those of toxic-bert."""
    torch = pytest.importorskip("torch", reason="evenhand[scorers] is not installed")
    transformers = pytest.importorskip("transformers", reason="evenhand[scorers] is not installed")
    torch.manual_seed(0)
    labels = ["toxic", "severe_toxic", "obscene", "threat", "insult", "identity_hate"]
    config = transformers.BertConfig(
        vocab_size=len(WORDS),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=16,
        id2label=dict(enumerate(labels)),
        label2id={label: n for n, label in enumerate(labels)},
        problem_type="multi_label_classification",
        initializer_range=2.0,
    )
    transformers.BertForSequenceClassification(config).save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS))
    transformers.BertTokenizerFast(vocab=str(tmp_path / "vocab.txt")).save_pretrained(tmp_path)
    return tmp_path


async def test_a_classifier_scores_in_order_and_by_our_attributes(tiny: Path) -> None:
    scorer = Classifier(str(tiny))
    texts = ["you are a fool", "", "kind friend", "a"]
    scored = await scorer.score(texts)
    alone = [(await scorer.score([text]))[0] for text in texts]
    assert [type(one) for one in scored] == [Scores, Unscored, Scores, Scores]
    for one, other in zip(scored, alone, strict=True):
        if isinstance(one, Scores):
            assert isinstance(other, Scores)
            assert dict(one.values) == pytest.approx(dict(other.values), abs=1e-5)
    first = scored[0]
    assert isinstance(first, Scores)
    assert set(first.values) == {
        "toxicity",
        "severe_toxicity",
        "profanity",
        "threat",
        "insult",
        "identity_attack",
    }


async def test_the_end_of_a_long_text_is_read_too(tiny: Path) -> None:
    scorer = Classifier(str(tiny))
    long = "kind " * 14 + "fool"
    whole, start, end = await scorer.score([long, "kind " * 14, "fool"])
    assert isinstance(whole, Scores)
    assert isinstance(start, Scores)
    assert isinstance(end, Scores)
    worst = {name: max(start.values[name], end.values[name]) for name in start.values}
    assert dict(whole.values) == pytest.approx(worst, abs=1e-5)


async def test_labels_that_nobody_knows_must_be_mapped(tiny: Path) -> None:
    config = json.loads((tiny / "config.json").read_text())
    config["id2label"] = {n: f"LABEL_{n}" for n in range(6)}
    config["label2id"] = {f"LABEL_{n}": n for n in range(6)}
    (tiny / "config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match="label_0"):
        await Classifier(str(tiny)).score(["you"])
    [one] = await Classifier(str(tiny), labels={"toxicity": ("LABEL_3",)}).score(["you"])
    assert isinstance(one, Scores)
