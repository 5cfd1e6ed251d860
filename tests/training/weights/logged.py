"""The numbers that a training logged, read back from its TensorBoard files."""

from pathlib import Path


def scalars(out: Path, name: str) -> list[float]:
    from tensorboard.backend.event_processing.event_accumulator import (  # noqa: PLC0415
        EventAccumulator,
    )

    read = EventAccumulator(str(out / "logs"))
    read.Reload()
    return [event.value for event in read.Scalars(name)]
