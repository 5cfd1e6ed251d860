"""Weights packed and written as safetensors, as `evenhand.scorers.offline.network` reads them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from evenhand.scorers.offline.network import KINDS, Floats


def write(
    path: Path, arrays: Mapping[str, np.ndarray[Any, Any]], metadata: Mapping[str, str]
) -> None:
    kinds = {np.dtype(kind): name for name, kind in KINDS.items()}
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    offset = 0
    for name, array in arrays.items():
        entry = {"dtype": kinds[array.dtype], "shape": list(array.shape)}
        header[name] = entry | {"data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    head = orjson.dumps(header)
    head += b" " * (-len(head) % 8)
    body = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays.values())
    path.write_bytes(len(head).to_bytes(8, "little") + head + body)


def packed(name: str, array: Floats, bits: int) -> dict[str, np.ndarray[Any, Any]]:
    """8 bits with one scale a row, or 4 bits with one scale for each 32 values of a row."""
    if bits == 8:
        scale = np.maximum(np.abs(array).max(1, keepdims=True) / 127, 1e-7).astype(np.float16)
        quantized = np.rint(array / scale.astype(np.float32)).clip(-127, 127).astype(np.int8)
        return {f"{name}.int8": quantized, f"{name}.scale": scale}
    blocks = array.reshape(len(array), -1, 32)
    scale = _best_scale(blocks).astype(np.float16)
    quantized = (
        np.rint(blocks / scale.astype(np.float32)[:, :, None]).clip(-8, 7).astype(np.int8) + 8
    )
    pairs = quantized.astype(np.uint8).reshape(len(array), -1, 2)
    return {f"{name}.int4": pairs[:, :, 0] | (pairs[:, :, 1] << 4), f"{name}.scale": scale}


def _best_scale(blocks: Floats) -> Floats:
    """The scale with the least squared error: the largest value alone may be clipped."""
    largest = np.maximum(np.abs(blocks).max(2), 1e-6)
    best, least = largest / 7, np.full(largest.shape, np.inf)
    for divisor in (6.5, 7.0, 7.5, 8.0, 8.5, 9.0):
        scale = largest / divisor
        rounded = np.rint(blocks / scale[:, :, None]).clip(-8, 7) * scale[:, :, None]
        error = np.square(rounded - blocks).sum(2)
        best, least = np.where(error < least, scale, best), np.minimum(error, least)
    return np.asarray(best, dtype=np.float32)
