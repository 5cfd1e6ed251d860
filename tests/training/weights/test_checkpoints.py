"""Which checkpoint a killed training goes on from, with each file of the newest one damaged."""

import json
import os
from pathlib import Path

import pytest

from evenhand.training.events import Note, TrainingStep
from evenhand.training.folders import CHECKSUMS, drop_old, fault_of, newest_whole, seal

FILES = ("adapter_model.safetensors", "optimizer.pt", "rng_state_0.pth", "rng_state_1.pth")


def _checkpoint(folder: Path, step: int) -> Path:
    made = folder / f"checkpoint-{step}"
    made.mkdir(parents=True)
    for name in FILES:
        (made / name).write_bytes(b"x" * 100)
    (made / "trainer_state.json").write_text(json.dumps({"global_step": step}))
    seal(made)
    return made


def test_the_newest_whole_one_is_taken_by_number_not_by_name(tmp_path: Path) -> None:
    for step in (2, 8, 10):
        _checkpoint(tmp_path, step)
    found = newest_whole(tmp_path, lambda _: None)
    assert found is not None
    assert found.name == "checkpoint-10"


def test_a_folder_with_no_checkpoint_starts_anew(tmp_path: Path) -> None:
    (tmp_path / "checkpoint-²").mkdir()  # a digit to `isdigit`, and no number
    assert newest_whole(tmp_path / "nothing", lambda _: None) is None
    assert newest_whole(tmp_path, lambda _: None) is None


@pytest.mark.parametrize(
    ("name", "keep", "said"),
    [
        (CHECKSUMS, None, "being written"),
        (CHECKSUMS, 5, "cannot be read"),
        ("trainer_state.json", None, "trainer_state.json not as written"),
        ("trainer_state.json", 5, "trainer_state.json not as written"),
        ("adapter_model.safetensors", -1, "adapter_model.safetensors not as written"),
        ("optimizer.pt", None, "optimizer.pt not as written"),
        ("rng_state_1.pth", 0, "rng_state_1.pth not as written"),
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
    told: list[TrainingStep | Note] = []
    found = newest_whole(tmp_path, told.append)
    assert found == tmp_path / "checkpoint-4"
    assert len(told) == 1
    assert isinstance(told[0], Note)
    assert "checkpoint-6" in told[0].text
    assert said in told[0].text


@pytest.mark.parametrize("listed", ["[]", "7", '"x"', "{}", "null", '{"a": {}}', "\udcff"])
def test_a_list_of_another_form_is_a_fault_and_no_traceback(tmp_path: Path, listed: str) -> None:
    made = _checkpoint(tmp_path, 2)
    (made / CHECKSUMS).write_bytes(listed.encode(errors="surrogateescape"))
    assert fault_of(made) is not None


def test_a_file_that_was_added_or_is_a_link_or_a_pipe_is_not_trusted(tmp_path: Path) -> None:
    added, linked, piped = (_checkpoint(tmp_path, step) for step in (2, 4, 6))
    (added / "scaler.pt").write_bytes(b"y")
    (linked / "optimizer.pt").rename(tmp_path / "outside")
    (linked / "optimizer.pt").symlink_to(tmp_path / "outside")  # with the very same bytes
    (piped / "optimizer.pt").unlink()
    os.mkfifo(piped / "optimizer.pt")  # opened, it would wait for ever
    for made in (added, linked, piped):
        assert fault_of(made) is not None, made.name


def test_a_state_of_another_step_is_not_trusted(tmp_path: Path) -> None:
    made = _checkpoint(tmp_path, 6)
    assert fault_of(made.rename(tmp_path / "checkpoint-7")) is not None


def test_one_that_is_written_again_after_a_kill_in_its_list_is_whole(tmp_path: Path) -> None:
    made = _checkpoint(tmp_path, 6)
    (made / CHECKSUMS).rename(made / f".{CHECKSUMS}.part")
    assert fault_of(made) is not None
    seal(made)
    assert fault_of(made) is None


def test_the_newest_are_kept(tmp_path: Path) -> None:
    for step in (2, 4, 10):
        _checkpoint(tmp_path, step)
    drop_old(tmp_path, 2)
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoint-4", "checkpoint-10"}
