"""Every example runs as a reader would run it, against scripted models."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.cli.conftest import clean_environment

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(file for file in EXAMPLES.glob("*.py") if file.name != "at_hand.py")
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


def test_there_are_examples() -> None:
    assert len(SCRIPTS) >= 6
    assert len(NOTEBOOKS) >= 2


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda file: file.stem)
def test_a_script_runs(script: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    environment = clean_environment()
    if '"bbq"' in script.read_text():
        environment["EVENHAND_DATA"] = str(request.getfixturevalue("data_folder"))
    ran = subprocess.run(
        [sys.executable, "-W", "error", str(script), str(tmp_path / "out")],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stderr == ""


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda file: file.stem)
@pytest.mark.filterwarnings("default")  # Jupyter's own
def test_a_notebook_runs_in_a_real_kernel_and_its_findings_show_themselves(
    notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel has a running loop; it is spoken to over loopback alone."""
    here = os.pathsep.join(filter(None, (str(EXAMPLES), os.environ.get("PYTHONPATH"))))
    monkeypatch.setenv("PYTHONPATH", here)
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    opened: Any = nbformat.read(notebook, as_version=4)  # type: ignore[no-untyped-call]
    assert not any(cell.get("outputs") for cell in opened.cells), "outputs are not kept"
    client = NotebookClient(opened, timeout=800, resources={"metadata": {"path": str(tmp_path)}})
    try:
        client.execute()
    except RuntimeError:  # no kernel: the ports chosen for it were taken before it bound them
        if any(cell.get("execution_count") for cell in opened.cells):
            raise  # there was one, and it died
        client = NotebookClient(opened, timeout=800, resources=client.resources)
        client.execute()
    shown = [
        output.data
        for cell in opened.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type == "execute_result"
    ]
    assert any('class="evenhand"' in data.get("text/html", "") for data in shown)
