"""What a third party's package brings runs on a cluster too."""

from pathlib import Path

from evenhand.runs.store import RunReader
from tests.cli.conftest import Run
from tests.templates.conftest import folder, new_packages, server, their_python, theirs

__all__ = ["folder", "new_packages", "server", "their_python", "theirs"]  # the fixtures


def test_their_method_on_their_instrument_gives_the_same_rows_on_ray(
    theirs: Run, folder: Path
) -> None:
    """The cluster is one that the command starts itself, with workers of its own environment."""
    measure = ("measure", "titles", "--method", "think_twice", "--occupations", "6")
    for engine in (("local",), ("ray", "--actors", "1")):
        ran = theirs(*measure, "--out", engine[0], "--engine", *engine)
        assert ran.returncode == 0, ran.stderr[-3000:]
    ours, cluster = (RunReader(folder / name).results().collect() for name in ("local", "ray"))
    assert len(ours) == 24
    assert cluster.equals(ours)
