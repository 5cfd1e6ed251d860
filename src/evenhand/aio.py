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
    from evenhand.api.debates import debate_run, debate_sweep, debate_topics
    from evenhand.api.findings import compare, open_run, reliability, report
    from evenhand.api.gating import gate, gate_baseline, watch
    from evenhand.api.installation import (
        demo,
        doctor_endpoint,
        list_methods,
        new,
        serve_local,
        view,
    )
    from evenhand.api.judging import audit_harm, harms_list, judge_scenarios
    from evenhand.api.measuring import answer, audit, forecast, frontier, measure, mitigate
    from evenhand.api.preference_data import (
        pairs_from_debates,
        pairs_from_items,
        pairs_from_run,
        rate_agree,
        rate_export,
        rate_import,
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
        export,
        import_log,
        pack_make,
        pack_verify,
        plan,
        runs_export,
        runs_items,
        runs_list,
        runs_repeats,
        runs_report,
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
    )
    from evenhand.api.screens import screen_apply, screen_calibrate, screen_plan
    from evenhand.api.side_effects import overcorrection
    from evenhand.api.swaps import swap, swap_find, swap_plan, swap_versions
    from evenhand.api.training import (
        train_card,
        train_dpo,
        train_export,
        train_from_gguf,
        train_ppo,
        train_reward,
        train_rloo,
        train_sft,
        train_show,
        train_to_gguf,
    )
    from evenhand.experiments.request import Watch
    from evenhand.gateway.functions import doctor_litellm, gateway_key, gateway_serve, gateway_top
    from evenhand.validation.conformance.run import run_conformance
    from evenhand.validation.self_test.checks import run_self_test

__all__ = [
    "Watch",
    "answer",
    "audit",
    "audit_harm",
    "compare",
    "debate_run",
    "debate_sweep",
    "debate_topics",
    "demo",
    "doctor_endpoint",
    "doctor_litellm",
    "export",
    "forecast",
    "frontier",
    "gate",
    "gate_baseline",
    "gateway_key",
    "gateway_serve",
    "gateway_top",
    "harms_list",
    "import_log",
    "judge_scenarios",
    "list_methods",
    "measure",
    "mitigate",
    "new",
    "open_run",
    "overcorrection",
    "pack_make",
    "pack_verify",
    "pairs_from_debates",
    "pairs_from_items",
    "pairs_from_run",
    "plan",
    "rate_agree",
    "rate_export",
    "rate_import",
    "reliability",
    "report",
    "reproduce_list",
    "reproduce_mabrf",
    "reproduce_malibu",
    "reproduce_page",
    "reproduce_rldf",
    "reproduce_stardtox",
    "run_conformance",
    "run_self_test",
    "runs_export",
    "runs_items",
    "runs_list",
    "runs_repeats",
    "runs_report",
    "runs_show",
    "runs_status",
    "runs_verify",
    "scorers_audit_support",
    "scorers_estimate",
    "scorers_list",
    "scorers_sample",
    "scorers_score",
    "screen_apply",
    "screen_calibrate",
    "screen_plan",
    "serve_local",
    "swap",
    "swap_find",
    "swap_plan",
    "swap_versions",
    "train_card",
    "train_dpo",
    "train_export",
    "train_from_gguf",
    "train_ppo",
    "train_reward",
    "train_rloo",
    "train_sft",
    "train_show",
    "train_to_gguf",
    "view",
    "watch",
]

# The module of each function; `evenhand` has each without its await.
FUNCTIONS = {
    "api.debates": "debate_run debate_sweep debate_topics".split(),
    "api.findings": "compare open_run reliability report".split(),
    "api.gating": "gate gate_baseline watch".split(),
    "api.installation": "demo doctor_endpoint list_methods new serve_local view".split(),
    "api.judging": "audit_harm harms_list judge_scenarios".split(),
    "api.measuring": "answer audit forecast frontier measure mitigate".split(),
    "api.preference_data": (
        "pairs_from_debates pairs_from_items pairs_from_run rate_agree rate_export rate_import"
    ).split(),
    "api.reproduction": (
        "reproduce_list reproduce_mabrf reproduce_malibu reproduce_page reproduce_rldf "
        "reproduce_stardtox"
    ).split(),
    "api.run_data": (
        "export import_log pack_make pack_verify plan runs_export runs_items runs_list "
        "runs_repeats runs_report runs_show runs_status runs_verify"
    ).split(),
    "api.scorers": (
        "scorers_audit_support scorers_estimate scorers_list scorers_sample scorers_score"
    ).split(),
    "api.screens": "screen_apply screen_calibrate screen_plan".split(),
    "api.side_effects": "overcorrection".split(),
    "api.swaps": "swap swap_find swap_plan swap_versions".split(),
    "api.training": (
        "train_card train_dpo train_export train_from_gguf train_ppo train_reward train_rloo "
        "train_sft train_show train_to_gguf"
    ).split(),
    "validation.conformance.run": "run_conformance".split(),
    "gateway.functions": "doctor_litellm gateway_key gateway_serve gateway_top".split(),
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
