"""The Python functions of a training: wrong arguments, and a caller who is cancelled."""

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh
from evenhand.core.errors import UserError
from evenhand.training import launch
from evenhand.training.events import Note, Tell
from tests.errors import raises_naming


async def _sft(tiny: Path, toy_pairs: Path, out: Path, **options: Any) -> Any:
    return await eh.aio.train_sft(tiny, toy_pairs, out, **options)


async def test_an_unknown_option_is_refused_and_nothing_is_trained(
    tiny: Path, toy_pairs: Path, tmp_path: Path
) -> None:
    with raises_naming(UserError, "'setings'", "'settings'"):
        await _sft(tiny, toy_pairs, tmp_path / "out", setings={"batch": 4})
    assert not (tmp_path / "out").exists()


async def test_no_process_trains_nothing(tiny: Path, toy_pairs: Path, tmp_path: Path) -> None:
    with raises_naming(UserError, "not 0"):
        await _sft(tiny, toy_pairs, tmp_path / "out", processes=0)


@pytest.mark.parametrize("number", [{"nodes": 0}, {"gpus": 0}])
async def test_an_export_needs_a_machine_and_a_gpu(
    number: dict[str, Any], tiny: Path, toy_pairs: Path, tmp_path: Path
) -> None:
    with raises_naming(UserError, "GPUs"):
        await eh.aio.train_export("openrlhf", toy_pairs, tiny, tmp_path / "job", **number)


async def test_an_export_for_an_unknown_project_writes_nothing(
    tiny: Path, toy_pairs: Path, tmp_path: Path
) -> None:
    project: Any = "openrlfh"
    with raises_naming(UserError, "'openrlhf'"):
        await eh.aio.train_export(project, toy_pairs, tiny, tmp_path / "job")
    assert not (tmp_path / "job").exists()


async def test_weights_of_an_unknown_precision_are_not_written(tiny: Path, tmp_path: Path) -> None:
    precision: Any = "q8"
    like = tmp_path / "like.gguf"
    like.write_bytes(b"GGUF")
    with raises_naming(UserError, "'q8_0'"):
        await eh.aio.train_to_gguf(tiny, like, tmp_path / "out.gguf", precision=precision)


@pytest.mark.parametrize("kind", [str, Path])
async def test_one_comparison_needs_no_list(kind: type, tmp_path: Path) -> None:
    comparison = tmp_path / "bbq.json"
    comparison.write_text("[]")
    with raises_naming(UserError, "bbq.json"):
        await eh.aio.train_card(tmp_path, measured=kind(comparison))


async def test_a_training_whose_caller_is_cancelled_has_stopped_when_the_call_returns(
    tiny: Path, toy_pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began: list[float] = []
    ended: list[float] = []

    def steps(_: Any, tell: Tell) -> None:
        began.append(time.monotonic())
        try:
            for _number in range(100):
                time.sleep(0.1)
                tell(Note("a step"))
        finally:
            ended.append(time.monotonic())

    monkeypatch.setattr(launch, "run", steps)
    calling = asyncio.create_task(_sft(tiny, toy_pairs, tmp_path / "out"))
    while not began:
        await asyncio.sleep(0.01)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert ended[0] - began[0] < 5


async def test_the_processes_of_a_training_whose_caller_is_cancelled_are_ended(
    tiny: Path, toy_pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, late = tmp_path / "began", tmp_path / "late"
    code = (
        "import pathlib, sys, time; pathlib.Path(sys.argv[1]).touch(); time.sleep(4);"
        "pathlib.Path(sys.argv[2]).touch()"
    )
    words = [sys.executable, "-c", code, str(began), str(late)]
    monkeypatch.setattr(launch, "command", lambda *_: words)
    calling = asyncio.create_task(_sft(tiny, toy_pairs, tmp_path / "out", processes=2))
    while not began.exists():
        await asyncio.sleep(0.02)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    await asyncio.sleep(4.5)
    assert not late.exists()
