"""Open the viewer of a run, where its extra is installed."""

import importlib
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
        serving = importlib.import_module("evenhand.views.viewer.serving").Serving
        browsing = importlib.import_module("evenhand.views.viewer.browsing")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn"):
            raise
        raise UserError("the viewer is not installed: pip install 'evenhand[view]'") from None
    browsed = browsing.Browsed(RunReader(run), RunReader(against) if against else None)
    result: Serving = serving(browsed, port)
    return result
