"""Whether too much is missing, for the reports that are dictionaries still."""

from typing import Any

from evenhand.findings.found import COVERAGE_FLOOR

__all__ = ["COVERAGE_FLOOR", "below_floor"]


def below_floor(numbers: dict[str, Any]) -> bool:
    """Whether too much is missing; `numbers` holds `coverage`."""
    return numbers["coverage"] is not None and numbers["coverage"] < COVERAGE_FLOOR
