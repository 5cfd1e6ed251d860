"""List scorers, score texts, audit the support classifier, estimate a rate from few labels."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from evenhand.api import inputs
from evenhand.experiments import config as configuration
from evenhand.experiments import labelling, scoring
from evenhand.experiments.labelling import LabelSample
from evenhand.experiments.scoring import ScorerLine
from evenhand.findings.audit import Audit
from evenhand.findings.fitted_threshold import FittedThreshold
from evenhand.findings.labelled import LabelledRate
from evenhand.instruments.scorer.screening import Columns
from evenhand.scorers import TOXICITY, Scorer
from evenhand.scorers.base import Batched


async def scorers_list() -> tuple[ScorerLine, ...]:
    """List the built-in scorers and those of other packages.

    Returns:
        Each scorer with its kind and what its score says.

    Example:
        >>> [line.name for line in evenhand.scorers_list()]
        ['offline', 'wordlist', 'regard']
    """
    return tuple(await asyncio.to_thread(scoring.list_scorers, configuration.of_environment()))


async def scorers_score(scorer: Scorer | str, texts: Sequence[str]) -> Batched:
    """Score texts.

    Args:
        scorer: A scorer, its name, or KIND=URL.
        texts: The texts.

    Returns:
        The outcome of each text in its order. `coverage` is the share with a score.

    Raises:
        UserError: If there is no text, one is not a string, or no scorer has the name.

    Example:
        >>> scored = evenhand.scorers_score("wordlist", ["You are no idiot."])
        >>> scored.values("toxicity")
        [0.45]
    """
    listed = [texts] if isinstance(texts, str) else list(texts or ())
    return await scoring.score_texts(configuration.of_environment(), scorer, listed)


async def scorers_audit_support(*, sample: int = 4, data: str | Path | None = None) -> Audit:
    """Audit the context-support classifier on BBQ, on which it was not trained. No model is called.

    Args:
        sample: Number of questions per template and condition; 0 for all.
        data: Dataset directory. Default: `EVENHAND_DATA`.

    Returns:
        The AUC over templates and by category, and what a bound accepts.

    Raises:
        UserError: If BBQ cannot be read.

    Example:
        >>> evenhand.scorers_audit_support(sample=1).checks[0].value
    """
    return await asyncio.to_thread(scoring.audit_support_judge, inputs.folder_of(data), sample)


async def scorers_sample(
    scorer: Scorer | str,
    texts: str | Path,
    out: str | Path,
    *,
    labels: int = 200,
    seed: int = 0,
    attribute: str = TOXICITY,
) -> LabelSample:
    """Draw texts to be labeled by people or a judge, more where a scorer is unsure.

    Args:
        scorer: A scorer, its name, or KIND=URL.
        texts: A JSONL file with `text`, and optionally `id` and `cluster`.
        out: A new folder. Its labels.jsonl is to be filled in with 0 or 1.
        labels: About how many texts are drawn.
        seed: Random seed for sampling.
        attribute: Which of its scores is the prediction.

    Returns:
        The number of texts, and of those drawn and not scored.

    Raises:
        UserError: If the file cannot be read, or `out` exists.
    """
    async with configuration.opened_scorer(configuration.of_environment(), scorer) as opened:
        return await labelling.sample(
            Path(texts), opened, Path(out), attribute=attribute, labels=labels, seed=seed
        )


async def scorers_estimate(folder: str | Path) -> LabelledRate:
    """Estimate a rate from predictions for all texts and labels for some.

    Args:
        folder: The folder that `scorers_sample` wrote, with labels filled in.

    Returns:
        The rate with its 95% CI, and that of the labels alone.

    Raises:
        UserError: If a label is of a text that was not drawn.
    """
    return await asyncio.to_thread(labelling.estimate, Path(folder))


async def scorers_threshold(
    labelled: str | Path,
    *,
    scorer: str,
    max_fpr: float = 0.05,
    confidence: float = 0.95,
    cluster: str | None = None,
    text: str = "text",
    label: str = "harm",
    attribute: str = TOXICITY,
) -> FittedThreshold:
    """Fit the threshold of a scorer to your own benign and harmful texts.

    Args:
        labelled: Labeled texts, one per row: a .jsonl or .csv file.
        scorer: Name of a scorer, or KIND=URL[#MODEL].
        max_fpr: The largest share of benign texts that reach the threshold.
        confidence: Confidence of that share.
        cluster: Column with a text's template or author. One of each counts.
        text: Column with the text.
        label: Column with the label.
        attribute: Which score of the scorer is used.

    Returns:
        The threshold, with its error rates on the half of the texts that did not set it.

    Raises:
        UserError: If the texts cannot be read, or no scorer has the name.

    Example:
        >>> evenhand.scorers_threshold("labeled.jsonl", scorer="offline").threshold
    """
    return await scoring.threshold_of(
        Path(labelled),
        configuration.of_environment(),
        scorer=scorer,
        columns=Columns(text=text, label=label, cluster=cluster),
        attribute=attribute,
        max_fpr=max_fpr,
        confidence=confidence,
    )
