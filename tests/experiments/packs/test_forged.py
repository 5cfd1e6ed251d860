"""What a forger without a key could do: a pack whose list fits what was changed is found out by
what its runs give."""

import contextlib
import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evenhand.core.errors import UserError
from evenhand.experiments import pack_checks, packs
from evenhand.experiments.pack_checks import verify
from evenhand.experiments.packs import PackOptions, make
from evenhand.findings.display import Remark
from evenhand.findings.pack_manifest import EVIDENCE, FIGURES, PAGE, PackManifest
from evenhand.runs.store import RunReader, archive
from evenhand.views import charts
from evenhand.views.pack import files_of
from tests.errors import assert_names, raises_naming
from tests.experiments.packs.conftest import (
    KEPT,
    Packed,
    keys_in,
    remarks_in,
    runs,
    sealed,
    seen_in,
    states,
)

SMALL = "overcorrection/default"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("small") / "small.zip"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(charts, "installed", lambda: False)
        make(runs(SMALL), path, PackOptions(frameworks=("eu-ai-act",)))
    return path


@pytest.fixture
def folder(small: Path, tmp_path: Path) -> Path:
    archive.unpack(small, tmp_path / "folder")
    return tmp_path / "folder"


def _made_anew(folder: Path, **changed: Any) -> None:
    """What a forger's own copy of the program makes of changed evidence."""
    old = PackManifest.from_bytes((folder / EVIDENCE).read_bytes())
    with contextlib.chdir(folder):
        found = packs.read([one.run for one in old.runs], old.title, None, given=False)
        for name, data in files_of(found, old.model_copy(update=changed)).items():
            Path(name).write_bytes(data)


def test_a_run_that_is_not_finished_cannot_be_passed_off_as_finished(tmp_path: Path) -> None:
    folder, forged = tmp_path / "folder", tmp_path / "forged.zip"
    said = make(runs("bbq/unfinished"), tmp_path / "x.zip", PackOptions(frameworks=("eu-ai-act",)))
    archive.unpack(tmp_path / "x.zip", folder)
    _made_anew(folder, unfinished=[])
    assert "not finished" not in (folder / "frameworks/eu-ai-act.md").read_text()
    found = verify(sealed(folder, forged, unfinished=[], says=["All is finished."]))
    assert Remark("pack.other_unfinished", file=EVIDENCE) in remarks_in(found, "runs")
    (run,) = said.runs
    for field, value in (("model", "better"), ("method", "debate"), ("planned", run.planned - 1),
                         ("created", "2031-01-01T00:00:00+00:00")):  # fmt: skip
        other = run.model_copy(update={field: value})
        found = verify(sealed(folder, forged, unfinished=said.unfinished, runs=[other]))
        remark = Remark("pack.another_run", run=run.run, file=EVIDENCE)
        assert remark in remarks_in(found, "runs")


def test_what_a_pack_says_of_itself_follows_from_its_runs(folder: Path, tmp_path: Path) -> None:
    changed: dict[str, Any] = {"says": ["No bias was found."], "figures": 10**7,
                               "newest_run": "2031-01-01T00:00:00+00:00"}  # fmt: skip
    _made_anew(folder, **changed)
    said = seen_in(verify(sealed(folder, tmp_path / "forged.zip", **changed)), "figures")
    for name in changed:
        assert f"{EVIDENCE}: {name}" in said
    assert "cyclonedx.json: metadata.timestamp" in said
    assert "replay.sh" in said


def test_a_second_key_of_one_name_shows_nothing_that_the_runs_do_not(
    folder: Path, tmp_path: Path
) -> None:
    for name in (FIGURES, "cyclonedx.json"):
        text = (folder / name).read_text()
        first = json.dumps(dict.fromkeys(json.loads(text), "forged"))
        (folder / name).write_text(f"{first[:-1]}, {text[1:]}")
        assert json.loads((folder / name).read_text()) == json.loads(text)
    said = remarks_in(verify(sealed(folder, tmp_path / "forged.zip")), "figures")
    for name in (FIGURES, "cyclonedx.json"):
        assert Remark("pack.not_as_written", name=name) in said


def test_nothing_lies_among_runs_and_certificates_that_is_none(
    folder: Path, tmp_path: Path
) -> None:
    strays = ("runs/default/report.json", "runs/default/ledger/.x", "runs/default/scores.parquet",
              "runs/b/run.json", "runs/README.html")  # fmt: skip
    for name in (*strays, "certificates/given/x.json"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}")
    found = verify(sealed(folder, tmp_path / "forged.zip"))
    for name in strays:
        assert Remark("pack.belongs_to_no_run", name=name) in remarks_in(found, "runs")
    assert_names(seen_in(found, "files"), "certificates/given/x.json")


def test_a_pack_holds_of_a_run_what_findings_rest_on_and_names_the_rest(tmp_path: Path) -> None:
    shutil.copytree(KEPT / "rtp/default", tmp_path / "run")
    for name in ("report.json", "Notes.txt", "notes.txt", "quality/lock", "scoring.json"):
        (tmp_path / "run" / name).write_text("{}")
    given = tmp_path / "given"
    given.mkdir()
    for name in ("A.json", "a.json"):
        (given / name).write_text(name)
    path = tmp_path / "x.zip"
    said = make([RunReader(tmp_path / "run")], path, PackOptions(certificates=given))
    assert said.runs[0].left_out == ["Notes.txt", "notes.txt", "report.json"]
    for name in ("scores.parquet", "scoring.json", "quality/run.json"):
        assert f"runs/run/{name}" in said.files
    assert [name for name in said.files if "given" in name] == [
        "certificates/given/1-a.json", "certificates/given/A.json",
    ]  # fmt: skip
    assert set(states(verify(path)).values()) == {"holds"}
    with raises_naming(UserError, "scoring.json"):
        make(runs("rtp/fairness"), path, PackOptions())


def test_a_pack_that_says_it_is_light_has_no_runs(folder: Path, tmp_path: Path) -> None:
    found = verify(sealed(folder, tmp_path / "forged.zip", light=True))
    assert states(found)["runs"] == "differs"
    assert Remark("pack.of_no_run", name="runs/default/run.json") in remarks_in(found, "runs")
    assert "missing: runs/default.sha256" in seen_in(found, "runs")


def test_other_versions_of_what_draws_do_not_excuse_other_words(
    folder: Path, tmp_path: Path
) -> None:
    forged = tmp_path / "forged.zip"
    assert states(verify(sealed(folder, forged, charts="altair 99")))["figures"] == "not_checked"
    page = folder / PAGE
    page.write_text(page.read_text().replace("</h1>", "</h1><p>It is fair.</p>", 1))
    found = verify(sealed(folder, forged, charts="altair 99"))
    assert_names(seen_in(found, "figures"), PAGE)
    page.unlink()
    assert states(verify(sealed(folder, forged, charts="altair 99")))["figures"] == "differs"


def test_an_earlier_pack_with_other_files_under_its_evidence_is_found(
    small: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second, changed = tmp_path / "second.zip", tmp_path / "changed.zip"
    make(runs("judge/few_bases"), second, PackOptions(previous=small))
    monkeypatch.setattr(pack_checks, "_runs_and_figures", lambda *_, **__: ())
    assert states(verify(second, previous=small))["chain"] == "holds"
    (folder / FIGURES).write_text("{}")
    archive.write(changed, folder)
    assert states(verify(second, previous=changed))["chain"] == "differs"


def test_the_key_in_a_pack_is_the_one_that_signed_it_and_nothing_else(
    packed: Packed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pack_checks, "_runs_and_figures", lambda *_, **__: ())
    unpacked, forged = packed.unpacked(tmp_path / "packed"), tmp_path / "forged.zip"
    key = unpacked / "evidence.pub.pem"
    own = key.read_bytes()
    _, other = keys_in(tmp_path, "other")
    for data in (other.read_bytes(), b"Approved by the authority\n" + own):
        key.write_bytes(data)
        archive.write(forged, unpacked)
        for given in (packed.public, None):
            assert states(verify(forged, key=given))["signature"] == "differs"


def test_tables_at_which_polars_panics_are_a_finding_and_no_crash(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def panic(*_: Any, **__: Any) -> None:
        raise pl.exceptions.PanicException("called `Option::unwrap()` on a `None` value")

    monkeypatch.setattr(pack_checks, "read", panic)
    found = verify(small)
    assert states(found)["figures"] == "differs"
    assert_names(seen_in(found, "figures"), "PanicException")
