"""Every golden vector that this room can compute. A vector's null is our Undefined."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from evenhand.core.errors import Undefined
from evenhand.statistics.agreement import (
    fleiss_of_totals,
    fleiss_sums,
    krippendorff_alpha,
    quadratic_weighted_kappa,
    rater_agreement,
)
from evenhand.statistics.bootstrap import cohen_dz, of_all
from evenhand.statistics.clusters import clustered_mean, naive_mean
from evenhand.statistics.multiplicity import benjamini_hochberg, holm
from evenhand.statistics.planning import design_effect, items_needed, rounded_up
from evenhand.statistics.proportions import clopper_pearson, wilson, zero_event_upper
from evenhand.statistics.tables import chi_square, fisher_p, friedman

from .golden import assert_matches, vectors

Given = Mapping[str, Any]


def _or_null(compute: Callable[[], float]) -> float | None:
    try:
        return compute()
    except Undefined:
        return None


def _fleiss(given: Given) -> dict[str, Any]:
    table = given["table"]
    parts = rater_agreement(table)
    return {
        "kappa": _or_null(lambda: of_all(fleiss_sums(table), fleiss_of_totals)),
        "P_bar": parts.observed,
        "P_e": parts.by_use,
    }


def _krippendorff(given: Given) -> dict[str, Any]:
    ratings = given["raters_by_units"]
    return {
        "nominal": krippendorff_alpha(ratings, "nominal"),
        "ordinal": krippendorff_alpha(ratings, "ordinal"),
        "interval": krippendorff_alpha(ratings, "interval"),
    }


def _qwk(given: Given) -> dict[str, Any]:
    scale = (given["scale"][0], given["scale"][1])
    return {"kappa": quadratic_weighted_kappa(given["rater1"], given["rater2"], scale)}


def _chi2(given: Given) -> dict[str, Any]:
    found = chi_square(given["table"])
    return {
        "chi2": found.chi2,
        "df": found.df,
        "p_value": found.p_value,
        "n": found.n,
        "cramers_v": found.cramers_v,
        "cramers_v_bias_corrected": found.cramers_v_corrected,
        "min_expected": found.min_expected,
    }


def _chi2_2x2(given: Given) -> dict[str, Any]:
    table = given["table"]
    plain, yates = chi_square(table), chi_square(table, yates=True)
    return {
        "chi2_uncorrected": plain.chi2,
        "p_uncorrected": plain.p_value,
        "chi2_yates": yates.chi2,
        "p_yates": yates.p_value,
        "fisher_exact_p": fisher_p(table),
    }


def _chi2_copies(given: Given) -> dict[str, Any]:
    rows = []
    for copies in given["copies"]:
        found = chi_square([[copies * cell for cell in row] for row in given["table"]])
        rows.append(
            {
                "copies": copies,
                "chi2": found.chi2,
                "p_value": found.p_value,
                "cramers_v": found.cramers_v,
            }
        )
    return {"rows": rows}


def _win_rate(given: Given) -> dict[str, Any]:
    wins, n, confidence = given["wins"], given["n"], given["confidence"]
    score, exact = wilson(wins, n, confidence), clopper_pearson(wins, n, confidence)
    return {
        "win_rate": score.estimate,
        "wilson": [score.low, score.high],
        "clopper_pearson": [exact.low, exact.high],
    }


def _clustered(given: Given) -> dict[str, Any]:
    found = clustered_mean(given["differences"], given["clusters"])
    groups = found.clusters
    return {
        "mean": found.estimate,
        "se_iid": naive_mean(given["differences"]).se,
        "se_cluster": found.se * ((groups - 1) / groups) ** 0.5,
        "se_cluster_small_sample": found.se,
        "n_clusters": groups,
        "t": found.estimate / found.se,
        "df": found.df,
        "p_two_sided": found.p_two_sided,
        "ci95": [found.low, found.high],
    }


def _effects(given: Given) -> dict[str, Any]:
    return {"cohen_dz": cohen_dz(given["paired_differences"])}


def _friedman(given: Given) -> dict[str, Any]:
    found = friedman(given["scores_scenario_by_identity"])
    return {
        "chi2": found.chi2,
        "df": found.df,
        "p_value": found.p_value,
        "rank_sums": list(found.rank_sums),
        "kendalls_w": found.kendalls_w,
    }


def _multiplicity(given: Given) -> dict[str, Any]:
    raw, alpha = given["p_values"], given["alpha"]
    return {
        "holm": list(holm(raw)),
        "bh": list(benjamini_hochberg(raw)),
        "n_reject_raw": sum(p <= alpha for p in raw),
        "n_reject_holm": sum(p <= alpha for p in holm(raw)),
        "n_reject_bh": sum(p <= alpha for p in benjamini_hochberg(raw)),
    }


def _mde(given: Given) -> dict[str, Any]:
    rows = []
    for row in given["rows"]:
        design = {"sd": row["sd"], "cluster_size": row["cluster_size"], "icc": row["icc"]}
        effect = design_effect(row["cluster_size"], row["icc"])
        # The inverse: n items show sd·√(DEFF/n) as often as one item shows 1 standard deviation.
        mde = (items_needed(1.0, **design) / row["n"]) ** 0.5
        assert rounded_up(items_needed(mde, **design)) == row["n"]
        rows.append({"design_effect": effect, "n_effective": row["n"] / effect, "mde": mde})
    return {"rows": rows}


def _zero_events(given: Given) -> dict[str, Any]:
    return {"rows": [{"n": n, "exact_upper95": zero_event_upper(n)} for n in given["n"]]}


CHECKS: dict[str, Callable[[Given], dict[str, Any]]] = {
    "fleiss_1": _fleiss,
    "fleiss_2": _fleiss,
    "fleiss_3": _fleiss,
    "fleiss_4": _fleiss,
    "fleiss_degenerate": _fleiss,
    "krippendorff_1": _krippendorff,
    "qwk_1": _qwk,
    "chi2_1": _chi2,
    "chi2_2": _chi2,
    "chi2_3": _chi2,
    "chi2_2x2": _chi2_2x2,
    "chi2_pseudo_replication": _chi2_copies,
    "winrate_1": _win_rate,
    "winrate_2": _win_rate,
    "winrate_3": _win_rate,
    "winrate_4": _win_rate,
    "clustered_se_positive_icc": _clustered,
    "clustered_se_negative_icc": _clustered,
    "effect_sizes": _effects,
    "friedman_1": _friedman,
    "multiplicity_1": _multiplicity,
    "multiplicity_ties": _multiplicity,
    "mde_paired": _mde,
    "zero_events": _zero_events,
}


# Numbers of the vectors that nothing in this package needs.
NOT_COMPUTED = {
    "randolph_kappa", "odds_ratio", "exact_binomial_p_two_sided", "bonferroni", "rule_of_three",
    "hedges_gz_approx", "hedges_gz_exact", "cohen_d_pooled", "cliffs_delta", "cohen_h",
}  # fmt: skip


def _computed(expected: Any) -> Any:
    if isinstance(expected, dict):
        return {key: _computed(expected[key]) for key in expected if key not in NOT_COMPUTED}
    return [_computed(value) for value in expected] if isinstance(expected, list) else expected


@pytest.mark.parametrize("name", CHECKS)
def test_a_golden_vector_is_reproduced(name: str) -> None:
    vector = vectors()[name]
    got, expected = CHECKS[name](vector["inputs"]), _computed(vector["expected"])
    assert expected
    wanted = {key: got[key] for key in expected}  # a vector may ask for less than we compute
    assert_matches(wanted, expected, vector["abs_tol"], name)


def test_no_golden_vector_of_these_metrics_is_left_out() -> None:
    stored = vectors()
    metrics = {stored[name]["metric"] for name in CHECKS}
    assert {name for name, vector in stored.items() if vector["metric"] in metrics} == set(CHECKS)
