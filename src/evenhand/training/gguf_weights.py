"""Weights between the GGUF form, which llama.cpp serves, and a Hugging Face folder, which trains.

Both ways, so that trained weights are served and measured in the same way as those they came from.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import yaml
from numpy.typing import NDArray
from safetensors import safe_open
from transformers import AutoModelForCausalLM, AutoTokenizer

from evenhand.core.errors import UserError, choices_for
from evenhand.training.debates.dataset import require_new
from evenhand.training.folders import to_disk

try:
    import gguf
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
    from gguf.quants import quant_shape_to_byte_shape, quantize
except ImportError:
    raise UserError("GGUF files need the gguf package: pip install 'evenhand[train]'") from None

Precision = Literal["f16", "q8_0"]
Seen = Callable[[int, int], None]  # tensors written, of how many

_PAD = "<|pad|>"
_FILE_TYPES = {"f16": 1, "q8_0": 7}  # general.file_type, as llama.cpp numbers them
_BLOCK = 32  # weights that share a scale in Q8_0: a row is a multiple of it
_NOT_TRAINED = {"rope_freqs.weight"}  # written by the converter, no weight of the model
_REPLACED = {"general.architecture", "general.file_type", "general.name", "tokenizer.chat_template"}
_OUTSIDE = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_INSIDE = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def from_gguf(file: Path, out: Path) -> Path:
    """A Hugging Face folder with the weights of `file` in fp32, its tokenizer and chat template."""
    if not file.is_file():
        raise UserError(f"{file} is not a file. Pass the path of a .gguf file, or `smollm2`.")
    require_new(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    with _readable(file):
        license = _license(file)
        tokenizer = AutoTokenizer.from_pretrained(
            file.parent, gguf_file=file.name, local_files_only=True, trust_remote_code=False
        )
        model = AutoModelForCausalLM.from_pretrained(
            file.parent,
            gguf_file=file.name,
            local_files_only=True,
            trust_remote_code=False,
            dtype=torch.float32,
        )
    # Nothing is quantised any more, but `save_pretrained` refuses as long as these say otherwise.
    del model.config.quantization_config
    model.hf_quantizer = None
    _set_pad(tokenizer, model)
    tokenizer.model_max_length = model.config.max_position_embeddings
    part = out.with_name(f".{out.name}.part")
    model.save_pretrained(part)
    tokenizer.save_pretrained(part)
    _say_origin(part, file, license)
    to_disk(part)
    if out.is_dir():
        out.rmdir()
    os.replace(part, out)
    return out


def _set_pad(tokenizer: Any, model: Any) -> None:
    """A pad token of its own: where it is the end token, no model learns to end."""
    if tokenizer.pad_token_id in (None, tokenizer.eos_token_id):
        tokenizer.add_special_tokens({"pad_token": _spare_token(tokenizer) or _PAD})
    if tokenizer.pad_token_id >= model.get_input_embeddings().num_embeddings:
        model.resize_token_embeddings(len(tokenizer))
    for config in (model.config, model.generation_config):
        config.pad_token_id = tokenizer.pad_token_id


def _spare_token(tokenizer: Any) -> str | None:
    """A special token that no chat uses. With it the vocabulary, and so every probability, stays
    what it was; a token added would get a share of each."""
    taken = {tokenizer.eos_token, tokenizer.bos_token}
    template = tokenizer.chat_template or ""
    for _, token in sorted(tokenizer.added_tokens_decoder.items()):
        text = str(token.content)
        if token.special and text not in taken and text not in template:
            return text
    return None


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    """A file from elsewhere may hold anything, and its readers raise whatever they meet."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"{file} cannot be read as the weights of a model in GGUF form: it is cut short, "
            f"damaged or of a kind that is not known ({error!r:.200})"
        ) from None


def _license(file: Path) -> str:
    field = gguf.GGUFReader(file).get_field("general.license")
    return str(field.contents()) if field else "unknown"


def _say_origin(folder: Path, file: Path, license: str) -> None:
    """A card with the licence, which holds for all that is trained from these weights."""
    # In quotes and on one line, whatever the file says: it must not end the head of the card.
    quoted = yaml.safe_dump(license, default_style='"', width=float("inf")).strip()
    (folder / "README.md").write_text(
        f"---\nlicense: {quoted}\nlibrary_name: transformers\n---\n# {file.stem}, in fp32\n\n"
        f"The weights of `{file.name}`, brought to 32 bits by `evenhand train from-gguf`. They are "
        "as coarse as they were there.\n"
    )


def to_gguf(
    folder: Path, like: Path, out: Path, precision: Precision = "f16", progress: Seen | None = None
) -> Path:
    """Write the weights of a folder to a GGUF file.

    Args:
        folder: The folder of the trained model.
        like: The GGUF file that the training began with; tokenizer and settings are copied from it.
        out: The file to write.
        precision: The number format of the weights.
        progress: Called after each tensor with the number written and the number of all.

    Returns:
        The file written.

    Raises:
        UserError: If `like` is not a GGUF file with the same tensors, or the precision is unknown.
    """
    if precision not in _FILE_TYPES:
        raise UserError(f"no precision {precision!r}. {choices_for(precision, _FILE_TYPES)}")
    if not like.is_file():
        raise UserError(
            f"{like} is not a file. Pass to --like the GGUF that the training started from."
        )
    with _readable(like):
        original = gguf.GGUFReader(like)
        _require_llama(original)
    with _TensorFolder(folder) as weights, _readable(like):
        _require_same_tensors(original, weights)
        out.parent.mkdir(parents=True, exist_ok=True)
        part = out.with_name(f".{out.name}.part")
        writer = gguf.GGUFWriter(part, "llama")
        _copy_settings(original, writer, folder, out.stem, precision)
        kinds = {tensor.name: _kind(tensor, precision) for tensor in original.tensors}
        for tensor in original.tensors:
            _announce(writer, tensor, kinds[tensor.name])
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        for number, tensor in enumerate(original.tensors, start=1):
            writer.write_tensor_data(_data(tensor, weights, original, kinds[tensor.name]))
            if progress:
                progress(number, len(original.tensors))
        writer.close()
    os.replace(part, out)
    return out


def _require_llama(original: Any) -> None:
    kind = original.get_field("general.architecture").contents()
    if kind != "llama":
        raise UserError(
            f"the GGUF is of kind {kind!r}; evenhand writes Llama-like ones (Llama, Mistral, "
            "SmolLM2). For others use llama.cpp's convert_hf_to_gguf.py, and serve what it writes"
        )


def hf_name(name: str) -> str | None:
    """The name of a tensor in a Hugging Face folder, from that in a GGUF of kind `llama`."""
    if name in _OUTSIDE:
        return _OUTSIDE[name]
    match = re.fullmatch(r"blk\.(\d+)\.(\w+)\.(weight|bias)", name)
    if match is None or match[2] not in _INSIDE:
        return None
    return f"model.layers.{match[1]}.{_INSIDE[match[2]]}.{match[3]}"


class _TensorFolder:
    """The tensors of a Hugging Face folder, each read when it is asked for."""

    def __init__(self, folder: Path) -> None:
        files = sorted(folder.glob("model*.safetensors"))
        if not files:
            raise UserError(
                f"{folder} has no model*.safetensors. Pass the `model` folder of a training. Merge "
                "an adapter into its base first."
            )
        self._open: list[Any] = [safe_open(file, framework="pt") for file in files]
        self._of = {name: file for file in self._open for name in file.keys()}  # noqa: SIM118
        self.tied = "lm_head.weight" not in self._of

    def __enter__(self) -> "_TensorFolder":
        return self

    def __exit__(self, *_: object) -> None:
        self._of.clear()
        self._open.clear()

    def __contains__(self, name: str) -> bool:
        return self._name(name) in self._of

    def __iter__(self) -> Iterator[str]:
        return iter(self._of)

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        tensor: NDArray[np.float32] = (
            self._of[self._name(name)].get_tensor(self._name(name)).float().numpy()
        )
        return tensor

    def _name(self, name: str) -> str:
        tied = self.tied and name == "lm_head.weight"
        return "model.embed_tokens.weight" if tied else name


def _require_same_tensors(original: Any, weights: _TensorFolder) -> None:
    """Neither file has a weight that the other lacks: half a model would be served in silence."""
    names = {tensor.name: hf_name(tensor.name) for tensor in original.tensors}
    names = {name: hf for name, hf in names.items() if name not in _NOT_TRAINED}
    missing = [name for name, hf in names.items() if hf is None or hf not in weights]
    left = sorted(set(weights) - set(names.values()))
    if missing or left:
        raise UserError(
            f"these weights do not belong to that GGUF: missing {missing[:3]}, left over "
            f"{left[:3]}; --like wants the GGUF that the training began with"
        )


def _copy_settings(
    original: Any, writer: Any, folder: Path, name: str, precision: Precision
) -> None:
    for field in original.fields.values():
        if field.name.startswith("GGUF.") or field.name in _REPLACED:
            continue
        kind = field.types[0]
        inner = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, sub_type=inner)
    writer.add_name(name)
    writer.add_file_type(_FILE_TYPES[precision])
    template = folder / "chat_template.jinja"
    if template.is_file():  # served as it was trained
        writer.add_chat_template(template.read_text())
    elif field := original.get_field("tokenizer.chat_template"):
        writer.add_chat_template(field.contents())


def _kind(tensor: Any, precision: Precision) -> Any:
    """Vectors, norms and biases, stay F32, as llama.cpp wants them."""
    if len(tensor.shape) == 1:
        return GGMLQuantizationType.F32
    whole_blocks = int(tensor.shape[0]) % _BLOCK == 0
    return (
        GGMLQuantizationType.Q8_0
        if precision == "q8_0" and whole_blocks
        else GGMLQuantizationType.F16
    )


def _announce(writer: Any, tensor: Any, kind: Any) -> None:
    shape = tuple(int(n) for n in reversed(tensor.shape))  # GGUF counts the fastest first
    if kind == GGMLQuantizationType.Q8_0:
        in_bytes = quant_shape_to_byte_shape(shape, kind)
        size = int(np.prod(in_bytes))
        writer.add_tensor_info(tensor.name, in_bytes, np.dtype(np.uint8), size, raw_dtype=kind)
        return
    _, width = GGML_QUANT_SIZES[kind]
    dtype = np.dtype(np.float16 if width == 2 else np.float32)
    writer.add_tensor_info(tensor.name, shape, dtype, int(np.prod(shape)) * width)


def _data(tensor: Any, weights: _TensorFolder, original: Any, kind: Any) -> NDArray[Any]:
    if tensor.name in _NOT_TRAINED:
        return np.array(tensor.data)
    shape = tuple(int(n) for n in reversed(tensor.shape))
    values = weights[hf_name(tensor.name) or ""]
    if tensor.name in ("token_embd.weight", "output.weight"):
        values = values[: shape[0]]  # a pad token added for training is the last row
    if values.shape != shape:
        raise UserError(
            f"{tensor.name} has shape {values.shape} in the folder and {shape} in the GGUF, so "
            "they are different models. Pass the GGUF that the training started from."
        )
    for part, heads in (("attn_q", "head_count"), ("attn_k", "head_count_kv")):
        if f".{part}." in tensor.name:
            values = interleaved(values, _heads(original, heads))
    quantised: NDArray[Any] = quantize(np.ascontiguousarray(values), kind)
    return quantised


def _heads(original: Any, name: str) -> int:
    field = original.get_field(f"llama.attention.{name}")
    return int((field or original.get_field("llama.attention.head_count")).contents())


def interleaved(values: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Rows of a query or key projection in llama.cpp's order. It turns neighbours by one angle
    (0 with 1, 2 with 3, …), transformers the first half of a head with its second."""
    halves = values.reshape(heads, 2, values.shape[0] // heads // 2, *values.shape[1:])
    return halves.swapaxes(1, 2).reshape(values.shape)
