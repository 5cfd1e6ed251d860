"""The viewer shows the items of a run in a browser on this machine: it reads the run folder while a
page is made, and nothing else."""

from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.core.errors import UserError
from evenhand.runs.store import RunReader

if TYPE_CHECKING:
    from evenhand.views.viewer.serving import Serving


def opened(run: str | Path, against: str | Path | None = None, port: int = 0) -> "Serving":
    """Open the viewer of a run; it serves while its context is open.

    Args:
        run: A run folder, as path or URL.
        against: An earlier run of the same items.
        port: Port at 127.0.0.1. 0 chooses a free one.

    Raises:
        UserError: If the extra is not installed, or the run cannot be read.
    """
    try:
        from evenhand.views.viewer.browsing import RunBrowser  # noqa: PLC0415 - it needs the extra
        from evenhand.views.viewer.serving import Serving  # noqa: PLC0415 - it needs the extra
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn"):
            raise
        raise UserError("the viewer is not installed: pip install 'evenhand[view]'") from None
    return Serving(RunBrowser(RunReader(run), RunReader(against) if against else None), port)
