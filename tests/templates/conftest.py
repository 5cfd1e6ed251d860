"""Packages of somebody else, installed into an environment of its own beside this evenhand."""

import shutil
import site
import subprocess
import sys
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import evenhand as package
from evenhand.api import installation
from tests.cli.conftest import Run, clean_environment
from tests.cli.warm import Warm
from tests.loopback.process import RemoteServer, in_own_process

from .answering import Titled

PACKAGE = Path(__file__).parent / "evenhand_titles"
# What is written by `evenhand dev new`, and installed as it is.
NEW: dict[installation.Kind, str] = {
    "instrument": "coats",
    "method": "two_looks",
    "scorer": "shouting",
}


def installed(folder: Path, new: Sequence[Path]) -> Path:
    """The Python of a new environment with the package in it, and with the new ones as their
    authors install them, to be edited; no network is needed.

    What evenhand itself depends on is taken from the environment that runs the tests.
    """
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    python = folder / "venv/bin/python"
    ours = [str(Path(package.__file__).parents[1])]
    theirs = [f"import site; site.addsitedir({place!r})" for place in site.getsitepackages()]
    [place] = (folder / "venv/lib").glob("python*/site-packages")
    (place / "beside.pth").write_text("\n".join([*ours, *theirs]) + "\n")
    shutil.copytree(PACKAGE, folder / "package")  # a build writes into the folder it is given
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    flags = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    edited = [word for one in new for word in ("--editable", str(one))]
    told = subprocess.run(
        [*pip, "install", *flags, str(folder / "package"), *edited],
        capture_output=True, text=True, env=clean_of_ours(), check=False,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    return python


def clean_of_ours() -> dict[str, str]:
    """Without the places where the tests themselves look for packages."""
    return {k: v for k, v in clean_environment().items() if k != "PYTHONPATH"}


@pytest.fixture(scope="session")
def new_packages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    into = tmp_path_factory.mktemp("new")
    return [installation.write(kind, name, into) for kind, name in NEW.items()]


@pytest.fixture(scope="session")
def their_python(tmp_path_factory: pytest.TempPathFactory, new_packages: list[Path]) -> Path:
    return installed(tmp_path_factory.mktemp("theirs"), new_packages)


@pytest.fixture(scope="session")
def server() -> Iterator[RemoteServer]:
    with in_own_process(Titled()) as running:
        yield running


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all commands are run: later ones read what earlier ones wrote."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="session")
def theirs(their_python: Path, server: RemoteServer, folder: Path) -> Iterator[Run]:
    """Run `evenhand …` in the environment that has the package."""
    environment = {**clean_of_ours(), "EVENHAND_BASE_URL": server.url}
    warm = Warm(environment, str(their_python))

    def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return warm.run(arguments, folder, {**environment, **more})

    yield run
    warm.close()
