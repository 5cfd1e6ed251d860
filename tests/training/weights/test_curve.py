"""What a training writes down at each step, and how it is shown."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from evenhand.cli.app import app
from evenhand.core.errors import UserError
from evenhand.training.events import Note, TrainingStep, kept, read_steps, silent
from evenhand.training.record import training_run
from evenhand.views.charts import charts_of
from tests.errors import assert_names, raises_naming

LOSSES = (8.0, 6.0, 4.0, 2.0, 1.0, 1.0, 1.0, 5.0)  # first four: 5, last four: 2


def _trained(out: Path, losses: tuple[float, ...] = LOSSES, state: str = "done") -> Path:
    tell = kept(out, silent)
    for at, loss in enumerate(losses, 1):
        tell(TrainingStep(stage="sft", step=at, steps=len(LOSSES), loss=loss, reward=None))
    (out / "train.json").write_text(
        json.dumps({"stage": "sft", "state": state, "resumed_from": []})
    )
    return out


def test_first_and_last_are_means_of_four_steps(tmp_path: Path) -> None:
    found = training_run(_trained(tmp_path))
    (loss,) = found.courses  # nothing else was measured
    assert (loss.first, loss.last, found.ends) == (5.0, 2.0, 4)
    assert loss.points == tuple(enumerate(LOSSES, 1))


def test_what_was_done_again_after_a_stop_counts_as_it_was_done_last(tmp_path: Path) -> None:
    tell = kept(_trained(tmp_path), silent)
    tell(Note("goes on from step 2"))
    tell(TrainingStep(stage="sft", step=3, steps=8, loss=7.0))
    assert [(one.step, one.loss) for one in read_steps(tmp_path)] == [(1, 8.0), (2, 6.0), (3, 7.0)]


def test_half_a_line_that_a_kill_left_counts_not_at_all(tmp_path: Path) -> None:
    file = _trained(tmp_path) / "steps.jsonl"
    file.write_bytes(file.read_bytes()[:-5])
    assert [one.step for one in read_steps(tmp_path)] == [1, 2, 3, 4, 5, 6, 7]
    kept(tmp_path, silent)(TrainingStep(stage="sft", step=8, steps=8, loss=0.5))
    assert [one.loss for one in read_steps(tmp_path)][-1] == 0.5


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_is_said_and_spoils_its_mean(tmp_path: Path, loss: float) -> None:
    (course,) = training_run(_trained(tmp_path, (*LOSSES[:7], loss))).courses
    assert (course.not_numbers, course.first, course.last) == (1, 5.0, None)
    shown = CliRunner().invoke(app, ["train", "show", str(tmp_path)])
    assert_names(shown.output, "1 steps")


@given(st.lists(st.floats(), min_size=1, max_size=9))
def test_what_is_kept_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, losses: list[float]
) -> None:
    out = tmp_path_factory.mktemp("kept")
    read = read_steps(_trained(out, tuple(losses)))
    assert [repr(one.loss) for one in read] == [repr(loss) for loss in losses]


def test_a_training_that_kl_stopped_says_so(tmp_path: Path) -> None:
    record = _trained(tmp_path, LOSSES[:5]) / "train.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {"stopped_at_kl": 5}))
    shown = CliRunner().invoke(app, ["train", "show", str(tmp_path)])
    assert_names(shown.output, "5 of 8", "step 5")


def test_steps_that_were_not_written_down_are_counted(tmp_path: Path) -> None:
    file = _trained(tmp_path) / "steps.jsonl"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[3:]))
    found = training_run(tmp_path)
    assert (found.absent, len(found.steps)) == (3, 5)
    shown = CliRunner().invoke(app, ["train", "show", str(tmp_path)])
    assert_names(shown.output, "first 2")  # they are steps 4 and 5  # they are steps 4 and 5


def test_the_first_step_of_one_is_not_shown_as_the_last_too(tmp_path: Path) -> None:
    record = _trained(tmp_path, LOSSES[:1]) / "train.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {"resumed_from": None}))
    shown = CliRunner().invoke(app, ["train", "show", str(tmp_path)])
    assert shown.exit_code == 0, shown.output
    assert shown.output.count("8") == 2  # of 8 steps, and the loss


def test_what_was_measured_late_only_has_no_mean_of_the_first_steps(tmp_path: Path) -> None:
    tell = kept(_trained(tmp_path, ()), silent)
    for at in range(1, 9):
        tell(TrainingStep(stage="ppo", step=at, steps=8, loss=1.0, kl=0.5 if at > 4 else None))
    kl = next(one for one in training_run(tmp_path).courses if one.quantity.name == "kl")
    assert (kl.first, kl.last) == (None, 0.5)


@pytest.mark.parametrize("line", ['{"step": "x"}', "[" * 100_000, '{"step": 1e999}'])
def test_a_foreign_line_is_refused_with_its_number(tmp_path: Path, line: str) -> None:
    file = _trained(tmp_path) / "steps.jsonl"
    file.write_text(f"{file.read_text()}{line}\n")
    with raises_naming(UserError, "steps.jsonl", "line 9"):
        read_steps(tmp_path)


def test_the_page_has_the_curve_and_every_step(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    shown = CliRunner().invoke(app, ["train", "show", str(_trained(tmp_path)), "--out", str(page)])
    assert shown.exit_code == 0, shown.output
    assert "data:image/svg+xml" in page.read_text()
    assert [f">{step}</td>" in page.read_text() for step in range(1, 9)] == [True] * 8
    (chart,) = charts_of(training_run(tmp_path))
    assert_names(chart.alt, "loss", "8 to 5")


def test_a_folder_without_a_training_says_what_to_give(tmp_path: Path) -> None:
    with raises_naming(UserError, tmp_path, "evenhand train sft", "--out"):
        training_run(tmp_path)
