"""Which checkpoint a killed training goes on from, with each file of the newest one damaged."""

import json
import struct
import zipfile
from pathlib import Path

import pytest

from evenhand.training.checkpoints import fault_of, newest_whole
from evenhand.training.events import Note, Step


def _safetensors(file: Path, numbers: int = 4) -> None:
    header = {"w": {"dtype": "F32", "shape": [numbers], "data_offsets": [0, 4 * numbers]}}
    said = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(said)) + said + b"\0" * 4 * numbers)


def _checkpoint(folder: Path, step: int, states: tuple[str, ...] = ("rng_state.pth",)) -> Path:
    made = folder / f"checkpoint-{step}"
    made.mkdir(parents=True)
    _safetensors(made / "adapter_model.safetensors")
    for name in ("optimizer.pt", "scheduler.pt", *states):
        with zipfile.ZipFile(made / name, "w") as archive:
            archive.writestr("data", "x" * 100)
    (made / "trainer_state.json").write_text(json.dumps({"global_step": step}))
    return made


def test_the_newest_whole_one_is_taken_by_number_not_by_name(tmp_path: Path) -> None:
    for step in (2, 8, 10):
        _checkpoint(tmp_path, step)
    found = newest_whole(tmp_path, lambda _: None)
    assert found is not None
    assert found.name == "checkpoint-10"


def test_a_folder_with_no_checkpoint_starts_anew(tmp_path: Path) -> None:
    assert newest_whole(tmp_path / "nothing", lambda _: None) is None


@pytest.mark.parametrize(
    ("name", "keep", "said"),
    [
        ("trainer_state.json", None, "being written"),
        ("trainer_state.json", 5, "cannot be read"),
        ("adapter_model.safetensors", 5, "adapter_model.safetensors cut short"),
        ("adapter_model.safetensors", -1, "adapter_model.safetensors cut short"),
        ("optimizer.pt", -30, "optimizer.pt cut short"),
        ("optimizer.pt", None, "no optimizer.pt"),
        ("rng_state.pth", None, "no rng_state.pth"),
    ],
)
def test_a_damaged_newest_one_is_passed_over_with_its_reason(
    tmp_path: Path, name: str, keep: int | None, said: str
) -> None:
    _checkpoint(tmp_path, 4)
    file = _checkpoint(tmp_path, 6) / name
    if keep is None:
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:keep])
    told: list[Step | Note] = []
    found = newest_whole(tmp_path, told.append)
    assert found == tmp_path / "checkpoint-4"
    assert len(told) == 1
    assert isinstance(told[0], Note)
    assert "checkpoint-6" in told[0].text
    assert said in told[0].text


def test_a_state_of_another_step_is_not_trusted(tmp_path: Path) -> None:
    made = _checkpoint(tmp_path, 6)
    assert fault_of(made.rename(tmp_path / "checkpoint-7")) is not None


def test_two_processes_need_the_random_state_of_each(tmp_path: Path) -> None:
    both = _checkpoint(tmp_path, 2, ("rng_state_0.pth", "rng_state_1.pth"))
    one = _checkpoint(tmp_path, 4, ("rng_state_0.pth",))
    assert fault_of(both, processes=2) is None
    assert fault_of(one, processes=2) is not None
