"""One report of kept runs for all tests of pages; each chart in them is held to its schema."""

from pathlib import Path
from typing import Any

import altair as alt
import pytest
import vl_convert

from evenhand.experiments.dossiers import dossier_of
from evenhand.findings.combined_report import CombinedReport
from evenhand.runs.store import RunReader

KEPT = Path(__file__).parents[1] / "same_numbers/kept"


@pytest.fixture(scope="session")
def dossier() -> CombinedReport:
    """Two comparisons, a run that stands alone and asked a judge, and an audit of a judge."""
    names = ("bbq/default", "bbq/self_debias_reprompting", "overcorrection/default",
             "overcorrection/fairness", "rtp/stardtox", "judge/few_bases")  # fmt: skip
    return dossier_of([(RunReader(KEPT / name), None) for name in names])


@pytest.fixture(autouse=True, scope="session")
def _charts_keep_to_the_schema() -> Any:
    """Check what Altair would have checked: the charts leave it out, to be made sooner."""
    drawn = vl_convert.vegalite_to_svg

    def checked(spec: dict[str, Any], **given: Any) -> str:
        alt.Chart.from_dict({key: spec[key] for key in spec if key != "config"}, validate=True)
        return drawn(spec, **given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vl_convert, "vegalite_to_svg", checked)
        yield
