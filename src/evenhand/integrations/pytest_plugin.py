"""A plug-in of pytest, found by itself where evenhand is installed: the gate as a fixture.

def test_the_new_prompt_is_no_worse(evenhand_gate):
    found = evenhand_gate("evenhand.gate.toml", baseline="runs/main", run="runs/now")
    assert found.passed, found.says

Nothing large is imported before a test asks for it: pytest loads this in every project.
"""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from evenhand.findings.gate import Gate


@pytest.fixture
def evenhand_gate() -> "Callable[..., Gate]":
    """The function `evenhand.gate`, with the verdicts of the command.

    Settings are as it takes them, such as `model`, `out` and `max_calls`. A check that has nothing
    to judge by is "error" and no exception, so that `found.says` has it.
    """
    from evenhand.api.gating import gate  # noqa: PLC0415 - see above
    from evenhand.api.sync import waiting_for  # noqa: PLC0415

    return waiting_for(gate)
