"""A package that brings something broken is refused by name; everything else goes on working."""

import os
from pathlib import Path

import pytest

import evenhand as package
from tests.cli.conftest import Run, cold_evenhand, endpoint

__all__ = ["cold_evenhand", "endpoint"]  # the fixtures

SOURCE = str(Path(package.__file__).parents[1])


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise RuntimeError('no licence')", "of broken 3.1 cannot be imported: RuntimeError: no"),
        ("class Lost:\n    name = 'lost'", "is not a benchmark: it must be a subclass of"),
    ],
)
def test_an_instrument_that_cannot_be_loaded_takes_no_other_one_with_it(
    cold_evenhand: Run, tmp_path: Path, code: str, said: str
) -> None:
    about = tmp_path / "broken-3.1.dist-info"
    about.mkdir()
    (tmp_path / "broken.py").write_text(code)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 3.1\n")
    (about / "entry_points.txt").write_text("[evenhand.instruments]\nlost = broken:Lost\n")
    places = os.pathsep.join((str(tmp_path), SOURCE))
    ran = cold_evenhand("measure", "lost", "--items", "3", "--out", "run", PYTHONPATH=places)
    assert ran.returncode == 1
    assert said in " ".join(ran.stderr.split())
    assert cold_evenhand("measure", "squad", "--help", PYTHONPATH=places).returncode == 0
