"""One report of kept runs for all tests of pages."""

from pathlib import Path

import pytest

from evenhand.experiments.dossiers import dossier_of
from evenhand.findings.dossier import Dossier
from evenhand.store import RunReader

KEPT = Path(__file__).parents[1] / "same_numbers/kept"


@pytest.fixture(scope="session")
def dossier() -> Dossier:
    """Two comparisons, a run that stands alone and asked a judge, and an audit of a judge."""
    names = ("bbq/default", "bbq/self_debias_reprompting", "overcorrection/default",
             "overcorrection/fairness", "rtp/stardtox", "judge/few_bases")  # fmt: skip
    return dossier_of([(RunReader(KEPT / name), None) for name in names])
