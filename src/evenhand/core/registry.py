"""Parts by name: our own, and those that other installed packages declare as entry points.

    [project.entry-points."evenhand.methods"]      # in the other package's pyproject.toml
    mine = "their_package.mine:Mine"

A part is imported when it is first asked for by its name. One that cannot be imported, or whose
name is taken twice, is refused by name and leaves all others as they are.

Our own parts stand in `OWN`, in the same form and behind the same loader, and not in our own entry
points: those are read from installed metadata, which is out of date in every checkout until the
next installation.
"""

import sys
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from typing import Any, Literal

from evenhand.core.errors import UserError, choices_for

Group = Literal[
    "methods",
    "instruments",
    "audits",
    "models",
    "scorers",
    "searches",
    "judge_checks",
    "training_stages",
]
_ONE: Mapping[Group, str] = {
    "methods": "method",
    "instruments": "instrument",
    "audits": "audit",
    "models": "kind of model",
    "scorers": "kind of scorer",
    "searches": "search engine",
    "judge_checks": "check of judges",
    "training_stages": "training stage",
}
_BASELINES = "evenhand.methods.baselines"
_INSTRUMENTS = "evenhand.instruments"
_CHECKS = "evenhand.instruments.judge.checks"
_KINDS = "evenhand.scorers.kinds"
_MODELS = "evenhand.models"
_ENGINES = "evenhand.agents.tools.search.engines"

# In the order in which lists show them.
OWN: Mapping[Group, Mapping[str, str]] = {
    "methods": {
        "default": f"{_BASELINES}.single_prompt:DefaultPrompt",
        "fairness": f"{_BASELINES}.single_prompt:FairnessPrompt",
        "cot": f"{_BASELINES}.single_prompt:ChainOfThought",
        "self_consistency": f"{_BASELINES}.single_prompt:SelfConsistency",
        "self_debias_explanation": f"{_BASELINES}.self_debiasing:SelfDebiasExplanation",
        "self_debias_reprompting": f"{_BASELINES}.self_debiasing:SelfDebiasReprompting",
        "rotated": f"{_BASELINES}.single_prompt:Rotated",
        "self_debias_gen": f"{_BASELINES}.self_debiasing:SelfDebiasGen",
        "fair_thinking": f"{_BASELINES}.single_prompt:FairThinking",
        "blind": f"{_BASELINES}.several_drafts:Blind",
        "averaged": f"{_BASELINES}.several_drafts:Averaged",
        "detect_first": f"{_BASELINES}.detect_first:DetectFirst",
        "self_refine": f"{_BASELINES}.several_drafts:SelfRefine",
        "best_of_n": f"{_BASELINES}.several_drafts:BestOfN",
        "search_first": "evenhand.methods.mabrf:SearchFirst",
        "stardtox": "evenhand.methods.stardtox:StarDTox",
        "mabrf": "evenhand.methods.mabrf:Mabrf",
        "rate": "evenhand.methods.judging:Rate",
        "panel": "evenhand.methods.judging:Panel",
        "two_responses": "evenhand.methods.judging:TwoResponses",
        "stored": f"{_BASELINES}.stored_answer:StoredAnswer",
        "always_unknown": f"{_BASELINES}.stored_answer:AlwaysUnknown",
        "always_stereotyped": f"{_BASELINES}.stored_answer:AlwaysStereotyped",
        "random": f"{_BASELINES}.stored_answer:UniformRandom",
    },
    "instruments": {
        "bbq": f"{_INSTRUMENTS}.bbq.instrument:Bbq",
        "rtp": f"{_INSTRUMENTS}.realtoxicityprompts.instrument:RealToxicityPrompts",
        "squad": f"{_INSTRUMENTS}.squad.instrument:Squad",
        "crows_pairs": f"{_INSTRUMENTS}.crows_pairs.instrument:CrowsPairs",
        "stereoset": f"{_INSTRUMENTS}.stereoset.instrument:StereoSet",
        "winobias": f"{_INSTRUMENTS}.winobias.instrument:WinoBias",
        "winogender": f"{_INSTRUMENTS}.winogender.instrument:Winogender",
        "subtler_biases": f"{_INSTRUMENTS}.subtler_biases.instrument:SubtlerBiases",
        "subtler_choices": f"{_INSTRUMENTS}.subtler_biases.instrument:SubtlerChoices",
        "occupations": f"{_INSTRUMENTS}.winobias.instrument:Occupations",
        "overcorrection": f"{_INSTRUMENTS}.overcorrection.instrument:OverCorrection",
        "statements": f"{_INSTRUMENTS}.statements.instrument:Statements",
        "framings": f"{_INSTRUMENTS}.framings.instrument:Framings",
        "rankings": f"{_INSTRUMENTS}.rankings.instrument:Rankings",
        "decisions": f"{_INSTRUMENTS}.decisions.instrument:Decisions",
        "counterfactual": f"{_INSTRUMENTS}.counterfactual.instrument:CounterfactualTest",
        "actions": f"{_INSTRUMENTS}.actions.instrument:Actions",
        "discrim_eval": f"{_INSTRUMENTS}.discrim_eval.instrument:DiscrimEval",
        "xstest": f"{_INSTRUMENTS}.xstest.instrument:XsTest",
        "political": f"{_INSTRUMENTS}.political.instrument:Political",
        "gest": f"{_INSTRUMENTS}.gest.instrument:Gest",
        "seegull": f"{_INSTRUMENTS}.seegull.instrument:SeeGull",
        "redditbias": f"{_INSTRUMENTS}.redditbias.instrument:RedditBias",
        "bold": f"{_INSTRUMENTS}.bold.instrument:Bold",
        "holisticbias": f"{_INSTRUMENTS}.holisticbias.instrument:HolisticBias",
        "llmbar": f"{_INSTRUMENTS}.llmbar.instrument:LlmBar",
        "evalbiasbench": f"{_INSTRUMENTS}.evalbiasbench.instrument:EvalBiasBench",
    },
    "audits": {  # instruments too, of what evenhand relies on
        "judge": f"{_INSTRUMENTS}.judge.instrument:JudgeAudit",
        "slant": f"{_INSTRUMENTS}.political.slant_audit:SlantAudit",
        "reward": f"{_INSTRUMENTS}.reward.instrument:Reward",
        "harm": f"{_INSTRUMENTS}.harm.instrument:HarmAudit",
        "scorer": f"{_INSTRUMENTS}.scorer.instrument:ScorerAudit",
    },
    "models": {  # the word before the colon of a model's name
        "litellm": f"{_MODELS}.litellm_model:LiteLLMModel",
        "inspect": f"{_MODELS}.inspect_model:InspectLibraryModel",
        "http": f"{_MODELS}.apps:HttpApp",
        "https": f"{_MODELS}.apps:HttpApp",
        "command": f"{_MODELS}.apps:CommandApp",
        "python": f"{_MODELS}.apps:PythonApp",
    },
    "scorers": {
        "openai_moderation": f"{_KINDS}:ModerationConfig",
        "perspective": f"{_KINDS}:PerspectiveConfig",
        "classifier": f"{_KINDS}:ClassifierConfig",
        "guard": f"{_KINDS}:GuardConfig",
        "judge": f"{_KINDS}:JudgeConfig",
        "http": f"{_KINDS}:HttpConfig",
    },
    "searches": {
        "searxng": f"{_ENGINES}:searxng",
        "mediawiki": f"{_ENGINES}:mediawiki",
        "brave": f"{_ENGINES}:brave",
        "duckduckgo": f"{_ENGINES}:duckduckgo",
        "corpus": f"{_ENGINES}:corpus",
    },
    "judge_checks": {
        "coverage": f"{_CHECKS}:CoverageCheck",
        "readability": f"{_CHECKS}:Readability",
        "scale": f"{_CHECKS}:ScaleCheck",
        "identity": f"{_CHECKS}:Identity",
        "identity_in_pairs": f"{_CHECKS}:IdentityInPairs",
        "position": f"{_CHECKS}:Position",
        "injection": f"{_CHECKS}:Injection",
        "repetition": f"{_CHECKS}:Repetition",
        "human_agreement": f"{_CHECKS}:HumanAgreement",
        "self_preference": f"{_CHECKS}:SelfPreference",
        "llmbar": f"{_CHECKS}:LlmBarCheck",
        "evalbiasbench": f"{_CHECKS}:EvalBiasBenchCheck",
    },
    "training_stages": {},
}


def names(group: Group) -> list[str]:
    """All names of a group: our own in their order, then those of other packages."""
    builtin = OWN[group]
    return [*builtin, *sorted(_others(group).keys() - builtin.keys())]


def load(group: Group, name: str) -> Any:
    """The part with this name, imported."""
    entries = _entries(group, name)
    if not entries:
        raise UserError(f"there is no {_ONE[group]} {name!r}. {choices_for(name, names(group))}")
    if len(entries) > 1:
        packages = " and ".join(map(_package, entries))
        raise UserError(
            f"the {_ONE[group]} {name!r} is declared by {packages}: uninstall all but one of them"
        )
    return _imported(group, entries[0])


def distribution_of(group: Group, name: str) -> tuple[str, str] | None:
    """Name and version of the other package that a part comes from; None for one of our own, or
    where no package declares it."""
    for entry in _others(group).get(name, ()):
        if entry.dist is not None:
            return entry.dist.name, entry.dist.version
    return None


def _imported(group: Group, entry: metadata.EntryPoint) -> Any:
    try:
        part = entry.load()
    except Exception as error:  # whatever another package does when it is imported
        if entry.dist is None:  # our own mistake is shown whole
            raise
        raise UserError(
            f"the {_ONE[group]} {entry.name!r} of {_package(entry)} cannot be imported: "
            f"{type(error).__name__}: {error}. Update that package, or uninstall it"
        ) from error
    declared_name = getattr(part, "name", entry.name)
    if isinstance(declared_name, str) and declared_name != entry.name:
        raise UserError(
            f"{_package(entry)} declares the {_ONE[group]} {entry.name!r}, which calls itself "
            f"{declared_name!r}: make the two names equal, since a record keeps the second"
        )
    return part


def _entries(group: Group, name: str) -> list[metadata.EntryPoint]:
    target = OWN[group].get(name)
    ours = [metadata.EntryPoint(name, target, f"evenhand.{group}")] if target else []
    return [*ours, *_others(group).get(name, ())]


def _others(group: Group) -> Mapping[str, tuple[metadata.EntryPoint, ...]]:
    """What other packages declare, by name. Read again where the places to look have changed."""
    return _read(group, tuple(sys.path))


@cache
def _read(group: Group, places: tuple[str, ...]) -> Mapping[str, tuple[metadata.EntryPoint, ...]]:
    del places  # only what the answer is kept by
    installed = metadata.entry_points(group=f"evenhand.{group}")
    return {name: tuple(installed.select(name=name)) for name in installed.names}


def _package(entry: metadata.EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "evenhand itself"
