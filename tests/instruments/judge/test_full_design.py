"""MALIBU's full design as a user asks for it: set-ups, panels, written texts, several judges."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from evenhand.findings.certificate import Certificate
from evenhand.instruments.judge.certificate import FILE
from tests.cli.conftest import Run, endpoint, evenhand
from tests.loopback.process import RemoteServer, in_own_process
from tests.same_numbers.adapter import KEPT

from .judges import Planted

__all__ = ["endpoint", "evenhand"]  # the fixtures

# 6 bases × 2 identities and 3 controls, and 1 pair × 6 bases × 4; no requests.
SMALL = ("--bases", "6", "--texts", "1", "--pairs", "6", "--identities", "female,male",
         "--injections", "0")  # fmt: skip
CONFIG = """
[models.default]
base_url = "{url}"
model = "pretended"

[models.one]
base_url = "{url}"
model = "pretended"

[models.two]
base_url = "{url}"
model = "rival"
"""


@pytest.fixture(scope="module")
def planted() -> Iterator[RemoteServer]:
    """A server that plays whatever model it is asked for."""
    with in_own_process(Planted(favoured="a woman", swayed=1), lists_models=False) as server:
        yield server


@pytest.fixture
def server(tmp_path: Path, planted: RemoteServer) -> RemoteServer:
    """A judge who gives women two points more, and a third once others have spoken."""
    (tmp_path / "evenhand.toml").write_text(CONFIG.format(url=planted.url))
    planted.set("by", 2)
    planted.set("slot", "")
    return planted


def _report(evenhand: Run, server: RemoteServer, *options: str) -> dict[str, Any]:
    ran = evenhand("audit", "judge", *SMALL, *options, "--json", EVENHAND_BASE_URL=server.url)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_derived_scenarios_and_response_1_alone_can_be_asked_for(
    evenhand: Run, server: RemoteServer
) -> None:
    found = _report(evenhand, server, "--derived", "2", "--out", "run")
    assert found["coverage"]["single"]["n"] == 6 * 2 * 1 * 5
    assert found["coverage"]["pair"]["n"] == 6 * 2 * 4
    sampling = found["source"]["sampling"]
    assert (sampling["derived"], sampling["texts"], found["coverage"]["bases"]) == (2, 1, 6)
    means = {(one["label"], one["metric"]): one for one in found["figures"]["means"]}
    female, none = means["female", "combined"], means["none", "combined"]
    assert female["value"] == pytest.approx(none["value"] + 2)  # over all texts, as planted
    assert (female["n"], female["clusters"]) == (12, 6)
    assert found["discussion"] is None


def test_a_panel_of_two_models_shows_what_its_discussion_does_and_is_certified_as_one(
    evenhand: Run, server: RemoteServer, tmp_path: Path
) -> None:
    """Alone a woman gets 2 points more, after the discussion 3; others stay as they are."""
    options = ("--method", "panel", "--judge", "one,two", "--set", "personas=a; b", "--out", "run")
    found = _report(evenhand, server, *options)
    changed = {e["label"]: e["estimate"] for e in found["discussion"]["labels"]}
    assert changed == {"female": 1.0, "male": 0.0}
    assert found["discussion"]["marks"]["value"] == pytest.approx(1 / 5)  # one of five labels
    assert found["discussion"]["marks_moved"]["value"] == pytest.approx(1 / 5)
    assert found["discussion"]["verdicts_turned"]["value"] == 0.0
    assert found["primary"][0]["estimate"] == 3.0
    certificate = Certificate.from_bytes((tmp_path / "run" / FILE).read_bytes(), "it")
    assert certificate.judge.model == "pretended + rival"
    assert certificate.method["settings"]["models"] == 2
    assert certificate.judge.described["judge_2"]["model"] == "rival"


def test_several_judges_without_a_panel_are_refused(evenhand: Run, server: RemoteServer) -> None:
    ran = evenhand("audit", "judge", *SMALL, "--judge", "one,two", "--out", "run")
    assert ran.returncode == 1
    assert "--method panel" in ran.stderr


def test_a_model_writes_the_responses_and_judges_are_audited_on_them(
    evenhand: Run, server: RemoteServer, tmp_path: Path
) -> None:
    ran = evenhand(
        "dev", "judge-scenarios", "--bases", "6", "--out", "texts", EVENHAND_BASE_URL=server.url
    )
    assert ran.returncode == 0, ran.stderr
    assert "6 of 6 scenarios have two responses; in 0 the lengths differ" in ran.stdout
    lines = (tmp_path / "texts/scenarios.jsonl").read_bytes().splitlines()
    assert len({orjson.loads(line)["base"] for line in lines}) == 6
    found = _report(evenhand, server, "--scenarios", "texts/scenarios.jsonl", "--out", "run")
    assert found["source"]["own"]["scenarios"]  # it opens no gate
    assert found["primary"][0]["estimate"] == 2.0


def test_two_judges_are_compared_on_the_same_texts(
    evenhand: Run, server: RemoteServer, tmp_path: Path
) -> None:
    """The second gives women four points instead of two, and always takes the first of two."""
    _report(evenhand, server, "--judge", "one", "--out", "first")
    server.set("by", 4)
    server.set("slot", "first")
    _report(evenhand, server, "--judge", "two", "--out", "second")
    ran = evenhand("compare", "first", "second", "--json")
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    changes = {one["name"]: one for one in (*found["primary"], *found["secondary"])}
    assert changes["shift"]["difference"] == 1.0  # of two identities, one by two points
    assert changes["first_slot"]["difference"] == 0.5
    assert changes["position"]["after"] == 0.5
    groups = found["groups"]["identity"]
    of_label = {label: {one["name"]: one for one in each} for label, each in groups.items()}
    assert of_label["female"]["shift"]["difference"] == 2.0
    assert of_label["male"]["shift"]["difference"] == 0.0


def test_the_earlier_set_up_is_three_marks_and_not_compared_with_another_audit(
    evenhand: Run, server: RemoteServer
) -> None:
    found = _report(evenhand, server, "--set", "metrics=three", "--out", "three")
    metrics = {one["metric"] for one in found["figures"]["means"]}
    assert metrics == {"creativity", "efficiency", "quality", "combined"}
    assert found["primary"][0]["label"] == "female"
    assert found["primary"][0]["estimate"] == 2.0
    wins = [e for e in found["exploratory"] if (e["value"], e["against"]) == ("win", "all others")]
    assert {e["label"]: e["estimate"] for e in wins} == {"female": 0.5, "male": -0.5}
    assert {one["metric"] for one in found["as_the_paper_prints_it"]["paper_chi_square"]} == {
        "creativity",
        "efficiency",
        "quality",
    }
    ran = evenhand("compare", "three", str(KEPT / "judge/even"))
    assert ran.returncode == 1
    assert "differ" in ran.stderr


def test_a_pilot_prices_the_full_design_before_it_is_asked(
    evenhand: Run, server: RemoteServer
) -> None:
    """Two bases with all their scenarios: 20 × 5 and 20 × 4, of a panel of two in two rounds."""
    options = (
        "--bases",
        "2",
        "--pairs",
        "2",
        "--derived",
        "10",
        "--method",
        "panel",
        "--pilot",
        "50",
    )
    found = _report(evenhand, server, *options, "--set", "personas=a; b", "--out", "run")
    assert found["items"] == 180
    assert found["totals"]["calls"]["expected"] == 180 * 4
