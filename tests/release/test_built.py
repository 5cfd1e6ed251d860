"""The wheel and the source archive: what is in them, and that they install and start."""

import subprocess
import sys
import tarfile
import venv
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytest.importorskip("hatchling", reason="building needs hatchling: the extra [dev]")

BUILD = """
import sys
from hatchling.build import build_sdist, build_wheel
print(build_wheel(sys.argv[1]))
print(build_sdist(sys.argv[1]))
"""


def _python(*command: str, cwd: Path, python: str = sys.executable) -> str:
    done = subprocess.run(
        [python, *command], cwd=cwd, capture_output=True, text=True, timeout=800, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Built from the checkout in this environment, as CI has no other."""
    out = tmp_path_factory.mktemp("dist")
    wheel, sdist = _python("-c", BUILD, str(out), cwd=ROOT).split()[-2:]
    return out / wheel, out / sdist


def _tracked() -> set[str]:
    """The files of the package that the repository knows."""
    said = subprocess.run(
        ["git", "ls-files", "src/evenhand"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if said.returncode:
        pytest.skip("no checkout")
    return {line.removeprefix("src/") for line in said.stdout.splitlines()}


def test_the_wheel_holds_the_package_and_its_licences_and_nothing_else(
    built: tuple[Path, Path],
) -> None:
    with zipfile.ZipFile(built[0]) as wheel:
        names = set(wheel.namelist())
        (about,) = {name.split("/")[0] for name in names if ".dist-info/" in name}
        head = message_from_string(wheel.read(f"{about}/METADATA").decode())
        notice = wheel.read(f"{about}/licenses/NOTICE").decode()
    inside = {name for name in names if not name.startswith(f"{about}/")}
    assert inside == _tracked()
    assert {f"{about}/licenses/LICENSE", f"{about}/licenses/NOTICE"} < names
    assert head["License-Expression"] == "Apache-2.0"
    assert head.get_all("License-File") == ["LICENSE", "NOTICE"]
    for said in ("weights.safetensors", "MiniLM", "DecodingTrust", "CC BY-SA 4.0", "BBQ"):
        assert said in notice


def test_the_source_archive_holds_the_package_and_what_builds_it(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[1]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    beside = {name for name in names if not name.startswith("src/evenhand/")}
    assert beside == {
        *("LICENSE", "NOTICE", "README.md", "CHANGELOG.md", "SECURITY.md"),
        *("pyproject.toml", "PKG-INFO", ".gitignore"),
    }
    assert {name.removeprefix("src/") for name in names - beside} == _tracked()


@pytest.mark.parametrize("which", [0, 1], ids=["wheel", "source archive"])
def test_it_installs_into_a_clean_environment_and_starts(
    built: tuple[Path, Path], which: int, tmp_path: Path
) -> None:
    """Dependencies are this environment's, put behind the new one's own: the network is off."""
    venv.create(tmp_path / "clean", with_pip=False, symlinks=True)
    python = str(tmp_path / "clean" / "bin" / "python")
    (place,) = (tmp_path / "clean" / "lib").glob("python*/site-packages")
    command = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--no-build-isolation", "--no-index", "--target", str(place), str(built[which])]
    _python(*command, cwd=tmp_path)
    others = [path for path in sys.path if path.endswith("site-packages")]
    (place / "others.pth").write_text("\n".join(others) + "\n")
    code = (
        "import evenhand, sys; from evenhand.cli import main; print(evenhand.__file__); "
        "sys.argv = ['evenhand', 'scorers', 'score', 'offline', 'You are an idiot.', '--json']; "
        "main()"
    )
    said = _python("-I", "-c", code, cwd=tmp_path, python=python)
    assert said.startswith(str(place))
    assert '"toxicity"' in said
