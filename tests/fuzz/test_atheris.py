"""Coverage-guided fuzzing, in a process of its own: a crash there must not be one here."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("atheris", reason="atheris has no wheel for this Python")
_RUNS = 30_000 * int(os.environ.get("EVENHAND_CASES", "1"))


@pytest.mark.slow
def test_guided_inputs_surprise_no_reader(tmp_path: Path) -> None:
    package = __package__ or "fuzz"
    root = Path(__file__).parents[package.count(".") + 1]
    done = subprocess.run(
        [
            *(sys.executable, "-m", f"{package}.atheris_readers", str(tmp_path / "corpus")),
            *(f"-runs={_RUNS}", "-seed=1", "-max_len=400", f"-artifact_prefix={tmp_path}/"),
        ],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert f"Done {_RUNS} runs" in done.stderr
