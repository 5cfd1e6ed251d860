"""A pack: what is in it, that it is the same twice, and that whatever is changed is found."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

from evenhand.cli.app import app
from evenhand.core.errors import CorruptArchive, CorruptRun, UserError
from evenhand.core.prices import Prices
from evenhand.experiments import pack_checks, signing
from evenhand.experiments.config import prices_in
from evenhand.experiments.pack_checks import verify
from evenhand.experiments.packs import PackOptions, make
from evenhand.findings.display import Remark
from evenhand.findings.pack_manifest import EVIDENCE, FIGURES, PackedPrices, PackManifest
from evenhand.runs.store import RunReader, archive
from evenhand.views.pack import figures
from evenhand.views.pack.frameworks import FACTS, NOT_COVERED, STATES, known, state
from tests.errors import assert_names, raises_naming
from tests.experiments.packs.conftest import (
    KEPT,
    PRICE,
    RUNS,
    TITLE,
    Packed,
    keys_in,
    remarks_in,
    runs,
    sealed,
    seen_in,
    states,
)  # fmt: skip

BIN = Path(sys.executable).parent


def test_a_pack_has_everything_that_is_needed_to_check_it(packed: Packed, tmp_path: Path) -> None:
    packed.unpacked(tmp_path)
    names = packed.names
    tops = {name.partition("/")[0] for name in names}
    assert tops == {
        "evidence.json", "evidence.sig", "evidence.pub.pem", "report.html", "figures.json", "runs",
        "certificates", "cyclonedx.json", "eee", "hf", "frameworks", "replay.sh",
    }  # fmt: skip
    said = packed.evidence
    assert set(said.files) == {*names} - {"evidence.json", "evidence.sig", "evidence.pub.pem"}
    page = tmp_path / "report.html"
    assert said.files["report.html"].sha256 == hashlib.sha256(page.read_bytes()).hexdigest()
    assert [one.run for one in said.runs] == [
        "runs/cot", "runs/default", "runs/fairness", "runs/few_bases",
    ]  # fmt: skip
    # The run folders are the bytes that they were.
    for name, place in zip(RUNS, said.runs, strict=True):
        for file in archive.names_in(KEPT / name):
            assert (tmp_path / place.run / file).read_bytes() == (KEPT / name / file).read_bytes()
    # Names on the page are names in the pack.
    assert str(KEPT) not in page.read_text()
    command = "evenhand report runs/cot runs/default runs/fairness"
    assert command in page.read_text()


def test_the_same_runs_give_the_same_bytes_and_all_of_it_holds(
    packed: Packed, tmp_path: Path
) -> None:
    make(runs(*RUNS), tmp_path / "again.zip", PackOptions(title=TITLE, key=packed.key))
    assert (tmp_path / "again.zip").read_bytes() == packed.path.read_bytes()
    assert os.listdir(tmp_path) == ["again.zip"]
    found = verify(packed.path, key=packed.public)
    assert list(states(found)) == ["files", "signature", "chain", "runs", "figures"]
    assert set(states(found).values()) == {"holds"}
    assert f"{packed.evidence.figures:,} figures" in seen_in(found, "figures")
    assert packed.evidence.figures > 1000


def test_one_flipped_bit_in_any_file_of_a_pack_is_found(packed: Packed, tmp_path: Path) -> None:
    """Of a small pack, which has a file of each kind."""
    good, bad, whole = tmp_path / "good.zip", tmp_path / "bad.zip", tmp_path / "whole"
    make(runs("overcorrection/default", "judge/few_bases"), good, PackOptions(key=packed.key))
    archive.unpack(good, whole)
    assert {Path(name).parts[0] for name in archive.names_in(whole)} == {
        Path(name).parts[0] for name in packed.names
    }
    for place, name in enumerate(archive.names_in(whole)):
        data = (whole / name).read_bytes()
        changed = bytearray(data)
        changed[len(data) // 2] ^= 1 << place % 8
        (whole / name).write_bytes(changed)
        archive.write(bad, whole)
        (whole / name).write_bytes(data)
        if name == EVIDENCE:
            with pytest.raises(CorruptArchive):
                verify(bad)
            continue
        found = verify(bad)
        assert found.state == "differs", name
        signs = name.startswith("evidence.")
        assert (name in seen_in(found, "files")) != signs
        assert (states(found)["signature"] == "differs") == signs


def test_a_file_that_is_missing_or_not_listed_is_named(packed: Packed, tmp_path: Path) -> None:
    folder = packed.unpacked(tmp_path / "folder")
    (folder / "cyclonedx.json").unlink()
    (folder / "extra.txt").write_text("hello")
    archive.write(tmp_path / "bad.zip", folder)
    found = verify(tmp_path / "bad.zip")
    assert "missing: cyclonedx.json" in seen_in(found, "files")
    assert "not listed: extra.txt" in seen_in(found, "files")
    assert states(found)["figures"] == "not_checked"


def test_bytes_beside_the_files_are_found(packed: Packed, tmp_path: Path) -> None:
    bad = tmp_path / "bad.zip"
    bad.write_bytes(b"#!/bin/sh\n" + packed.path.read_bytes())
    assert_names(seen_in(verify(bad), "files"), "belong to none")


def test_a_forged_figure_is_found_though_every_hash_fits(packed: Packed, tmp_path: Path) -> None:
    """The forger changes one number in each form that it has, and lists the new hashes."""
    make(runs("overcorrection/default"), tmp_path / "x.zip", PackOptions(key=packed.key))
    folder = tmp_path / "folder"
    archive.unpack(tmp_path / "x.zip", folder)
    data = orjson.loads((folder / FIGURES).read_bytes())
    one = data["reports"][0]["scores"]["estimates"][0]
    one["value"] += 0.001
    (folder / FIGURES).write_bytes(orjson.dumps(data, option=orjson.OPT_INDENT_2))
    card = orjson.loads((folder / "cyclonedx.json").read_bytes())
    card["declarations"]["claims"].append({"bom-ref": "claim:99", "predicate": "it is fair"})
    (folder / "cyclonedx.json").write_bytes(orjson.dumps(card))
    page = folder / "frameworks/eu-ai-act.md"
    page.write_text(page.read_text().replace("partly", "evidence here"))
    (folder / "SUMMARY.md").write_text("all is well")
    found = verify(sealed(folder, tmp_path / "forged.zip"))
    assert states(found)["files"] == states(found)["runs"] == "holds"
    assert states(found)["figures"] == "differs"
    said = seen_in(found, "figures")
    assert f"figures.json: reports[0].scores.estimates[0].value: {one['value']}" in said
    assert "declarations.claims" in said
    assert_names(said, "frameworks/eu-ai-act.md")
    assert_names(said, "SUMMARY.md")
    # And whoever asks for the signer's key sees that it is gone.
    assert states(verify(tmp_path / "forged.zip", key=packed.public))["signature"] == "differs"


def test_another_run_in_the_place_of_one_is_found(packed: Packed, tmp_path: Path) -> None:
    folder = packed.unpacked(tmp_path / "folder")
    shutil.rmtree(folder / "runs/cot")
    shutil.copytree(KEPT / "bbq/fairness", folder / "runs/cot")
    found = verify(sealed(folder, tmp_path / "forged.zip"))
    assert Remark("pack.another_run", run="runs/cot", file=EVIDENCE) in remarks_in(found, "runs")


@pytest.mark.parametrize("place", ["/etc", "../x", "runs/../../x", "runs/..", "runs/a/../b"])
def test_a_pack_cannot_name_a_run_outside_of_itself(packed: Packed, place: str) -> None:
    said = packed.evidence.model_dump()
    said["runs"][0]["run"] = place
    with pytest.raises(CorruptArchive):
        PackManifest.from_bytes(orjson.dumps(said))


def test_a_damaged_run_is_not_packed(tmp_path: Path) -> None:
    shutil.copytree(KEPT / "bbq/default", tmp_path / "run")
    (part,) = (tmp_path / "run/results").iterdir()
    part.write_bytes(part.read_bytes()[:-1])
    with pytest.raises(CorruptRun):
        make([RunReader(tmp_path / "run")], tmp_path / "x.zip", PackOptions())
    assert sorted(os.listdir(tmp_path)) == ["run"]


def test_a_pack_whose_name_does_not_end_in_zip_is_refused(tmp_path: Path) -> None:
    with raises_naming(UserError, "evidence.tar", ".zip"):
        make(runs("bbq/default"), tmp_path / "evidence.tar", PackOptions())
    assert not os.listdir(tmp_path)


# -- signature and chain ---------------------------------------------------------------------------


def test_a_signature_holds_for_its_key_and_these_bytes_alone(
    packed: Packed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pack_checks, "_runs_and_figures", lambda *_, **__: ())
    assert states(verify(packed.path, key=packed.public))["signature"] == "holds"
    alone = remarks_in(verify(packed.path), "signature")
    assert alone == (Remark("pack.own_key", over=EVIDENCE),)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(signing, "installed", lambda: False)
        assert states(verify(packed.path))["signature"] == "not_checked"
    _, other = keys_in(tmp_path, "other")
    assert states(verify(packed.path, key=other))["signature"] == "differs"
    folder = packed.unpacked(tmp_path / "folder")
    # Other bytes under the same signature.
    old = PackManifest.from_bytes((folder / EVIDENCE).read_bytes())
    new = old.model_copy(update={"title": "Bot 4.3"})
    (folder / EVIDENCE).write_bytes(new.to_bytes())
    archive.write(tmp_path / "bad.zip", folder)
    assert states(verify(tmp_path / "bad.zip"))["signature"] == "differs"
    # The signature taken away.
    (folder / EVIDENCE).write_bytes(old.to_bytes())
    (folder / "evidence.sig").unlink()
    archive.write(tmp_path / "bad.zip", folder)
    moved = remarks_in(verify(tmp_path / "bad.zip"), "signature")
    assert moved == (Remark("pack.signature_moved"),)


def test_openssl_checks_the_signature_too(packed: Packed, tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl")
    folder = packed.unpacked(tmp_path)
    command = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", str(packed.public), "-rawin",
               "-in", "evidence.json", "-sigfile", "evidence.sig"]  # fmt: skip
    assert subprocess.run(command, cwd=folder, check=False, capture_output=True).returncode == 0
    with (folder / "evidence.json").open("ab") as file:
        file.write(b" ")
    assert subprocess.run(command, cwd=folder, check=False, capture_output=True).returncode != 0


def test_a_file_that_is_no_key_is_refused_in_words(packed: Packed, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
    for key in (wrong, packed.public, tmp_path / "none.pem"):
        with pytest.raises(UserError):
            signing.sign(b"", key)
    for key in (wrong, packed.key, tmp_path / "none.pem"):
        with pytest.raises(UserError):
            verify(packed.path, key=key)


def test_packs_are_a_chain_by_the_hash_of_the_one_before(packed: Packed, tmp_path: Path) -> None:
    second = tmp_path / "second.zip"
    made = make(runs("overcorrection/default"), second, PackOptions(previous=packed.path))
    digest = hashlib.sha256(packed.evidence.to_bytes()).hexdigest()
    assert made.previous is not None
    assert made.previous.sha256 == digest
    assert states(verify(second, previous=packed.path))["chain"] == "holds"
    assert states(verify(second, previous=second))["chain"] == "differs"
    assert digest in seen_in(verify(second), "chain")
    with raises_naming(UserError, "none.zip", "not a file"):
        make(runs("judge/few_bases"), second, PackOptions(previous=tmp_path / "none.zip"))


# -- what is missing is said -----------------------------------------------------------------------


def test_a_run_that_is_not_finished_is_said_everywhere(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    done = CliRunner().invoke(
        app, ["runs", "pack", str(KEPT / "bbq/unfinished"), "--out", str(path)]
    )
    assert done.exit_code == 2, done.output
    archive.unpack(path, tmp_path / "into")
    said = PackManifest.from_bytes((tmp_path / "into" / EVIDENCE).read_bytes())
    assert said.unfinished == ["runs/unfinished"]
    assert said.runs[0].not_run > 0
    assert "NOT FINISHED: runs/unfinished" in said.says
    card = orjson.loads((tmp_path / "into/cyclonedx.json").read_bytes())
    limits = card["components"][0]["modelCard"]["considerations"]["technicalLimitations"]
    assert any("not finished" in one for one in limits)
    assert "NOT FINISHED" in (tmp_path / "into/hf/.eval_results/evenhand.yaml").read_text()
    assert "not finished" in (tmp_path / "into/frameworks/eu-ai-act.md").read_text()


def test_a_light_pack_has_hashes_in_the_place_of_runs_and_is_never_called_whole(
    tmp_path: Path,
) -> None:
    path = tmp_path / "light.zip"
    made = make(runs("judge/few_bases"), path, PackOptions(light=True, frameworks=("iso-42001",)))
    names = list(made.files)
    assert [name for name in names if name.startswith("runs/")] == ["runs/few_bases.sha256"]
    assert [name for name in names if name.startswith("frameworks/")] == ["frameworks/iso-42001.md"]
    archive.unpack(path, tmp_path / "into")
    lines = (tmp_path / "into/runs/few_bases.sha256").read_text().splitlines()
    for digest, name in (line.split("  ") for line in lines):
        assert hashlib.sha256((KEPT / "judge/few_bases" / name).read_bytes()).hexdigest() == digest
    found = verify(path)
    assert (states(found)["runs"], states(found)["figures"], found.state) == ("not_checked",) * 3
    shown = CliRunner().invoke(app, ["runs", "pack", "verify", str(path)])
    assert shown.exit_code == 2
    assert_names(" ".join(shown.output.split()), "not everything")


def test_another_version_repeats_nothing_and_says_so(
    packed: Packed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pack_checks, "version", lambda _: "99.0")
    found = verify(packed.path)
    assert found.state == "not_checked"
    assert "needs evenhand" in seen_in(found, "figures")


def test_every_row_of_a_framework_has_one_of_three_states_and_none_is_called_compliant(
    packed: Packed, tmp_path: Path
) -> None:
    for framework in known().values():
        for row in framework["row"]:
            assert row["best"] in STATES
            assert set(row.get("needs", [])) <= FACTS.keys()
            assert (row["best"] == NOT_COVERED) == ("here" not in row) == ("needs" not in row)
            assert state(row, set()) == NOT_COVERED
            assert state(row, set(FACTS)) == row["best"]
            assert row["best"] == NOT_COVERED or state(row, set(row["needs"][:1])) in STATES[:2]
    folder = packed.unpacked(tmp_path)
    for page in (folder / "frameworks").iterdir():
        rows = [line.split(" | ") for line in page.read_text().splitlines() if line[:2] == "| "]
        assert {row[2] for row in rows[2:]} <= set(STATES)
        assert len(rows) == 2 + len(known()[page.stem]["row"])
    for file in archive.names_in(folder):
        if not file.startswith("runs/"):
            assert b"compliant" not in (folder / file).read_bytes().lower(), file


def test_differences_allow_for_the_last_digits_and_for_nothing_else() -> None:
    old = {"a": [1.0, 2], "b": None, "c": "x", "d": True, "p": 1e-10, "z": 0.0}
    assert list(figures.differences(old, {**old, "a": [1.0 + 1e-12, 2], "z": 1e-15})) == []
    for changed in ({"a": [1.001, 2]}, {"a": [1.0, 3]}, {"a": [1.0]}, {"b": 0}, {"c": "y"},
                    {"d": 1}, {"e": 0.0}, {"e": None}, {"p": 2e-10}):  # fmt: skip
        assert list(figures.differences(old, old | changed)), changed
    assert figures.count(old) == 4


# -- replay ----------------------------------------------------------------------------------------


def _replayed(folder: Path, path: str, *before: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("EVENHAND_")}
    return subprocess.run(
        [*before, "sh", str(folder / "replay.sh")],
        env={**kept, "PATH": f"{path}:{os.environ['PATH']}"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def test_the_script_repeats_every_figure_on_a_machine_without_a_network(
    packed: Packed, tmp_path: Path
) -> None:
    """In a name space of its own, which has no network at all, where the machine lets us."""
    apart = ["unshare", "--net", "--map-root-user"]
    try:
        subprocess.run([*apart, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        apart = []
    folder = packed.unpacked(tmp_path / "pack")
    done = _replayed(folder, str(BIN), *apart)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert_names(done.stdout, f"{packed.evidence.figures:,} figures")
    assert set(archive.names_in(folder)) == {*packed.evidence.files, "evidence.json",
                                             "evidence.sig", "evidence.pub.pem"}  # fmt: skip


def _in_place_of_evenhand(place: Path, folder: Path) -> Path:
    """A command that prints what a pack has, and keeps what it was asked."""
    command = place / "bin/evenhand"
    command.parent.mkdir()
    shutil.copy(folder / FIGURES, place / "figures")
    version = PackManifest.from_bytes((folder / EVIDENCE).read_bytes()).evenhand
    report = f'{{ echo "$@" > {place}/said; cat {place}/figures; exit 2; }}'
    command.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo "evenhand {version}" || {report}\n'
    )
    command.chmod(0o755)
    return command


def test_the_script_says_which_lines_differ_and_which_version_it_needs(
    packed: Packed, tmp_path: Path
) -> None:
    folder, version = packed.unpacked(tmp_path / "pack"), packed.evidence.evenhand
    command, said = _in_place_of_evenhand(tmp_path, folder), tmp_path / "said"
    assert _replayed(folder, str(command.parent)).returncode == 0
    # The title reached the command as one word, and no part of it was run.
    assert f"--title={TITLE} --json" in said.read_text()
    text = (tmp_path / "figures").read_text()
    (tmp_path / "figures").write_text(text.replace('"not_run": 0', '"not_run": 1', 1))
    other = _replayed(folder, str(command.parent))
    assert other.returncode == 1
    assert '"not_run": 1' in other.stdout
    command.write_text(command.read_text().replace(f"evenhand {version}", "evenhand 0.0"))
    assert _replayed(folder, str(command.parent)).returncode == 2


def test_the_script_of_a_light_pack_asks_for_the_runs_and_checks_them(tmp_path: Path) -> None:
    name, folder = "overcorrection/default", tmp_path / "pack"
    make(runs(name), tmp_path / "light.zip", PackOptions(light=True, frameworks=()))
    archive.unpack(tmp_path / "light.zip", folder)
    path = str(_in_place_of_evenhand(tmp_path, folder).parent)
    without = _replayed(folder, path)
    assert without.returncode == 2
    assert_names(without.stderr, "runs/default")
    shutil.copytree(KEPT / name, folder / "runs/default")
    assert _replayed(folder, path).returncode == 0
    record = folder / "runs/default/run.json"
    record.write_bytes(record.read_bytes() + b" ")
    assert _replayed(folder, path).returncode == 1


def test_prices_of_a_pack_are_the_file_that_the_command_reads(tmp_path: Path) -> None:
    given = Prices({'a "b" \\ \x7f é': PRICE, "scripted": PRICE}, "EUR")
    kept = PackedPrices.of(given)
    assert kept is not None
    assert kept.prices() == given
    (tmp_path / "prices.toml").write_bytes(figures.price_file(kept))
    assert prices_in(tmp_path / "prices.toml") == given


# -- the command -----------------------------------------------------------------------------------


def test_the_command_ends_with_a_code_that_says_what_was_found(
    packed: Packed, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.zip"
    folder = packed.unpacked(tmp_path / "folder")
    (folder / "replay.sh").write_text("echo hello\n")
    archive.write(bad, folder)
    found = CliRunner().invoke(app, ["runs", "pack", "verify", str(bad), "--json"])
    assert found.exit_code == 1
    (seen,) = orjson.loads(found.stdout)["looked"][0]["seen"]
    assert (seen["code"], seen["values"]) == ("pack.changed", {"name": "replay.sh"})
    with pytest.raises(UserError, match=r"\.zip"):
        command = ["runs", "pack", str(KEPT / "judge/few_bases"), "--out", "x.tar"]
        CliRunner().invoke(app, command, catch_exceptions=False)
    with raises_naming(UserError, "framework iso", "eu-ai-act"):
        make(runs("judge/few_bases"), bad, PackOptions(frameworks=("iso",)))
