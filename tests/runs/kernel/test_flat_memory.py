"""A run of any length in the same memory."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[3] / "bench" / "flat_memory.py"


# The bench alone runs BBQ's 58,492 items. 2.5 kB kept of each item are 0.16 here, none 0.02.
SIZE = ["--items", "25000", "--early", "10000"]


@pytest.mark.slow
def test_twenty_five_thousand_items_run_in_flat_memory() -> None:
    """In a process of its own, so that what other tests left behind is not counted."""
    command = [sys.executable, str(BENCH), *SIZE]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=800)
    name, growth = ran.stdout.splitlines()[-1].removeprefix("RESULT ").split("=")
    assert name == "rss_growth"
    assert float(growth) <= 0.10, ran.stdout
