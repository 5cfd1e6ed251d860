"""`evenhand dev self-test` says a line a control and ends with 1 where one is misread."""

import json

import pytest
import typer
from typer.testing import CliRunner

from evenhand.cli.validation import self_test
from evenhand.validation.self_test import CHECKS, Bench, ControlClaim, ControlReading, checks
from tests.errors import assert_names

APP = typer.Typer()
APP.command()(self_test)


async def misread(bench: Bench) -> ControlReading:
    del bench
    claims = [
        ControlClaim("it is 0; read: 1", holds=False),
        ControlClaim("it is there", holds=True),
    ]
    return ControlReading.of("somebody", "nothing", "1", claims)


@pytest.fixture
def two_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """One control that is read rightly and one that is not, so that it takes a second."""
    few = {"always_unknown": CHECKS["always_unknown"], "misread": misread}
    monkeypatch.setattr(checks, "CHECKS", few)


@pytest.mark.usefixtures("two_checks")
def test_a_misread_control_is_named_with_what_should_hold_and_the_end_is_1() -> None:
    ended = CliRunner().invoke(APP, [])
    good, bad, should, last = ended.stdout.splitlines()
    assert ended.exit_code == 1
    assert good.startswith("✓ always unknown")
    assert bad.startswith("✗ somebody")
    assert_names(should, "it is 0", "read: 1")
    assert last.startswith("1 of 2")


@pytest.mark.usefixtures("two_checks")
def test_the_same_for_machines() -> None:
    ended = CliRunner().invoke(APP, ["--json"])
    found = json.loads(ended.stdout)
    assert (ended.exit_code, found["good"]) == (1, False)
    assert [one["good"] for one in found["controls"]] == [True, False]
    (misread,) = found["controls"][1]["misread"]
    assert_names(misread, "it is 0", "read: 1")


def test_all_well_ends_with_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "CHECKS", {"always_unknown": CHECKS["always_unknown"]})
    assert CliRunner().invoke(APP, []).exit_code == 0
