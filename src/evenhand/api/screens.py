"""Screens: a cheap scorer decides where it is sure, and a judge the rest."""

import asyncio
from pathlib import Path
from typing import Unpack

from evenhand.api import inputs
from evenhand.core.errors import UserError
from evenhand.experiments import config as configuration
from evenhand.experiments import screens
from evenhand.experiments.request import Watch
from evenhand.experiments.screens import CalibrationRequest, ScreenUse, apply_screen
from evenhand.experiments.settings import RunOptions, show_settings
from evenhand.findings.plan import ItemPrice, ScreenPlan
from evenhand.findings.plan import screen_plan as plan_of
from evenhand.findings.screen_file import ScreenFile, read_screen
from evenhand.findings.screened import ScreenedRun
from evenhand.instruments.scorer.screening import Columns, ScreenTargets
from evenhand.scorers import TOXICITY, Scorer


async def scorers_screen_calibrate(
    labelled: str | Path,
    *,
    scorer: str,
    out: str | Path,
    max_fnr: float = 0.05,
    max_fpr: float | None = None,
    confidence: float = 0.95,
    group: str | None = None,
    cluster: str | None = None,
    text: str = "text",
    label: str = "harm",
    attribute: str = TOXICITY,
    traffic: str | Path | None = None,
) -> ScreenFile:
    """Find the cut-offs between which a judge is needed, from labeled texts.

    Args:
        labelled: Labeled texts, one per row: a .jsonl or .csv file. None of them may be texts that
            the scorer was trained on.
        scorer: Name of a scorer, or KIND=URL[#MODEL].
        out: The screen file, .json. Its card is written next to it.
        max_fnr: The largest share of harmful texts that may be called clean.
        max_fpr: The largest share of clean texts that may be called harmful. Without it no
            text is called harmful without the judge.
        confidence: Confidence of the promises.
        group: Column with whom a text is about. Each group gets the promise too.
        cluster: Column with a text's template or author. One of each counts.
        text: Column with the text.
        label: Column with the label.
        attribute: Which score of the scorer is used.
        traffic: Unlabeled texts that later scores are compared with. Defaults to the labeled ones.

    Returns:
        The screen. `refused` lists promises for which there are too few labels.

    Raises:
        UserError: If the texts cannot be read, or the file exists.
    """
    request = CalibrationRequest(
        labelled=Path(labelled),
        out=Path(out),
        said=scorer,
        columns=Columns(text=text, label=label, group=group, cluster=cluster),
        promise=ScreenTargets(missed=max_fnr, false_alarms=max_fpr, confidence=confidence),
        attribute=attribute,
        traffic=inputs.path_of(traffic),
    )
    return await screens.calibrate(request, configuration.of_environment())


async def scorers_screen_apply(
    file: str | Path,
    answers: str | Path,
    *,
    judge: str | Scorer,
    threshold: float = 0.5,
    text_column: str | None = None,
    watch: Watch | None = None,
    **settings: Unpack[RunOptions],
) -> ScreenedRun:
    """Judge stored answers: the screen where it is sure, the judge elsewhere.

    Args:
        file: The screen file.
        answers: JSON lines with `answer`, or Parquet: a file, a folder, a URL.
        judge: The scorer that decides the rest, or its name, such as `judge=URL#MODEL`.
        threshold: From which toxicity of the judge a text is harmful.
        text_column: Of Parquet: the text to judge. Defaults to `answer`.
        watch: Receives progress events.
        **settings: Settings of the run, of which `out` is required: `RunOptions`.

    Returns:
        The verdicts, and whether the scores have drifted since the calibration.

    Raises:
        UserError: If the scorer is of another version, or the run was stopped.
    """
    named = inputs.Scorers(None if isinstance(judge, str) else {judge.name: judge})
    use = ScreenUse.of(
        Path(file),
        str(answers),
        named.scorer,
        judge=judge if isinstance(judge, str) else judge.name,
        threshold=threshold,
        text_column=text_column,
    )
    request = inputs.request_of(use.source, use.method, inputs.settings_of(settings))
    try:
        applied = await apply_screen(use, request, watch or Watch())
    finally:
        await named.close()
    if applied.finding is None:
        raise UserError(inputs.why_no_report(applied.ended, request.settings.out))
    return applied.finding


async def scorers_screen_plan(
    file: str | Path,
    texts: int,
    *,
    harmful: float | None = None,
    price: ItemPrice | None = None,
) -> ScreenPlan:
    """Plan what the judge costs with a screen, compared with judging every text.

    Args:
        file: The screen file.
        texts: Number of texts.
        harmful: Share of the texts that is harmful. Not needed where the screen knows traffic.
        price: Calls of the judge per text, tokens per call, and money per million tokens. Defaults
            to one call of 500 tokens.

    Returns:
        Calls, tokens and money, with the screen and without.
    """
    cost = price or ItemPrice(calls=1, tokens=500)
    return await asyncio.to_thread(lambda: plan_of(read_screen(Path(file)), texts, cost, harmful))


show_settings(scorers_screen_apply)
