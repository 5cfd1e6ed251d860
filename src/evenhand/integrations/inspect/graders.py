"""Which models grade the answers of a task, and which of them no certificate holds for."""

from collections.abc import Mapping
from typing import Any

from inspect_ai.log import EvalSpec

from evenhand.experiments import config as configuration
from evenhand.experiments.certificates import expected_of
from evenhand.instruments.judge.certificate import find
from evenhand.interop.inspect_task import graders_of, served_name
from evenhand.methods import Rate


def uncertified(spec: EvalSpec) -> list[str]:
    """Say of each grader without a certificate that passes why that is so."""
    scorers = [(scorer.name, scorer.options or {}) for scorer in spec.scorers or ()]
    graders = graders_of(scorers, _names(spec.model_roles or {}), spec.model)
    if not graders:
        return []
    folder = configuration.load(None, None, None).certificates
    standings = {model: find(folder, expected_of(Rate(), served_name(model))) for model in graders}
    return [
        f"{model} grades: {standing.says}"
        for model, standing in standings.items()
        if not standing.passes
    ]


def _names(roles: Mapping[str, Any]) -> dict[str, list[str]]:
    return {
        role: [model.model for model in (bound if isinstance(bound, list) else [bound])]
        for role, bound in roles.items()
    }
