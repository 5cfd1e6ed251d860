"""What goes wrong with a model, a run or a baseline is never a pass: real servers, real folders."""

import json
import shutil
from pathlib import Path

import pytest

import evenhand
from evenhand import gate
from evenhand.core.prices import Price, Prices
from evenhand.findings.display import Remark
from evenhand.findings.gate import Gate
from evenhand.runs.store import RunReader
from evenhand.views.files import to_json
from evenhand.views.gate_page import decides
from tests.errors import assert_names
from tests.findings.gate import texts
from tests.loopback.process import RemoteServer
from tests.same_numbers.adapter import KEPT


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a project with a baseline that gave every text back."""
    made = tmp_path_factory.mktemp("project")
    texts.write(made)
    (made / "evenhand.gate.toml").write_text(texts.STORED)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        evenhand.gate_baseline(out="main")
    assert (made / "main/checks.json").exists()
    return made


@pytest.fixture
def project(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(kept, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _asked(url: str, seconds: float = 300.0) -> Gate:
    Path("evenhand.gate.toml").write_text(texts.FILE)
    model = evenhand.Endpoint(url, model="pretended")
    return gate(baseline="main", model=model, out="now", limits=evenhand.Limits(seconds=seconds))


def test_the_server_without_a_fault_passes(project: Path, server: RemoteServer) -> None:
    server.set("fault", "")
    found = _asked(server.url)
    assert found.passed, found.says


@pytest.mark.parametrize("fault", ["garbage", "refusing", "empty", "half"])
def test_a_model_that_gives_no_answers_does_not_pass_and_is_not_called_worse(
    project: Path, server: RemoteServer, fault: str
) -> None:
    server.set("fault", fault)
    # What is no reply at all is asked for again and again: two seconds of that are enough.
    found = _asked(server.url, 2.0 if fault == "garbage" else 300.0)
    # A refusal is an answer that is read; what is missing is no evidence of anything.
    assert found.verdict == ("fail" if fault == "refusing" else "error"), found.says


def test_an_endpoint_that_is_dead_is_no_pass(project: Path) -> None:
    assert _asked("http://127.0.0.1:9/v1", 2.0).verdict in ("fail", "error")


@pytest.mark.parametrize("part", ["results", "turns"])
def test_a_run_whose_files_are_cut_off_or_gone_is_broken(project: Path, part: str) -> None:
    assert gate(baseline="main", out="now").passed
    [file] = Path("now/run-made-worse", part).glob("*.parquet")
    file.write_bytes(file.read_bytes()[:-50])
    assert gate(baseline="main", run="now").verdict == "error"
    assert gate(baseline="now", run="main").verdict == "error"
    file.unlink()
    assert gate(baseline="main", run="now").verdict == "error"


def test_without_a_baseline_the_command_that_makes_one_is_said(project: Path) -> None:
    found = gate(baseline="nowhere", run="main")
    assert found.verdict == "error"
    assert_names(found.says, "--as-baseline", "--out nowhere")


def test_a_run_over_other_items_is_broken(project: Path) -> None:
    texts.write(project, texts=12)
    Path("evenhand.gate.toml").write_text(texts.STORED)
    found = gate(baseline="main", out="other")
    assert found.verdict == "error"
    assert "different samples" in found.says


def test_a_check_that_the_baseline_had_and_this_run_lacks_fails(project: Path) -> None:
    whole = texts.STORED
    Path("evenhand.gate.toml").write_text(whole.partition('[[check]]\nname = "refused"')[0])
    found = gate(baseline="main", out="now")
    assert {one.name: one.verdict for one in found.checks} == {
        "made worse": "pass",
        "refused": "fail",
    }
    Path("evenhand.gate.toml").write_text(whole)  # the file has it, and the run that is judged not
    assert gate(baseline="main", run="now").verdict == "fail"


def test_the_baseline_is_no_baseline_of_itself(project: Path) -> None:
    found = gate(baseline="main", run=project / "main")
    assert found.verdict == "error"
    assert_names(found.says, "baseline itself", "main")


def test_a_copy_of_the_baseline_is_broken_and_the_same_answers_given_anew_are_not(
    project: Path,
) -> None:
    shutil.copytree("main", "copied")
    copied = gate(baseline="main", run="copied")
    assert copied.verdict == "error"
    assert_names(copied.says, "a copy", "main/run-made-worse")
    anew = gate(baseline="main", out="anew")
    answers = [RunReader(f"{one}/run-made-worse").digests()["answers"] for one in ("main", "anew")]
    assert answers[0] == answers[1]
    assert anew.passed


def test_a_run_by_another_method_than_the_file_names_is_not_judged(tmp_path: Path) -> None:
    file = tmp_path / "gate.toml"
    file.write_text('[[check]]\ninstrument = "bbq"\nmargin = 0.03\nmethod = "fairness"\n')
    found = gate(file, baseline=KEPT / "bbq/default", run=KEPT / "bbq/self_debias_reprompting")
    assert found.verdict == "error"
    assert_names(found.says, "self_debias_reprompting", "fairness")


def test_a_margin_that_was_made_wider_is_said(project: Path) -> None:
    Path("evenhand.gate.toml").write_text(texts.STORED.replace("0.3", "0.5", 1))
    shutil.copytree("main", "now")
    found = gate(baseline="main", run="now")
    assert found.notes == (Remark("gate.wider_margin", check="made worse", before=0.3, now=0.5),)


def test_a_check_that_looks_at_something_else_under_its_name_is_said(project: Path) -> None:
    other = texts.STORED.replace('measure = "refused"', 'measure = "moralised"')
    Path("evenhand.gate.toml").write_text(other)
    shutil.copytree("main", "now")
    found = gate(baseline="main", run="now")
    looks = {"check": "refused", "before": "refused", "now": "moralised"}
    assert found.notes == (Remark("gate.looks_elsewhere", **looks),)


def test_a_file_whose_name_is_not_utf8_is_broken_in_words(project: Path) -> None:
    found = gate(Path("b\udcff.toml"), baseline="main", run="main")
    assert found.verdict == "error"
    assert json.loads(to_json(found))["file"] == "b?.toml"


def test_open_says_how_many_more_items_would_decide_and_what_they_cost(
    project: Path, server: RemoteServer
) -> None:
    server.set("fault", "")
    _asked(server.url)
    Path("evenhand.gate.toml").write_text(texts.FILE.replace("0.3", "0.02"))
    price = Price(per_million_prompt_tokens=5e4, per_million_completion_tokens=0)
    found = gate(baseline="main", run="now", prices=Prices({"pretended": price}, "USD"))
    assert found.verdict == "inconclusive", found.says
    # 183 clusters are the fewest of which none may hide a loss of 0.02, and there are 24; a text
    # takes one call, 28 tokens, and of these 20 that cost 0.05 each.
    for one in found.checks:
        assert one.more is not None
        cost = decides(one.more)
        assert_names(cost, "159 more", "4 times", "159 calls", "4,452", "159.00 USD")
