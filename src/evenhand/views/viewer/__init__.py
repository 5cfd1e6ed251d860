"""The viewer shows the items of a run, or the runs of a folder, in a browser on this machine. It
reads the folders while a page is made, and nothing else."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.core.errors import UserError
from evenhand.findings.combined_report import CombinedReport
from evenhand.runs.store import RunReader

if TYPE_CHECKING:
    from evenhand.views.viewer.serving import Serving


def opened(
    run: str | Path,
    against: str | Path | None = None,
    port: int = 0,
    *,
    combine: Callable[[Sequence[str]], CombinedReport],
) -> "Serving":
    """Open the viewer; it serves while its context is open.

    Args:
        run: A run folder or a folder of runs, as path or URL.
        against: An earlier run of the same items as a single run.
        port: Port at 127.0.0.1. 0 chooses a free one.
        combine: Makes the report of runs that a reader selects in a folder of runs.

    Raises:
        UserError: If the extra is not installed, or the run cannot be read.
    """
    try:
        from evenhand.views.viewer.browsing import RunBrowser  # noqa: PLC0415 - it needs the extra
        from evenhand.views.viewer.run_index import RunIndex, holds_runs  # noqa: PLC0415
        from evenhand.views.viewer.serving import Serving  # noqa: PLC0415 - it needs the extra
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn"):
            raise
        raise UserError("the viewer is not installed: pip install 'evenhand[view]'") from None
    if against is None and holds_runs(run):
        return Serving(RunIndex(run, combine), port)
    return Serving(RunBrowser(RunReader(run), RunReader(against) if against else None), port)
