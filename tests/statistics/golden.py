"""The golden vectors: where they lie, and what it means to match one."""

import json
import math
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

_BESIDE = Path(__file__).parents[3] / "shared" / "golden"


def _file() -> Path:
    return Path(os.environ.get("EVENHAND_GOLDEN", _BESIDE)) / "golden_metrics.json"


@cache
def _vectors(file: Path) -> dict[str, Any]:
    return {vector["id"]: vector for vector in json.loads(file.read_text())["vectors"]}


def vectors() -> dict[str, Any]:
    file = _file()
    if not file.is_file():
        pytest.skip(f"no golden vectors at {file}; name their folder in EVENHAND_GOLDEN")
    return _vectors(file)


def assert_matches(got: Any, expected: Any, abs_tol: float, where: str = "") -> None:
    """Floats within abs_tol, tiny ones relatively; everything else exactly, key by key."""
    if isinstance(expected, dict):
        assert got.keys() == expected.keys(), where
        for key, value in expected.items():
            assert_matches(got[key], value, abs_tol, f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(got) == len(expected), where
        for number, value in enumerate(expected):
            assert_matches(got[number], value, abs_tol, f"{where}[{number}]")
    elif isinstance(expected, float):
        tiny = 0 < abs(expected) < 1_000 * abs_tol
        assert math.isclose(
            got, expected, rel_tol=1e-6 if tiny else 0, abs_tol=0 if tiny else abs_tol
        ), f"{where}: {got} instead of {expected}"
    else:
        assert got == expected, f"{where}: {got} instead of {expected}"
