"""A run of any length in the same memory."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench" / "flat_memory.py"


@pytest.mark.slow
def test_all_58492_items_of_bbqs_size_run_in_flat_memory() -> None:
    """In a process of its own, so that what other tests left behind is not counted."""
    ran = subprocess.run(
        [sys.executable, str(BENCH)], capture_output=True, text=True, check=True, timeout=800
    )
    name, growth = ran.stdout.splitlines()[-1].removeprefix("RESULT ").split("=")
    assert name == "rss_growth"
    assert float(growth) <= 0.10, ran.stdout
