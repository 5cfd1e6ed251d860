"""A small BERT: a text to pieces, and pieces to one number per attribute.

Pieces are those of BERT's uncased WordPiece, after undoing the usual ways round a filter. Weights
come from a safetensors file by numpy alone: a length, a JSON header, raw bytes; no code. ONNX
Runtime computes the layers where it is installed, else numpy: the same numbers in twice the time.
"""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import orjson

WEIGHTS = Path(__file__).with_name("weights.safetensors")
KINDS = {"I64": np.int64, "F32": np.float32, "F16": np.float16, "I8": np.int8, "U8": np.uint8}

Floats = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(frozen=True, slots=True)
class ScorerWeights:
    arrays: Mapping[str, np.ndarray[Any, Any]]
    metadata: Mapping[str, str]
    sha256: str

    def floats(self, name: str) -> Floats:
        """An array as it was before it was packed: in 8 bits with one scale a row, or in 4 bits
        with one scale for each 32 values of a row."""
        if name in self.arrays:
            return self.arrays[name].astype(np.float32)
        scale = self.arrays[f"{name}.scale"].astype(np.float32)
        if f"{name}.int8" in self.arrays:
            return self.arrays[f"{name}.int8"].astype(np.float32) * scale
        pairs = self.arrays[f"{name}.int4"]
        rows, blocks = scale.shape
        nibbles = np.stack([pairs & 15, pairs >> 4], axis=-1).reshape(rows, blocks, -1)
        return ((nibbles.astype(np.float32) - 8.0) * scale[:, :, None]).reshape(rows, -1)


def read_weights(path: Path) -> ScorerWeights:
    blob = path.read_bytes()
    start = 8 + int.from_bytes(blob[:8], "little")
    header = orjson.loads(blob[8:start])
    metadata = header.pop("__metadata__", {})
    arrays = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        flat = np.frombuffer(blob[start + begin : start + end], dtype=KINDS[entry["dtype"]])
        arrays[name] = flat.reshape(entry["shape"])
    return ScorerWeights(arrays, metadata, hashlib.sha256(blob).hexdigest())


_APART = (1, 2)

Whole = np.ndarray[Any, np.dtype[np.int64]]


def features(pieces: Whole, words: int, slots: int) -> tuple[Whole, Floats]:
    """Turn rows of pieces into rows of features.

    A piece is its own feature; pairs of nearby pieces are hashed into further ones.

    Args:
        pieces: A row of piece numbers per text; short rows are filled up with 0.
        words: How many features the single pieces take; those of pairs come after them.
        slots: How many features the pairs share.

    Returns:
        The feature numbers, and an array of the same shape: 1 where there is a feature, else 0.
    """
    ids, there = [pieces], [pieces != 0]
    for apart in _APART:
        first, second = pieces[:, :-apart], pieces[:, apart:]
        ids.append(words + (first * 31_337 + second * 7_919 + apart * 104_729) % slots)
        there.append(second != 0)
    return np.concatenate(ids, axis=1), np.concatenate(there, axis=1).astype(np.float32)


class PairTerm:
    """A linear term next to the network: each piece, and each pair adjacent or one apart.

    The network reads what a sentence means and forgets rare words; this remembers them."""

    def __init__(self, weights: ScorerWeights, words: int) -> None:
        self._table, self._words = np.ascontiguousarray(weights.floats("pairs").T), words

    def __call__(self, pieces: Whole) -> Floats:
        """One number for each attribute that was fitted; a long text does not weigh more."""
        ids, there = features(pieces, self._words, len(self._table) - self._words)
        added = (self._table[ids] * there[:, :, None]).sum(1)
        return np.asarray(added / np.sqrt(there.sum(1, keepdims=True)), dtype=np.float32)


# Letters of other alphabets that look Latin. The model reads English only.
_LOOKALIKES = str.maketrans(
    "аеорсухіјѕһԁԛԝмткнвгпαορνικτυχεηωßøłđı’‘`´",
    "aeopcyxijshdqwmtkhbrnaopviktuxenwboldi''''",
)
_LEET = str.maketrans("0134578@$!|", "oieastbasil")
_SPACED = re.compile(r"(?<![^\W_])[^\W\d_](?:([ .\-_*])[^\W\d_])(?:\1[^\W\d_])+(?![^\W_])")
_RUNS = re.compile(r"[a-z0-9@$!|]+")  # no look-ahead: a long text must not take forever
_SIGNS = re.compile(r"[0-9@$!|]")
_WORDS = re.compile(r"\w+|[^\w\s]")
_LONGEST = 40  # letters; a longer word is noise


class WordPiece:
    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._ids = vocabulary
        self._unknown = vocabulary["[UNK]"]
        self._known: dict[str, tuple[int, ...]] = {}

    def pieces(self, text: str) -> list[int]:
        return [piece for word in _WORDS.findall(self.plain(text)) for piece in self._word(word)]

    def plain(self, text: str) -> str:
        text = unicodedata.normalize("NFKD", text).lower().translate(_LOOKALIKES)
        if not text.isascii():
            # Accents, and marks that are not seen, such as zero-width spaces.
            text = "".join(c for c in text if unicodedata.category(c) not in ("Mn", "Cf"))
        text = _SPACED.sub(self._joined, text)
        return _RUNS.sub(self._undisguised, text) if _SIGNS.search(text) else text

    def _joined(self, hit: re.Match[str]) -> str:
        word = re.sub(r"[ .\-_*]", "", hit.group())
        if len(word) > _LONGEST:
            return hit.group()
        if word not in self._ids and word[0] in "ia" and word[1:] in self._ids:
            return f"{word[0]} {word[1:]}"  # "i h a t e" is two words
        return word

    def _undisguised(self, hit: re.Match[str]) -> str:
        bare = hit.group().rstrip("!|")
        word = bare.translate(_LEET)
        # From four letters on: "1st" is not a word in disguise.
        is_word = len(word) > 3 and word in self._ids and any(map(str.isalpha, bare))
        return word + hit.group()[len(bare) :] if is_word else hit.group()

    def _word(self, word: str) -> tuple[int, ...]:
        pieces = self._known.get(word)
        if pieces is None:
            pieces = self._split(word)
            if len(self._known) < 100_000:
                self._known[word] = pieces
        return pieces

    def _split(self, word: str) -> tuple[int, ...]:
        if len(word) > _LONGEST:
            return (self._unknown,)
        pieces, start = list[int](), 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = self._ids.get(word[start:end] if start == 0 else "##" + word[start:end])
                if piece is not None:
                    break
            else:
                return (self._unknown,)
            pieces.append(piece)
            start = end
        return tuple(pieces)


_EPSILON = 1e-12
_NEVER = np.float32(-1e4)


@dataclass(frozen=True, slots=True)
class _Layer:
    """One block of attention and one of two dense steps, each added to what came in."""

    mix: Floats
    mix_bias: Floats
    out: Floats
    out_bias: Floats
    norm1: tuple[Floats, Floats]
    up: Floats
    up_bias: Floats
    down: Floats
    down_bias: Floats
    norm2: tuple[Floats, Floats]

    def __call__(self, x: Floats, hidden: Floats, heads: int) -> Floats:
        texts, length, width = x.shape
        mixed = (x.reshape(-1, width) @ self.mix + self.mix_bias).reshape(
            texts, length, 3, heads, -1
        )
        query, key, value = mixed.transpose(2, 0, 3, 1, 4)
        near = query @ key.swapaxes(2, 3)
        near *= np.float32((width // heads) ** -0.5)
        near += hidden
        near -= near.max(-1, keepdims=True)
        np.exp(near, out=near)
        near /= near.sum(-1, keepdims=True)
        attended = (near @ value).transpose(0, 2, 1, 3).reshape(-1, width)
        flat = _norm(x.reshape(-1, width) + attended @ self.out + self.out_bias, self.norm1)
        wide = _gelu(flat @ self.up + self.up_bias)
        return _norm(flat + wide @ self.down + self.down_bias, self.norm2).reshape(x.shape)


Layers = Callable[[Whole], Floats]  # rows of pieces -> for each row the mean over its pieces


class NumpyLayers:
    """The layers without any package beside numpy."""

    def __init__(self, weights: ScorerWeights) -> None:
        self._words, self._places = weights.floats("words"), weights.floats("places")
        self._norm = weights.floats("norm.weight"), weights.floats("norm.bias")
        self._heads = int(weights.metadata["heads"])
        self._layers = [_layer(weights, i) for i in range(int(weights.metadata["layers"]))]

    def __call__(self, pieces: Whole) -> Floats:
        there = (pieces != 0).astype(np.float32)
        hidden = ((1 - there) * _NEVER)[:, None, None, :]
        x = _norm(self._words[pieces] + self._places[: pieces.shape[1]], self._norm)
        for layer in self._layers:
            x = layer(x, hidden, self._heads)
        mean: Floats = (x * there[:, :, None]).sum(1) / there.sum(1, keepdims=True)
        return mean


class Network:
    def __init__(self, weights: ScorerWeights, means: Layers) -> None:
        """
        Args:
            weights: Those of a file.
            means: The layers, which read rows of pieces.
        """
        self.means = means
        self._head, self._head_bias = weights.floats("head.weight").T, weights.floats("head.bias")
        self._pairs = PairTerm(weights, len(weights.metadata["vocabulary"].split(" ")))

    def __call__(self, pieces: Whole) -> Floats:
        """Rows of pieces, short ones filled up with 0, to rows of logits."""
        logits = np.asarray(self.means(pieces) @ self._head + self._head_bias, dtype=np.float32)
        added = self._pairs(pieces)
        logits[:, : added.shape[1]] += added
        return logits


def _layer(weights: ScorerWeights, i: int) -> _Layer:
    def transposed(name: str) -> Floats:
        return np.ascontiguousarray(weights.floats(f"layer{i}.{name}.weight").T)

    def bias(name: str) -> Floats:
        return weights.floats(f"layer{i}.{name}.bias")

    def norm(name: str) -> tuple[Floats, Floats]:
        return weights.floats(f"layer{i}.{name}.weight"), bias(name)

    return _Layer(
        mix=transposed("qkv"),
        mix_bias=bias("qkv"),
        out=transposed("o"),
        out_bias=bias("o"),
        norm1=norm("n1"),
        up=transposed("up"),
        up_bias=bias("up"),
        down=transposed("down"),
        down_bias=bias("down"),
        norm2=norm("n2"),
    )


def _norm(x: Floats, affine: tuple[Floats, Floats]) -> Floats:
    x = x - x.mean(-1, keepdims=True)
    x /= np.sqrt(np.square(x).mean(-1, keepdims=True) + np.float32(_EPSILON))
    x *= affine[0]
    x += affine[1]
    return x


def _gelu(x: Floats) -> Floats:
    """The tanh form, in place: this is where the time goes after the products."""
    inner = x * x
    inner *= np.float32(0.044715 * 0.7978845608)
    inner += np.float32(0.7978845608)
    inner *= x
    np.tanh(inner, out=inner)
    inner += 1
    x *= inner
    x *= np.float32(0.5)
    return x


WITH_ONNX_RUNTIME = find_spec("onnxruntime") is not None


class PackedModel:
    """The weights of a file with what is made of them, each when it is first asked for. By itself
    those that ship with the offline scorer, whose pieces and layers other scorers read too."""

    def __init__(self, path: Path = WEIGHTS) -> None:
        self._path = path

    def __getstate__(self) -> dict[str, Any]:
        return {"_path": self._path}  # another process reads the file itself

    @cached_property
    def weights(self) -> ScorerWeights:
        return read_weights(self._path)

    @cached_property
    def vocabulary(self) -> dict[str, int]:
        words = self.weights.metadata["vocabulary"].split(" ")
        return {word: at for at, word in enumerate(words)}

    @cached_property
    def pieces(self) -> WordPiece:
        return WordPiece(self.vocabulary)

    @cached_property
    def longest(self) -> int:
        """The most pieces of a row, marks included."""
        return len(self.weights.arrays["places"])

    @cached_property
    def network(self) -> Network:
        return Network(self.weights, _layers(self.weights))


def _layers(weights: ScorerWeights) -> Layers:
    if not WITH_ONNX_RUNTIME:
        return NumpyLayers(weights)
    from evenhand.scorers.offline.onnx_layers import OnnxLayers  # noqa: PLC0415 - takes a while

    return OnnxLayers(weights)
