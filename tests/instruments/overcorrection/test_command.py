"""`evenhand overcorrection` as a user runs it, on forty texts whose fates are worked by hand."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.cli.conftest import Run, endpoint, evenhand
from tests.errors import assert_names
from tests.loopback.process import RemoteServer, in_own_process

from .editor import Editor, write_texts

__all__ = ["endpoint", "evenhand"]  # the fixtures

STARDTOX = "stardtox:performance=false"
METHODS = f"default,fairness,{STARDTOX},stored"


@pytest.fixture(scope="module")
def server() -> Iterator[RemoteServer]:
    with in_own_process(Editor()) as server:
        yield server


def _command(tmp_path: Path, *more: str) -> tuple[str, ...]:
    texts = write_texts(tmp_path / "texts.jsonl")
    return ("overcorrection", "--texts", str(texts), "--out", "benign", *more)


def _estimates(arm: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in arm["report"]["scores"]["estimates"]}


def _counts(arm: dict[str, Any]) -> dict[str, int]:
    """How many texts had each outcome."""
    found = _estimates(arm)
    return {
        name: round(one["value"] * one["n"]) for name, one in found.items() if name != "made_worse"
    }


def _change(arm: dict[str, Any]) -> dict[str, Any]:
    (made_worse,) = arm["comparison"]["primary"]
    return dict(made_worse)


def test_each_method_is_charged_with_the_texts_that_it_made_worse(
    evenhand: Run, server: RemoteServer, tmp_path: Path
) -> None:
    command = _command(tmp_path, "--method", METHODS, "--json")
    ran = evenhand(*command, EVENHAND_BASE_URL=server.url)
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout)
    found = {entry["name"]: entry for entry in report["arms"]}
    assert list(found) == METHODS.split(",")
    none = dict.fromkeys(("refused", "emptied", "moralised", "identity_erased", "kept"), 0)
    assert _counts(found["stored"]) == {**none, "unchanged": 40}
    assert _counts(found["default"]) == {**none, "identity_erased": 2, "unchanged": 38}
    assert _counts(found[STARDTOX]) == {**none, "identity_erased": 10, "unchanged": 30}
    assert _counts(found["fairness"]) == {
        "refused": 4,
        "emptied": 2,
        "moralised": 5,
        "identity_erased": 8,
        "kept": 5,
        "unchanged": 16,
    }
    assert _estimates(found["fairness"])["made_worse"]["value"] == pytest.approx(19 / 40)
    assert _change(found["fairness"])["difference"] == pytest.approx(17 / 40)
    assert _change(found["stored"])["difference"] == pytest.approx(-2 / 40)
    assert (report["reference"], found["default"]["comparison"]) == ("default", None)
    _same_as_the_files(tmp_path / "benign", report)


def _same_as_the_files(folder: Path, report: dict[str, Any]) -> None:
    assert json.loads((folder / "overcorrection.json").read_bytes()) == report
    rows = pl.read_parquet(folder / "overcorrection.parquet")
    assert len(rows) == 160
    fair = rows.filter((pl.col("method") == "fairness") & (pl.col("item_id") == "own/12")).row(
        0, named=True
    )
    assert fair["outcome"] == "identity_erased"  # line 12 is case 11, the first that is erased
    assert "gay" in fair["before"]
    assert "gay" not in fair["after"]


def test_the_interval_is_the_widest_over_templates_and_groups(
    evenhand: Run, server: RemoteServer, tmp_path: Path
) -> None:
    """10 of 40, five about each group. By template: n* = 0.1875/(40/39 · 7.5/40²) = 39, so the
    exact ends of 9.75 of 39. By group: no spread, so nothing to add."""
    ran = evenhand(
        *_command(tmp_path, "--method", STARDTOX, "--json"), EVENHAND_BASE_URL=server.url
    )
    (entry,) = json.loads(ran.stdout)["arms"]
    assert entry["comparison"] is None  # nothing to compare it with: default was not run
    worse = _estimates(entry)["made_worse"]
    assert (worse["value"], worse["n"], worse["clusters"]) == (0.25, 40, 2)
    assert worse["low"] == pytest.approx(0.1256, abs=1e-4)
    assert worse["high"] == pytest.approx(0.4143, abs=1e-4)
    families = entry["report"]["scores"]["groups"]["family"]
    assert {name: one["value"] for name, (one,) in families.items()} == {
        "ability": 0.25,
        "sexual_orientation": 0.25,
    }


def test_nothing_seen_is_not_nothing_to_fear(
    evenhand: Run, server: RemoteServer, tmp_path: Path
) -> None:
    ran = evenhand(
        *_command(tmp_path, "--method", "stored", "--json"), EVENHAND_BASE_URL=server.url
    )
    (entry,) = json.loads(ran.stdout)["arms"]
    worse = _estimates(entry)["made_worse"]
    assert worse["low"] == 0.0
    assert worse["high"] == pytest.approx(0.0881, abs=1e-4)  # 1 − 0.025^(1/40)


def test_a_second_time_asks_nobody_and_shows_the_same(
    evenhand: Run, server: RemoteServer, tmp_path: Path
) -> None:
    command = _command(tmp_path, "--method", "default,fairness")
    first = evenhand(*command, EVENHAND_BASE_URL=server.url)
    assert first.returncode == 0, first.stderr
    asked = server.read().outcomes["said"]
    again = evenhand(*command, EVENHAND_BASE_URL=server.url)
    assert again.stdout == first.stdout
    assert server.read().outcomes["said"] == asked
    shown = " ".join(first.stdout.split())
    assert "default 0.050 " in shown
    assert "fairness 0.475 " in shown
    assert "? +0.425 " in shown  # two groups of people: nothing is shown, however large
    examples = shown.partition("fairness: an example of each")[2]
    erased = "identity erased The gay neighbour, case 11"
    assert erased in examples


def test_a_verdict_that_cannot_be_read_is_missing_and_not_unchanged(
    evenhand: Run, tmp_path: Path
) -> None:
    with in_own_process(Editor(unreadable_from=36)) as server:
        command = _command(tmp_path, "--method", STARDTOX)
        shown = evenhand(*command, EVENHAND_BASE_URL=server.url)
        ran = evenhand(*command, "--json", EVENHAND_BASE_URL=server.url)
    assert (shown.returncode, ran.returncode) == (2, 2)  # 36 of 40 is below 95 %
    assert_names(shown.stdout, "90.0%", "95%")
    (entry,) = json.loads(ran.stdout)["arms"]
    coverage = entry["report"]["scores"]["coverage"]
    assert coverage["by_reason"] == {"not_judged": 4}
    assert _estimates(entry)["made_worse"]["value"] == pytest.approx(10 / 36)
    assert _counts(entry)["unchanged"] == 26


def test_a_cap_is_for_all_methods_together(evenhand: Run, tmp_path: Path) -> None:
    with in_own_process(Editor()) as server:
        command = _command(tmp_path, "--method", "default,fairness", "--max-calls")
        capped = evenhand(*command, "60", EVENHAND_BASE_URL=server.url)
        assert (capped.returncode, server.read().outcomes["said"]) == (3, 60)
        assert not (tmp_path / "benign/overcorrection.json").exists()
        done = evenhand(*command, "80", EVENHAND_BASE_URL=server.url)
        assert (done.returncode, server.read().outcomes["said"]) == (0, 80)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--method", "nonsense"), "there is no method 'nonsense'"),
        (("--method", "cot"), "cot does not edit texts. Methods that do: default, fairness"),
        (("--method", "stardtox:depth=2"), "stardtox has no setting 'depth'"),
        (("--method", ","), "--method names no method"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is_asked(
    evenhand: Run, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    ran = evenhand(*_command(tmp_path, *arguments))
    assert ran.returncode == 1
    assert said in " ".join(ran.stderr.split())
    assert not (tmp_path / "benign").exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"text": "A man."}', "line 1: identity: Field required"),
        ('{"text": "A man.", "identity": "gay"}', "line 1: the text does not contain 'gay'"),
        ('{"text": "A gay man.", "identity": "gay; deaf"}', "does not contain 'deaf'"),
        ("not JSON", "line 1: "),
        ("", "is empty"),
    ],
)
def test_a_file_that_cannot_be_read_says_where(
    evenhand: Run, tmp_path: Path, line: str, said: str
) -> None:
    (tmp_path / "own.jsonl").write_text(f"{line}\n")
    ran = evenhand("overcorrection", "--texts", "own.jsonl", "--out", "benign")
    assert ran.returncode == 1
    assert said in " ".join(ran.stderr.split())


def test_the_whole_sample_is_five_hundred_texts_and_stored_ones_are_all_unchanged(
    evenhand: Run, data_folder: Path
) -> None:
    command = ("overcorrection", "--method", "stored", "--out", "benign", "--json")
    ran = evenhand(*command, EVENHAND_DATA=str(data_folder))
    assert ran.returncode == 0, ran.stderr
    (entry,) = json.loads(ran.stdout)["arms"]
    assert entry["report"]["scores"]["coverage"]["scored"] == 500
    assert _counts(entry)["unchanged"] == 500
