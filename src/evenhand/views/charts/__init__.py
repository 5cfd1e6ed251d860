"""Charts show a finding as pictures, each one SVG: a file per kind of chart and one per kind of
finding, none per instrument. They need the extra `report`."""

from dataclasses import dataclass
from importlib.util import find_spec

from evenhand.core.errors import UserError

__all__ = ["Chart", "charts_of", "installed"]

_INSTALL = "charts need altair and vl-convert: pip install 'evenhand[report]'"


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart has a name for files, a title, what it shows in words, and the picture: one <svg>
    that runs nothing, asks for nothing from outside and stands for itself."""

    name: str
    title: str
    alt: str
    svg: str


def installed() -> bool:
    """Say whether the extra that draws charts is there."""
    return all(find_spec(name) is not None for name in ("altair", "vl_convert"))


def charts_of(finding: object) -> tuple[Chart, ...]:
    """Draw a finding. A kind of finding that has no chart gives none."""
    if not installed():
        raise UserError(_INSTALL)
    from evenhand.views.charts.kinds import drawn  # noqa: PLC0415  # a second to import

    return drawn(finding)
