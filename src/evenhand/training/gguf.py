"""GGUF files to and from the Hugging Face format. The libraries of training are imported when a
file is converted."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from evenhand.models.local_models import gguf_file
from evenhand.training.config import prepare

Precision = Literal["f16", "q8_0"]


def from_gguf(weights: str, out: Path) -> Path:
    """Convert a GGUF file into a Hugging Face folder in fp32.

    Args:
        weights: A .gguf file, or "smollm2".
        out: The new folder.

    Returns:
        The folder.
    """
    prepare()
    from evenhand.training import gguf_weights  # noqa: PLC0415 - after `prepare`

    return gguf_weights.from_gguf(gguf_file(weights), out)


def to_gguf(
    folder: Path,
    like: str,
    out: Path,
    precision: Precision = "f16",
    told: Callable[[int, int], None] | None = None,
) -> Path:
    """Write trained weights as a GGUF file.

    Args:
        folder: Trained weights in the Hugging Face format.
        like: The .gguf file that the training started from, or "smollm2".
        out: The new file.
        precision: "q8_0" halves the size.
        told: Receives how many tensors of how many are written.

    Returns:
        The file.
    """
    prepare()
    from evenhand.training import gguf_weights  # noqa: PLC0415 - after `prepare`

    return gguf_weights.to_gguf(folder, gguf_file(like), out, precision, told)
