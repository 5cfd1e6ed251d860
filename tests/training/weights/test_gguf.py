"""Weights to GGUF and back. The way back is that of transformers, which undoes the order of query
and key rows by itself, so equal tensors say that our order is llama.cpp's."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.core.errors import UserError
from tests.errors import raises_naming
from tests.training.weights.conftest import byte_tokenizer

gguf = pytest.importorskip("gguf", reason="GGUF files need: pip install 'evenhand[train]'")

_OTHER_TEMPLATE = "{% for message in messages %}{{ message['content'] }}<|im_end|>{% endfor %}"


def _skeleton(path: Path, tiny: Path, spare: bool = True) -> Path:
    """A GGUF of the tiny model's shape with zeros for weights: what `--like` names."""
    from evenhand.training.gguf_weights import hf_name  # noqa: PLC0415

    tokens = byte_tokenizer().convert_ids_to_tokens(range(259))
    # A merge must be there, and so its product. It takes the place of a byte that no text has.
    tokens[tokens.index("ÿ")] = "Āā"
    if not spare:
        tokens = tokens[:-1]  # no <|pad|>: nothing that no chat uses
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("skeleton")
    writer.add_license("mit")
    writer.add_context_length(512)
    writer.add_embedding_length(64)
    writer.add_block_count(2)
    writer.add_feed_forward_length(112)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_rope_dimension_count(16)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_vocab_size(len(tokens))
    writer.add_file_type(0)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if t.startswith("<|") else 1 for t in tokens])
    writer.add_token_merges(["Ā ā"])
    writer.add_bos_token_id(tokens.index("<|im_start|>"))
    writer.add_eos_token_id(tokens.index("<|im_end|>"))
    writer.add_chat_template((tiny / "chat_template.jinja").read_text())
    hf = _tensors(tiny)
    names = {hf_name(name): name for name in _gguf_names()}
    for name, tensor in hf.items():
        shape = tensor.shape
        if "embed" in name:
            shape = (len(tokens), shape[1])
        writer.add_tensor(names[name], np.zeros(shape, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _gguf_names() -> list[str]:
    inside = ("attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate")
    blocks = [f"blk.{n}.{part}.weight" for n in (0, 1) for part in (*inside, "ffn_up", "ffn_down")]
    return ["token_embd.weight", "output_norm.weight", *blocks]


def _tensors(folder: Path) -> dict[str, Any]:
    from safetensors.numpy import load_file  # noqa: PLC0415

    return dict(load_file(folder / "model.safetensors"))


@pytest.fixture(scope="module")
def skeleton(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _skeleton(tmp_path_factory.mktemp("gguf") / "skeleton.gguf", tiny)


@pytest.fixture(scope="module")
def written(tiny: Path, skeleton: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from evenhand.training.gguf_weights import to_gguf  # noqa: PLC0415

    return to_gguf(tiny, skeleton, tmp_path_factory.mktemp("trained") / "trained.gguf")


def test_weights_written_as_gguf_and_read_by_transformers_are_the_same_weights(
    tiny: Path, written: Path, tmp_path: Path
) -> None:
    from transformers import AutoTokenizer  # noqa: PLC0415

    from evenhand.training.gguf_weights import from_gguf  # noqa: PLC0415

    back = from_gguf(written, tmp_path / "back")
    ours, theirs = _tensors(tiny), _tensors(back)
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        in_f16 = tensor if tensor.ndim == 1 else tensor.astype(np.float16)
        np.testing.assert_array_equal(theirs[name], in_f16.astype(np.float32), err_msg=name)
    tokenizer = AutoTokenizer.from_pretrained(back)
    talk = [{"role": "user", "content": "Naïve, 12 times"}]
    expected = byte_tokenizer().apply_chat_template(talk)["input_ids"]
    assert tokenizer.apply_chat_template(talk)["input_ids"] == expected
    assert tokenizer.pad_token == "<|pad|>", "it is there already, and no chat uses it"
    assert 'license: "mit"' in (back / "README.md").read_text()


def test_llama_cpp_gives_the_log_probabilities_of_the_folder(tiny: Path, written: Path) -> None:
    engine = pytest.importorskip("xllamacpp", reason="needs: pip install 'evenhand[local]'")
    import torch  # noqa: PLC0415
    from transformers import AutoModelForCausalLM  # noqa: PLC0415

    from tests.training.weights.served import next_token  # noqa: PLC0415

    text = "Your view on gardening?"
    letter = byte_tokenizer().convert_tokens_to_ids("a")
    top = next_token(engine, written, text, 5, letter)
    model = AutoModelForCausalLM.from_pretrained(tiny).eval()
    ids = byte_tokenizer()(text, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        expected = torch.log_softmax(model(ids).logits[0, -1], -1)
    assert len(top) == 5
    for token, log_probability in top.items():
        assert log_probability == pytest.approx(float(expected[token]), abs=0.02)


def test_q8_keeps_weights_to_half_a_step_and_falls_back_where_a_row_has_no_whole_blocks(
    tiny: Path, skeleton: Path, tmp_path: Path
) -> None:
    from evenhand.training.gguf_weights import hf_name, to_gguf  # noqa: PLC0415

    seen = []
    out = to_gguf(tiny, skeleton, tmp_path / "q8.gguf", "q8_0", lambda n, of: seen.append((n, of)))
    hf, count = _tensors(tiny), len(_gguf_names())
    assert seen == [(n, count) for n in range(1, count + 1)]
    read = gguf.GGUFReader(out)
    kinds = {t.name: t.tensor_type.name for t in read.tensors}
    assert kinds["blk.0.ffn_down.weight"] == "F16", "112 is no multiple of 32"
    assert kinds["blk.1.ffn_up.weight"] == "Q8_0"
    assert kinds["output_norm.weight"] == "F32"
    for tensor in read.tensors:
        if tensor.tensor_type.name == "Q8_0" and not {"attn_q", "attn_k"} & set(
            tensor.name.split(".")
        ):
            original = hf[hf_name(tensor.name) or ""]
            stored = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            blocks = np.abs(original).reshape(*original.shape[:-1], -1, 32).max(-1)
            step = np.repeat(blocks / 127, 32, axis=-1).reshape(original.shape)
            # Half a step, and the step itself is kept in 16 bits: up to 127 × 2^-11 of it.
            assert (np.abs(stored - original) <= 0.57 * step).all(), tensor.name


def test_a_pad_token_added_for_training_is_not_served(
    tiny: Path, written: Path, skeleton: Path, tmp_path: Path
) -> None:
    from transformers import AutoModelForCausalLM  # noqa: PLC0415

    from evenhand.training.gguf_weights import to_gguf  # noqa: PLC0415

    model = AutoModelForCausalLM.from_pretrained(tiny)
    model.resize_token_embeddings(model.config.vocab_size + 1)
    model.save_pretrained(tmp_path / "grown")
    out = to_gguf(tmp_path / "grown", skeleton, tmp_path / written.name)
    assert out.read_bytes() == written.read_bytes()


def test_a_vocabulary_without_a_spare_token_gets_a_pad_token_of_its_own(
    tiny: Path, tmp_path: Path
) -> None:
    from transformers import AutoTokenizer  # noqa: PLC0415

    from evenhand.training.gguf_weights import from_gguf  # noqa: PLC0415

    like = _skeleton(tmp_path / "bare.gguf", tiny, spare=False)
    back = from_gguf(like, tmp_path / "back")
    tokenizer = AutoTokenizer.from_pretrained(back)
    assert tokenizer.pad_token_id == 258, "behind those of the GGUF"
    assert _tensors(back)["model.embed_tokens.weight"].shape == (259, 64)


def test_a_folder_of_another_model_is_refused(tiny: Path, skeleton: Path, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM  # noqa: PLC0415

    from evenhand.training.gguf_weights import to_gguf  # noqa: PLC0415

    model = AutoModelForCausalLM.from_pretrained(tiny)
    del model.model.layers[1]
    model.save_pretrained(tmp_path / "shallow")
    with raises_naming(UserError, "blk.1.attn_norm.weight", "--like"):
        to_gguf(tmp_path / "shallow", skeleton, tmp_path / "no.gguf")
    assert not list(tmp_path.glob("*.gguf"))
    with raises_naming(UserError, tmp_path, "model*.safetensors"):
        to_gguf(tmp_path, skeleton, tmp_path / "no.gguf")


def test_the_chat_template_that_was_trained_with_is_served(
    tiny: Path, skeleton: Path, tmp_path: Path
) -> None:
    import shutil  # noqa: PLC0415

    from evenhand.training.gguf_weights import to_gguf  # noqa: PLC0415

    shutil.copytree(tiny, tmp_path / "changed")
    (tmp_path / "changed" / "chat_template.jinja").write_text(_OTHER_TEMPLATE)
    read = gguf.GGUFReader(to_gguf(tmp_path / "changed", skeleton, tmp_path / "other.gguf"))
    assert read.get_field("tokenizer.chat_template").contents() == _OTHER_TEMPLATE
    assert read.get_field("general.name").contents() == "other"
    assert read.get_field("general.file_type").contents() == 1
    tokens = gguf.GGUFReader(skeleton).get_field("tokenizer.ggml.tokens").contents()
    assert read.get_field("tokenizer.ggml.tokens").contents() == tokens


def test_what_is_there_is_not_written_over(tiny: Path, written: Path, tmp_path: Path) -> None:
    from evenhand.training.gguf_weights import from_gguf  # noqa: PLC0415

    with raises_naming(UserError, tiny, "--out"):
        from_gguf(written, tiny)
    with raises_naming(UserError, "none.gguf", "`smollm2`"):
        from_gguf(tmp_path / "none.gguf", tmp_path / "out")
