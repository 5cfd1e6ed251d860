"""The network of `evenhand.scorers.offline.network`, in torch, so that it can be trained."""

from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from evenhand.scorers.offline.network import ScorerWeights, read_weights
from offline_scorer import packing

WIDTH, HEADS, LONGEST = 384, 12, 128


class Layer(nn.Module):
    def __init__(self, inner: int) -> None:
        super().__init__()
        self.qkv, self.o = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, inner), nn.Linear(inner, WIDTH)
        self.n1, self.n2 = nn.LayerNorm(WIDTH, 1e-12), nn.LayerNorm(WIDTH, 1e-12)

    def forward(self, x: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        texts, length, _ = x.shape
        mixed = self.qkv(x).view(texts, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        query, key, value = (part.reshape(texts * HEADS, length, -1) for part in mixed)
        # Written out: torch's fused attention is three times slower backwards on short texts.
        near = torch.bmm(query * (WIDTH // HEADS) ** -0.5, key.transpose(1, 2))
        near = (near.view(texts, HEADS, length, length) + hidden).softmax(-1).to(value.dtype)
        seen = torch.bmm(near.view(-1, length, length), value).view(texts, HEADS, length, -1)
        x = self.n1(x + self.o(seen.transpose(1, 2).reshape(texts, length, WIDTH)))
        return self.n2(x + self.down(functional.gelu(self.up(x), approximate="tanh")))


class Net(nn.Module):
    def __init__(self, words: int, layers: int, inner: int, attributes: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, WIDTH), nn.Embedding(LONGEST, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, 1e-12)
        self.layers = nn.ModuleList(Layer(inner) for _ in range(layers))
        self.head = nn.Linear(WIDTH, attributes)

    def forward(self, pieces: torch.Tensor) -> torch.Tensor:
        there = pieces != 0
        x = self.norm(self.words(pieces) + self.places.weight[: pieces.shape[1]])
        hidden = torch.zeros(pieces.shape, dtype=x.dtype).masked_fill(~there, -1e4)[:, None, None]
        for layer in self.layers:
            x = layer(x, hidden)
        share = there.unsqueeze(-1).to(x.dtype)
        mean = (x * share).sum(1) / share.sum(1)
        return self.head(functional.dropout(mean, 0.1, self.training))


def from_minilm(folder: Path, rows: list[int], layers: int, inner: int, attributes: int) -> Net:
    """The lowest layers of all-MiniLM-L6-v2, the rows of the words that we keep, and in each layer
    the `inner` steps with the largest weights. Words stay as they come, rounded as they ship."""
    base = read_weights(folder / "model.safetensors").arrays
    net = Net(len(rows), layers, inner, attributes)
    told = {"words.weight": _rounded(base["embeddings.word_embeddings.weight"][rows], 4)}
    first_kind = base["embeddings.token_type_embeddings.weight"][0]
    told["places.weight"] = base["embeddings.position_embeddings.weight"][:LONGEST] + first_kind
    for part in ("weight", "bias"):
        told[f"norm.{part}"] = base[f"embeddings.LayerNorm.{part}"]
    for i in range(layers):
        told |= _layer(base, f"encoder.layer.{i}.", f"layers.{i}.", inner)
    state = net.state_dict() | {name: torch.tensor(array) for name, array in told.items()}
    state["head.weight"] *= 0.1
    net.load_state_dict(state)
    for fixed in (net.words, net.places):
        fixed.weight.requires_grad_(False)
    return net


def _layer(base: dict, old: str, new: str, inner: int) -> dict[str, np.ndarray]:
    up, down = base[f"{old}intermediate.dense.weight"], base[f"{old}output.dense.weight"]
    size = np.linalg.norm(up, axis=1) * np.linalg.norm(down, axis=0)
    kept = np.sort(np.argsort(-size, kind="stable")[:inner])
    told = {
        f"{new}up.weight": up[kept],
        f"{new}up.bias": base[f"{old}intermediate.dense.bias"][kept],
        f"{new}down.weight": down[:, kept],
        f"{new}down.bias": base[f"{old}output.dense.bias"],
    }
    for part in ("weight", "bias"):
        mixed = [base[f"{old}attention.self.{name}.{part}"] for name in ("query", "key", "value")]
        told[f"{new}qkv.{part}"] = np.concatenate(mixed)
        told[f"{new}o.{part}"] = base[f"{old}attention.output.dense.{part}"]
        told[f"{new}n1.{part}"] = base[f"{old}attention.output.LayerNorm.{part}"]
        told[f"{new}n2.{part}"] = base[f"{old}output.LayerNorm.{part}"]
    return told


def _rounded(array: np.ndarray, bits: int) -> np.ndarray:
    return ScorerWeights(packing.packed("x", array, bits), {}, "").floats("x")


def as_shipped(net: Net) -> dict[str, np.ndarray]:
    """Words in 4 bits, dense steps in 8, the little rest in 16 or 32."""
    found = dict[str, np.ndarray]()
    for name, tensor in net.state_dict().items():
        array = tensor.float().numpy()
        short = name.replace("layers.", "layer").removesuffix(
            ".weight" if name.startswith(("words", "places")) else ""
        )
        if name == "words.weight":
            found |= packing.packed("words", array, 4)
        elif array.ndim == 2 and name.startswith("layers."):
            found |= packing.packed(short, array, 8)
        else:
            found[short] = array.astype(np.float16 if name == "places.weight" else np.float32)
    return found
