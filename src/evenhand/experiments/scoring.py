"""Scorers are listed, asked, fitted to labeled texts, and the support classifier is audited."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from evenhand.core import registry
from evenhand.core.errors import UserError
from evenhand.experiments import config as configuration
from evenhand.experiments.config import Config
from evenhand.experiments.screens import ShownScoring
from evenhand.findings.audit import Audit
from evenhand.findings.fitted_threshold import FittedThreshold, fit_threshold
from evenhand.instruments import DataFolder
from evenhand.instruments.bbq.data import BbqData
from evenhand.instruments.scorer.screening import Columns, LabelledTexts
from evenhand.instruments.scorer.support import audit, claims_of, drawn
from evenhand.scorers import Scorer
from evenhand.scorers.base import TOXICITY, Batched, score_all, scores_of
from evenhand.scorers.kinds import BUILT_IN, SAYS, said_as
from evenhand.scorers.support import SupportJudge

_BATCH = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorerLine:
    """A scorer in the list: its name, where it comes from, and what a score says."""

    name: str
    kind: str
    says: str = ""


def list_scorers(config: Config) -> list[ScorerLine]:
    """List the built-in scorers, those of a config, and those of other packages."""
    return [
        *(ScorerLine(name=name, kind="built in", says=SAYS[name]) for name in BUILT_IN),
        *(ScorerLine(name=name, kind=entry.kind) for name, entry in config.scorers.items()),
        *_of_other_packages(),
    ]


def _of_other_packages() -> Iterator[ScorerLine]:
    for name in registry.names("scorers"):
        if distribution := registry.distribution_of("scorers", name):
            try:
                yield ScorerLine(name=said_as(name), kind=f"from {' '.join(distribution)}")
            except UserError as problem:  # with this one; the others are listed all the same
                yield ScorerLine(name=name, kind=str(problem))


async def score_texts(config: Config, scorer: Scorer | str, texts: Sequence[str]) -> Batched:
    """Score texts with a scorer.

    Args:
        config: The config, in which a name is looked up.
        scorer: A scorer, its name, or KIND=URL.
        texts: The texts.

    Returns:
        The outcomes in the order of the texts.

    Raises:
        UserError: If there is no text, one is not a string, or no scorer has the name.
    """
    if not texts:
        raise UserError("no texts: give some behind the scorer's name, or on stdin")
    for place, text in enumerate(texts, 1):
        if not isinstance(text, str):
            raise UserError(f"text {place} is of type {type(text).__name__}: give a str")
    async with configuration.opened_scorer(config, scorer) as opened:
        return await score_all(opened, texts)


async def threshold_of(
    labelled: Path,
    config: Config,
    *,
    scorer: str,
    columns: Columns,
    attribute: str = TOXICITY,
    max_fpr: float = 0.05,
    confidence: float = 0.95,
    shown: ShownScoring | None = None,
) -> FittedThreshold:
    """Fit the threshold of a scorer to labeled texts.

    Args:
        labelled: Labeled texts, one per row.
        config: The config, in which the scorer's name is looked up.
        scorer: The scorer's name, or KIND=URL[#MODEL].
        columns: The columns of the texts and labels.
        attribute: Which score of the scorer is used.
        max_fpr: The largest share of benign texts that reach the threshold.
        confidence: The confidence of that share.
        shown: Shows how many texts are scored.

    Returns:
        The threshold, with its error rates on held-out texts.
    """
    table = LabelledTexts.read(labelled, columns).table
    texts, harmful = table["text"].to_list(), table["harm"].to_list()
    async with configuration.opened_scorer(config, scorer) as opened:
        with shown(opened.name) if shown else nullcontext() as on_batch:
            scores = await scores_of(opened, texts, attribute, on_batch)
        return fit_threshold(
            texts, scores, harmful, scorer=opened.name, attribute=attribute, max_fpr=max_fpr,
            confidence=confidence,
        )  # fmt: skip


def audit_support_judge(
    data: DataFolder, sample: int, on_batch: Callable[[int], None] | None = None
) -> Audit:
    """Audit the context-support classifier on BBQ.

    Args:
        data: The folder of data sets.
        sample: Questions of each template and condition; 0 for all.
        on_batch: Receives the number of claims in each judged batch.

    Returns:
        The AUC over templates and by category, and what a bound accepts.
    """
    records = BbqData(local=data.local, cache=data.cache).records()
    claim_set = claims_of(drawn(records, sample or None))
    judge, scores = SupportJudge(), list[float]()
    for start in range(0, len(claim_set.claims), _BATCH):
        batch = claim_set.claims[start : start + _BATCH]
        scores += judge.of(batch)
        if on_batch is not None:
            on_batch(len(batch))
    return audit(judge.name, claim_set.known, scores)
