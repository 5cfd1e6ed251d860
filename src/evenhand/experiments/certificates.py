"""This module says which judges a run would ask, and whether each has a certificate that holds for
it.

A judge is found by its declaration (`Agent.kind`), never by the name of its role. A conversation
refuses an agent that its method did not declare, so a judge cannot be asked without being found.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evenhand.agents import Agent, Cast
from evenhand.findings.certificate import CertificateRequirements
from evenhand.instruments.judge.certificate import KIND, TOGETHER, CertificateLookup, find
from evenhand.instruments.judge.data import card
from evenhand.instruments.judge.design import LAST, ONE, TWO, prompt
from evenhand.instruments.political.slant_certificate import KIND as SLANT
from evenhand.instruments.political.slant_certificate import required_of
from evenhand.methods import Method, Panel, Rate
from evenhand.methods import settings as settings_of
from evenhand.methods.two_sides import CompareSides
from evenhand.scorers import Scorer

Certified = tuple["JudgeInCast", CertificateLookup]

# A guard model answers with the labels it was trained for and gives no marks, so the audit of
# judges cannot ask it; `evenhand audit scorer` does. A custom harm policy is not opened at all
# without the certificate of its own check (`evenhand audit harm`), which binds how it is read.
_NO_JUDGE = ("guard", "harm")


@dataclass(frozen=True, slots=True)
class JudgeInCast:
    """A judge is a language model whose verdicts a method uses."""

    role: str
    model: str
    within_scorer: bool  # a scorer asks it, so the cast gives the role to that scorer
    by_logprob: bool = False  # its verdict is read from the probabilities of one word
    url: str = ""  # of its endpoint; empty where it has none
    audit: str = KIND  # the name of the audit whose certificate it needs


def judges_of(method: Method, cast: Cast) -> list[JudgeInCast]:
    """List every judge that the method may ask, each role once."""
    agents = method.agents()
    roles = dict.fromkeys(agent.role for agent in agents)
    judging = {
        role: [agent for agent in agents if agent.role == role and agent.judges] for role in roles
    }
    return [judge for role in roles for judge in _judge(role, cast, judging[role])]


def certificates_of(method: Method, cast: Cast, folder: Path | None) -> list[Certified]:
    """Pair each judge of a method with the certificate that applies to it.

    A judge that is read by log-probabilities needs an audit that read it so. A panel of mixed
    models is audited as one judge, so its models share a certificate.

    Args:
        method: The method whose judges are looked up.
        cast: The models that play its roles.
        folder: The folder of certificates; None if there is none.

    Returns:
        Each judge with its certificate, or with the reason why none applies.
    """
    judges = judges_of(method, cast)
    if isinstance(method, CompareSides):
        return [
            (replace(judge, audit=SLANT), find(folder, required_of(method, judge.model)))
            for judge in judges
        ]
    mixed = isinstance(method, Panel) and method.models > 1
    panel = TOGETHER.join(judge.model for judge in judges)
    return [
        (judge, find(folder, expected_of_judge(method, judge, panel if mixed else judge.model)))
        for judge in judges
    ]


def certificates_of_scorer(role: str, scorer: Scorer, folder: Path | None) -> list[Certified]:
    """Pair the language model that a scorer asks, if it asks one, with its certificate.

    Args:
        role: The role that the scorer plays.
        scorer: The scorer.
        folder: The folder of certificates; None if there is none.

    Returns:
        The judge with its certificate, or with the reason why none applies; empty without a judge.
    """
    judges = _within(role, scorer.describe())
    return [(judge, find(folder, expected_of_judge(None, judge, judge.model))) for judge in judges]


def expected_of_judge(
    method: Method | None, judge: JudgeInCast, model: str
) -> CertificateRequirements:
    """What the audit of this judge must be of: of the method itself where that is an audited one,
    else of the plain audit, read as this judge is read."""
    if isinstance(method, Rate | Panel):
        return expected_of(method, model)
    return expected_of(Rate(read="logprob" if judge.by_logprob else "json"), model)


def expected_of(method: Method, model: str) -> CertificateRequirements:
    """Say what a certificate must be for. A method of several judges, or one that asks them
    otherwise, needs a certificate of its own; any other asks its judge once, as the plain audit
    does."""
    judge_method = method if isinstance(method, Rate | Panel) else Rate()
    prompts = [agent.prompt for agent in judge_method.agents()] + [
        prompt(f"{name}{place}") for name in (ONE, TWO) for place in ("", LAST)
    ]
    return CertificateRequirements(
        kind=KIND,
        model=model,
        method={"name": judge_method.name, "settings": settings_of(judge_method)},
        prompts={template.label: template.sha256 for template in prompts},
        benchmark={"version": card()["version"]},
    )


def _judge(role: str, cast: Cast, judging: Sequence[Agent[Any]]) -> Iterator[JudgeInCast]:
    """Find the judge who plays a role. A program that scores is none, but the language model that
    it asks is, whatever the role is declared as."""
    player = cast.model_for(role)
    described = player.describe()
    if described.get("kind") == "scorer":
        yield from _within(role, described["scorer"])
    elif judging:
        by_logprob = any(agent.logprobs for agent in judging)
        url = str(described.get("url", ""))
        yield JudgeInCast(role, player.name, False, by_logprob, url)


def _within(role: str, scorer: dict[str, Any]) -> Iterator[JudgeInCast]:
    """Find the language model that a scorer asks for its verdict: the scorer's description holds
    that model's."""
    inside = scorer.get("model")
    if isinstance(inside, dict) and scorer.get("kind") not in _NO_JUDGE:
        by_logprob = scorer.get("read") == "logprob"
        yield JudgeInCast(role, str(inside["model"]), True, by_logprob, str(inside.get("url", "")))
