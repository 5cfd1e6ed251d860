"""The effect size against the test that it is the other face of."""

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from evenhand.core.errors import Undefined
from evenhand.statistics.bootstrap import cohen_dz


def test_a_paired_size_follows_from_its_t_statistic() -> None:
    differences = np.random.default_rng(1).normal(0.4, 1, 25)
    assert cohen_dz(differences) == pytest.approx(ttest_1samp(differences, 0).statistic / 5)


def test_sizes_without_spread_or_data_are_undefined() -> None:
    for differences in ([], [0.3], [0.1, 0.1, 0.1]):
        with pytest.raises(Undefined):
            cohen_dz(differences)
