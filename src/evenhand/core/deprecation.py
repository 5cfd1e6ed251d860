"""How the end of a public name is announced: for two minor releases it works and warns."""

import sys
import warnings


def warn_deprecated(old: str, *, instead: str, until: str) -> None:
    """Warn that a public name goes, at the line that uses it.

    Args:
        old: What the user wrote, such as "evenhand.measure(until=…)".
        instead: What to write in its place.
        until: The release in which the old form goes, such as "0.5".
    """
    message = f"{old} goes in evenhand {until}. Use {instead} instead."
    warnings.warn(message, DeprecationWarning, stacklevel=_levels_to_user())


def _levels_to_user() -> int:
    """Count the frames from `warnings.warn` out to the first one outside of evenhand."""
    frame, level = sys._getframe(1), 1
    package = __name__.partition(".")[0]
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        frame, level = frame.f_back, level + 1
    return level
