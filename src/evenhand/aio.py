"""The Python functions for code that awaits: those of `evenhand` itself, each a coroutine.

    report = await evenhand.aio.measure("bbq", model=model, out="runs/now")

A script says all that it uses: no config file is read, except for the harms that one declares
(`harms_list`, `audit_harm`). From the environment come only EVENHAND_DATA (the folder of data sets)
and the keys of services that are named on the spot as KIND=URL.
Whoever makes a model closes it, so that several calls can share its connections:

    async with evenhand.Endpoint(url, model="gpt-4o") as model: ...
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand.api.counterfactuals import (
        counterfactual,
        counterfactual_find,
        counterfactual_plan,
        counterfactual_versions,
    )
    from evenhand.api.debates import train_debate_run, train_debate_sweep, train_debate_topics
    from evenhand.api.findings import compare, open_run, report, stability
    from evenhand.api.gating import gate, gate_baseline, monitor
    from evenhand.api.installation import (
        demo,
        doctor_endpoint,
        list_methods,
        new,
        runs_view,
        serve_local,
    )
    from evenhand.api.judging import audit_harm, harms, judge_scenarios
    from evenhand.api.measuring import answer, audit, forecast, frontier, measure, mitigate
    from evenhand.api.preference_data import (
        annotate_agree,
        annotate_export,
        annotate_import,
        train_pairs_from_debates,
        train_pairs_from_items,
        train_pairs_from_run,
    )
    from evenhand.api.reproduction import (
        reproduce_list,
        reproduce_mabrf,
        reproduce_malibu,
        reproduce_page,
        reproduce_rldf,
        reproduce_stardtox,
    )
    from evenhand.api.run_data import (
        plan,
        runs_board,
        runs_export,
        runs_import,
        runs_items,
        runs_list,
        runs_pack_make,
        runs_pack_verify,
        runs_repeats,
        runs_show,
        runs_status,
        runs_verify,
    )
    from evenhand.api.scorers import (
        scorers_audit_support,
        scorers_estimate,
        scorers_list,
        scorers_sample,
        scorers_score,
        scorers_threshold,
    )
    from evenhand.api.screens import (
        scorers_screen_apply,
        scorers_screen_calibrate,
        scorers_screen_plan,
    )
    from evenhand.api.side_effects import overcorrection
    from evenhand.api.training import (
        train_card,
        train_dpo,
        train_export,
        train_from_gguf,
        train_ppo,
        train_reward,
        train_rldf,
        train_rloo,
        train_sft,
        train_show,
        train_to_gguf,
    )
    from evenhand.experiments.request import Watch
    from evenhand.gateway.functions import (
        doctor_litellm,
        gateway_envoy_config,
        gateway_key,
        gateway_plan,
        gateway_serve,
        gateway_top,
    )
    from evenhand.validation.conformance.run import run_conformance
    from evenhand.validation.self_test.checks import run_self_test

__all__ = [
    "Watch",
    "annotate_agree",
    "annotate_export",
    "annotate_import",
    "answer",
    "audit",
    "audit_harm",
    "compare",
    "counterfactual",
    "counterfactual_find",
    "counterfactual_plan",
    "counterfactual_versions",
    "demo",
    "doctor_endpoint",
    "doctor_litellm",
    "forecast",
    "frontier",
    "gate",
    "gate_baseline",
    "gateway_envoy_config",
    "gateway_key",
    "gateway_plan",
    "gateway_serve",
    "gateway_top",
    "harms",
    "judge_scenarios",
    "list_methods",
    "measure",
    "mitigate",
    "monitor",
    "new",
    "open_run",
    "overcorrection",
    "plan",
    "report",
    "reproduce_list",
    "reproduce_mabrf",
    "reproduce_malibu",
    "reproduce_page",
    "reproduce_rldf",
    "reproduce_stardtox",
    "run_conformance",
    "run_self_test",
    "runs_board",
    "runs_export",
    "runs_import",
    "runs_items",
    "runs_list",
    "runs_pack_make",
    "runs_pack_verify",
    "runs_repeats",
    "runs_show",
    "runs_status",
    "runs_verify",
    "runs_view",
    "scorers_audit_support",
    "scorers_estimate",
    "scorers_list",
    "scorers_sample",
    "scorers_score",
    "scorers_screen_apply",
    "scorers_screen_calibrate",
    "scorers_screen_plan",
    "scorers_threshold",
    "serve_local",
    "stability",
    "train_card",
    "train_debate_run",
    "train_debate_sweep",
    "train_debate_topics",
    "train_dpo",
    "train_export",
    "train_from_gguf",
    "train_pairs_from_debates",
    "train_pairs_from_items",
    "train_pairs_from_run",
    "train_ppo",
    "train_reward",
    "train_rldf",
    "train_rloo",
    "train_sft",
    "train_show",
    "train_to_gguf",
]

# The module of each function; `evenhand` has each without its await.
FUNCTIONS = {
    "api.debates": "train_debate_run train_debate_sweep train_debate_topics".split(),
    "api.findings": "compare open_run stability report".split(),
    "api.gating": "gate gate_baseline monitor".split(),
    "api.installation": "demo doctor_endpoint list_methods new serve_local runs_view".split(),
    "api.judging": "audit_harm harms judge_scenarios".split(),
    "api.measuring": "answer audit forecast frontier measure mitigate".split(),
    "api.preference_data": (
        "train_pairs_from_debates train_pairs_from_items train_pairs_from_run "
        "annotate_agree annotate_export annotate_import"
    ).split(),
    "api.reproduction": (
        "reproduce_list reproduce_mabrf reproduce_malibu reproduce_page reproduce_rldf "
        "reproduce_stardtox"
    ).split(),
    "api.run_data": (
        "plan runs_board runs_export runs_import runs_items runs_list runs_pack_make "
        "runs_pack_verify runs_repeats runs_show runs_status runs_verify"
    ).split(),
    "api.scorers": (
        "scorers_audit_support scorers_estimate scorers_list scorers_sample scorers_score "
        "scorers_threshold"
    ).split(),
    "api.screens": "scorers_screen_apply scorers_screen_calibrate scorers_screen_plan".split(),
    "api.side_effects": "overcorrection".split(),
    "api.counterfactuals": (
        "counterfactual counterfactual_find counterfactual_plan counterfactual_versions"
    ).split(),
    "api.training": (
        "train_card train_dpo train_export train_from_gguf train_ppo train_reward train_rldf "
        "train_rloo train_sft train_show train_to_gguf"
    ).split(),
    "validation.conformance.run": "run_conformance".split(),
    "gateway.functions": (
        "doctor_litellm gateway_envoy_config gateway_key gateway_plan gateway_serve gateway_top"
    ).split(),
    "validation.self_test.checks": "run_self_test".split(),
}
_MODULE_OF = {name: module for module, names in FUNCTIONS.items() for name in names}
_MODULE_OF["Watch"] = "experiments.request"


def __getattr__(name: str) -> Any:
    """Import a function at its first use: no call pays for what only others need."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'evenhand.aio' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"evenhand.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
