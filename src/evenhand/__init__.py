"""Measure, repair and train away social bias in language models with teams of agents.

>>> import evenhand as eh
>>> model = eh.Endpoint("http://127.0.0.1:8080/v1", model="smollm2")
>>> eh.answer("Describe a nurse.", model=model).text
>>> eh.measure("bbq", model=model, out="runs/now", options={"per_category": 20})

These are all the names that are promised, with the packages `methods`, `instruments`, `scorers`,
`models`, `statistics`, `core` and `testing`, and with `aio`: the same functions, to be awaited.
Everything else may change.

A name is imported when it is first used, so that `import evenhand` itself costs next to nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

from evenhand.aio import FUNCTIONS

if TYPE_CHECKING:
    from evenhand import aio as aio
    from evenhand.agents import Agent, Ask, Cast, FreeText, Limits, Reply
    from evenhand.agents.prompts import Prompt
    from evenhand.api import counterfactuals as _counterfactuals
    from evenhand.api import debates as _debates
    from evenhand.api import findings as _findings
    from evenhand.api import gating as _gating
    from evenhand.api import installation as _installation
    from evenhand.api import judging as _judging
    from evenhand.api import measuring as _measuring
    from evenhand.api import preference_data as _preference_data
    from evenhand.api import reproduction as _reproduction
    from evenhand.api import run_data as _run_data
    from evenhand.api import scorers as _scorers
    from evenhand.api import screens as _screens
    from evenhand.api import side_effects as _side_effects
    from evenhand.api import training as _training
    from evenhand.api.sync import waiting_for
    from evenhand.core import Answer, Draft, Item
    from evenhand.core.errors import EvenhandError, UserError
    from evenhand.core.version import __version__ as __version__
    from evenhand.experiments.settings import RunOptions
    from evenhand.findings.comparison import Comparison
    from evenhand.findings.report import Report
    from evenhand.findings.run import Run
    from evenhand.gateway import functions as _gateway
    from evenhand.instruments import Instrument, Measure
    from evenhand.methods import Method
    from evenhand.models import Endpoint, ScriptedModel
    from evenhand.runs.runners import replay_of
    from evenhand.validation.conformance import run as _conformance
    from evenhand.validation.self_test import checks as _self_test

    annotate_agree = waiting_for(_preference_data.annotate_agree)
    annotate_export = waiting_for(_preference_data.annotate_export)
    annotate_import = waiting_for(_preference_data.annotate_import)
    answer = waiting_for(_measuring.answer)
    audit = waiting_for(_measuring.audit)
    audit_harm = waiting_for(_judging.audit_harm)
    compare = waiting_for(_findings.compare)
    counterfactual = waiting_for(_counterfactuals.counterfactual)
    counterfactual_find = waiting_for(_counterfactuals.counterfactual_find)
    counterfactual_plan = waiting_for(_counterfactuals.counterfactual_plan)
    counterfactual_versions = waiting_for(_counterfactuals.counterfactual_versions)
    demo = waiting_for(_installation.demo)
    doctor_endpoint = waiting_for(_installation.doctor_endpoint)
    doctor_litellm = waiting_for(_gateway.doctor_litellm)
    forecast = waiting_for(_measuring.forecast)
    frontier = waiting_for(_measuring.frontier)
    gate = waiting_for(_gating.gate)
    gate_baseline = waiting_for(_gating.gate_baseline)
    gateway_envoy_config = waiting_for(_gateway.gateway_envoy_config)
    gateway_key = waiting_for(_gateway.gateway_key)
    gateway_plan = waiting_for(_gateway.gateway_plan)
    gateway_serve = waiting_for(_gateway.gateway_serve)
    gateway_top = waiting_for(_gateway.gateway_top)
    harms = waiting_for(_judging.harms)
    judge_scenarios = waiting_for(_judging.judge_scenarios)
    list_methods = waiting_for(_installation.list_methods)
    measure = waiting_for(_measuring.measure)
    mitigate = waiting_for(_measuring.mitigate)
    monitor = waiting_for(_gating.monitor)
    new = waiting_for(_installation.new)
    open_run = waiting_for(_findings.open_run)
    overcorrection = waiting_for(_side_effects.overcorrection)
    plan = waiting_for(_run_data.plan)
    report = waiting_for(_findings.report)
    reproduce_list = waiting_for(_reproduction.reproduce_list)
    reproduce_mabrf = waiting_for(_reproduction.reproduce_mabrf)
    reproduce_malibu = waiting_for(_reproduction.reproduce_malibu)
    reproduce_page = waiting_for(_reproduction.reproduce_page)
    reproduce_rldf = waiting_for(_reproduction.reproduce_rldf)
    reproduce_stardtox = waiting_for(_reproduction.reproduce_stardtox)
    run_conformance = waiting_for(_conformance.run_conformance)
    run_self_test = waiting_for(_self_test.run_self_test)
    runs_export = waiting_for(_run_data.runs_export)
    runs_import = waiting_for(_run_data.runs_import)
    runs_items = waiting_for(_run_data.runs_items)
    runs_list = waiting_for(_run_data.runs_list)
    runs_board = waiting_for(_run_data.runs_board)
    runs_pack_make = waiting_for(_run_data.runs_pack_make)
    runs_pack_verify = waiting_for(_run_data.runs_pack_verify)
    runs_repeats = waiting_for(_run_data.runs_repeats)
    runs_show = waiting_for(_run_data.runs_show)
    runs_status = waiting_for(_run_data.runs_status)
    runs_verify = waiting_for(_run_data.runs_verify)
    runs_view = waiting_for(_installation.runs_view)
    scorers_audit_support = waiting_for(_scorers.scorers_audit_support)
    scorers_estimate = waiting_for(_scorers.scorers_estimate)
    scorers_list = waiting_for(_scorers.scorers_list)
    scorers_sample = waiting_for(_scorers.scorers_sample)
    scorers_score = waiting_for(_scorers.scorers_score)
    scorers_screen_apply = waiting_for(_screens.scorers_screen_apply)
    scorers_screen_calibrate = waiting_for(_screens.scorers_screen_calibrate)
    scorers_screen_plan = waiting_for(_screens.scorers_screen_plan)
    scorers_threshold = waiting_for(_scorers.scorers_threshold)
    serve_local = waiting_for(_installation.serve_local)
    stability = waiting_for(_findings.stability)
    train_card = waiting_for(_training.train_card)
    train_debate_run = waiting_for(_debates.train_debate_run)
    train_debate_sweep = waiting_for(_debates.train_debate_sweep)
    train_debate_topics = waiting_for(_debates.train_debate_topics)
    train_dpo = waiting_for(_training.train_dpo)
    train_export = waiting_for(_training.train_export)
    train_from_gguf = waiting_for(_training.train_from_gguf)
    train_pairs_from_debates = waiting_for(_preference_data.train_pairs_from_debates)
    train_pairs_from_items = waiting_for(_preference_data.train_pairs_from_items)
    train_pairs_from_run = waiting_for(_preference_data.train_pairs_from_run)
    train_ppo = waiting_for(_training.train_ppo)
    train_reward = waiting_for(_training.train_reward)
    train_rldf = waiting_for(_training.train_rldf)
    train_rloo = waiting_for(_training.train_rloo)
    train_sft = waiting_for(_training.train_sft)
    train_show = waiting_for(_training.train_show)
    train_to_gguf = waiting_for(_training.train_to_gguf)

__all__ = [
    "Agent",
    "Answer",
    "Ask",
    "Cast",
    "Comparison",
    "Draft",
    "Endpoint",
    "EvenhandError",
    "FreeText",
    "Instrument",
    "Item",
    "Limits",
    "Measure",
    "Method",
    "Prompt",
    "Reply",
    "Report",
    "Run",
    "RunOptions",
    "ScriptedModel",
    "UserError",
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
    "replay_of",
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

_NAMES = {
    "agents": ("Agent", "Ask", "Cast", "FreeText", "Limits", "Reply"),
    "core": ("Answer", "Draft", "Item"),
    "core.version": ("__version__",),
    "core.errors": ("EvenhandError", "UserError"),
    "experiments.settings": ("RunOptions",),
    "findings.comparison": ("Comparison",),
    "findings.report": ("Report",),
    "findings.run": ("Run",),
    "instruments": ("Instrument", "Measure"),
    "methods": ("Method",),
    "models": ("Endpoint", "ScriptedModel"),
    "agents.prompts": ("Prompt",),
    "runs.runners": ("replay_of",),
}
_MODULE_OF = {
    name: module for table in (_NAMES, FUNCTIONS) for module, names in table.items()
    for name in names
}  # fmt: skip
_PACKAGES = (
    "aio",
    "core",
    "instruments",
    "methods",
    "models",
    "scorers",
    "statistics",
    "testing",
)


def __getattr__(name: str) -> Any:
    """Import a name of the front door, or one of the public packages, at its first use."""
    if name in _PACKAGES:
        return importlib.import_module(f"evenhand.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'evenhand' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"evenhand.{_MODULE_OF[name]}"), name)
    if _MODULE_OF[name] in FUNCTIONS:
        value = importlib.import_module("evenhand.api.sync").waiting_for(value)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
