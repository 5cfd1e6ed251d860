"""A plug-in of pytest, found by itself where evenhand is installed: the gate as a fixture.

def test_the_new_prompt_is_no_worse(evenhand_gate):
    found = evenhand_gate("evenhand.gate.toml", baseline="runs/main", run="runs/now")
    assert found.passed, found.says

Nothing large is imported before a test asks for it: pytest loads this in every project.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from evenhand.findings.gate import Gate

Places = str | Path | Sequence[str | Path]


@pytest.fixture
def evenhand_gate() -> "Callable[..., Gate]":
    """The function that judges, with the verdicts of `evenhand gate`; see `gate`."""
    return gate


def gate(
    file: str | Path = "evenhand.gate.toml",
    *,
    baseline: Places,
    run: Places = (),
    model: Any = None,
    out: str | Path = "runs/gate",
    prices: Any = None,
    **settings: Any,
) -> "Gate":
    """Judge finished runs, or run the checks with a model and judge them.

    `model` and `settings` are as `evenhand.measure` takes them, such as `max_calls` for each run. A
    check that has nothing to judge by is "broken" and no exception, so that `found.says` has it.
    """
    import evenhand  # noqa: PLC0415 - see above
    from evenhand.api import inputs  # noqa: PLC0415
    from evenhand.errors import EvenhandError  # noqa: PLC0415
    from evenhand.experiments import gating  # noqa: PLC0415
    from evenhand.experiments.gate_file import read  # noqa: PLC0415
    from evenhand.findings.gate import broken  # noqa: PLC0415
    from evenhand.methods.build import build_method  # noqa: PLC0415

    try:
        checks = read(Path(file))
        places = _listed(run)
        notes: list[str] = []
        if not places:
            folders = [f"{out}/{gate_run.folder}" for gate_run in checks.runs]
            before = gating.answered(folders)
            for gate_run in checks.runs:
                method = build_method(gate_run.method, gate_run.set)
                evenhand.measure(gate_run.instrument, model=model, method=method,
                                 out=f"{out}/{gate_run.folder}", prices=prices,
                                 options=gate_run.options, **settings)  # fmt: skip
            gating.keep(checks, str(out))
            notes = gating.finished_before(before, gating.answered(folders))
            places = [str(out)]
        priced = inputs.prices_of(prices)
        return gating.judge(checks, _listed(baseline), places, prices=priced, notes=notes)
    except (EvenhandError, OSError) as error:
        return broken(str(error), str(file))


def _listed(places: Places) -> list[str]:
    return [str(places)] if isinstance(places, str | Path) else [str(path) for path in places]
