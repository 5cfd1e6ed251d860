"""A small BERT in numpy: pieces of a text in, one number per attribute out."""

from dataclasses import dataclass

import numpy as np

from evenhand.scorers.offline.pairs import Pairs, Whole
from evenhand.scorers.offline.weights import Floats, Weights

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


class Network:
    def __init__(self, weights: Weights) -> None:
        self._words, self._places = weights.floats("words"), weights.floats("places")
        self._norm = weights.floats("norm.weight"), weights.floats("norm.bias")
        self._head, self._head_bias = weights.floats("head.weight").T, weights.floats("head.bias")
        self._pairs = Pairs(weights, len(self._words))
        self._heads = int(weights.metadata["heads"])
        self._layers = [_layer(weights, i) for i in range(int(weights.metadata["layers"]))]

    @property
    def longest(self) -> int:
        return len(self._places)

    def __call__(self, pieces: Whole) -> Floats:
        """Rows of pieces, short ones filled up with 0, to rows of logits."""
        mean = self.means(pieces)
        logits = np.asarray(mean @ self._head + self._head_bias, dtype=np.float32)
        added = self._pairs(pieces)
        logits[:, : added.shape[1]] += added
        return logits

    def means(self, pieces: Whole) -> Floats:
        """Rows of pieces to the mean of what the layers make of each piece."""
        there = (pieces != 0).astype(np.float32)
        hidden = ((1 - there) * _NEVER)[:, None, None, :]
        x = _norm(self._words[pieces] + self._places[: pieces.shape[1]], self._norm)
        for layer in self._layers:
            x = layer(x, hidden, self._heads)
        mean: Floats = (x * there[:, :, None]).sum(1) / there.sum(1, keepdims=True)
        return mean


def _layer(weights: Weights, i: int) -> _Layer:
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
