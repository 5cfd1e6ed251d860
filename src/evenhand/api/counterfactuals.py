"""Counterfactual tests and their preparation: spans, prompt variants, number of prompts."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Unpack

from evenhand.api import inputs
from evenhand.api.inputs import Model
from evenhand.api.measuring import measure
from evenhand.experiments.request import Watch
from evenhand.experiments.settings import RunOptions, show_settings
from evenhand.findings.report import Report
from evenhand.instruments.counterfactual import preparation
from evenhand.instruments.counterfactual.data import PlaceboKind
from evenhand.instruments.counterfactual.instrument import CounterfactualOptions
from evenhand.instruments.counterfactual.preparation import (
    MarkedSpans,
    NeededPrompts,
    WrittenVersions,
)
from evenhand.methods import Method
from evenhand.scorers import Scorer

_USUAL = ("gender", "race")


async def counterfactual(
    prompts: str | Path | None = None,
    *,
    model: Model | None = None,
    method: Method | str = "default",
    attributes: Sequence[str] = _USUAL,
    attributes_file: str | Path | None = None,
    text_column: str | None = None,
    spans: str | Path | None = None,
    answers: str | Path | None = None,
    placebo: PlaceboKind = "other",
    place: Sequence[str] = (),
    places_file: str | Path | None = None,
    turns: Sequence[int] = (),
    repeats: int = 1,
    decision: str | None = None,
    favorable_outcome: str | None = None,
    number: bool = False,
    scorer: str | None = None,
    sample_seed: int = 0,
    scorers: Mapping[str, Scorer] | None = None,
    watch: Watch | None = None,
    **settings: Unpack[RunOptions],
) -> Report:
    """Ask each prompt about each group, and measure the effect beyond a placebo.

    Args:
        prompts: A file of prompts: .txt with one per line, .csv, or JSON lines.
        model: Model to evaluate. Not needed with `answers` or `replay`.
        method: How items are answered: a method name or a `Method`.
        attributes: Protected attributes to vary.
        attributes_file: A TOML file with your own attributes.
        text_column: Column of the prompts in a table. Defaults to `prompt`.
        spans: What varies in prompts without placeholders, as `counterfactual_find` writes it.
        answers: Stored answers to score instead: the lines of `counterfactual_versions`, each with
            its `answer`.
        placebo: What the effect must exceed: `"other"` is another name of the same group or an
            irrelevant trait, `"again"` the same text asked once more.
        place: Placements of the person around prompts that mention nobody: memory, system,
            signature, document, earlier.
        places_file: A TOML file with your own placements.
        turns: Turns of the conversations whose answers are measured. Defaults to all.
        repeats: How often each version is asked.
        decision: A regular expression with one group that finds the decision in an answer.
        favorable_outcome: The decision that is counted. Defaults to the most frequent.
        number: Read the first number of an answer.
        scorer: Name of a scorer to score the answers with too.
        sample_seed: Random seed for names and words.
        scorers: Additional scorers by name.
        watch: Receives progress events.
        **settings: Settings of the run, of which `out` is required: `RunOptions`.

    Returns:
        The report, with the excess over the placebo and the contrast of each two labels.

    Raises:
        UserError: If the settings are invalid or no item could be completed.

    Example:
        >>> report = evenhand.counterfactual(
        ...     "prompts.jsonl", decision=r"\\b(yes|no)\\b", model=model, out="runs/now"
        ... )
        >>> report["excess"].value
    """
    options = {
        "prompts": inputs.path_of(prompts),
        "text_column": text_column,
        "attributes": _together(attributes),
        "attributes_file": inputs.path_of(attributes_file),
        "spans": inputs.path_of(spans),
        "answers": inputs.path_of(answers),
        "placebo": placebo,
        "place": _together(place) or None,
        "places_file": inputs.path_of(places_file),
        "turns": ",".join(map(str, turns)) or None,
        "repeats": repeats,
        "decision": decision,
        "favorable_outcome": favorable_outcome,
        "number": number,
        "scorer": scorer,
        "sample_seed": sample_seed,
    }
    return await measure(
        "counterfactual",
        model=model,
        method=method,
        options=options,
        scorers=scorers,
        watch=watch,
        **settings,
    )


async def counterfactual_find(
    prompts: str | Path,
    out: str | Path,
    *,
    attributes: Sequence[str] = _USUAL,
    attributes_file: str | Path | None = None,
    text_column: str | None = None,
) -> MarkedSpans:
    """Mark in plain prompts what would change, as `evenhand counterfactual --find` does.

    Args:
        prompts: A file of prompts.
        out: A new file of spans. Look at it, and give it as `spans`.
        attributes: Protected attributes to vary.
        attributes_file: A TOML file with your own attributes.
        text_column: Column of the prompts in a table. Defaults to `prompt`.

    Returns:
        The file, and the number of spans and prompts.

    Raises:
        UserError: If the prompts cannot be read, or `out` exists.

    Example:
        >>> evenhand.counterfactual_find("prompts.txt", "spans.jsonl").spans
    """
    options = CounterfactualOptions(
        prompts=Path(prompts),
        text_column=text_column,
        attributes=_together(attributes),
        attributes_file=inputs.path_of(attributes_file),
    )
    return await asyncio.to_thread(preparation.mark_spans, options, Path(out))


async def counterfactual_versions(
    prompts: str | Path,
    out: str | Path,
    *,
    attributes: Sequence[str] = _USUAL,
    attributes_file: str | Path | None = None,
    text_column: str | None = None,
    spans: str | Path | None = None,
    placebo: PlaceboKind = "other",
    place: Sequence[str] = (),
    places_file: str | Path | None = None,
    repeats: int = 1,
    sample_seed: int = 0,
) -> WrittenVersions:
    """Write all versions that are to be asked, as `evenhand counterfactual --versions-out` does.

    Args:
        prompts: A file of prompts.
        out: A new file of versions. Fill in each `answer`, and give it as `answers`.
        attributes: Protected attributes to vary.
        attributes_file: A TOML file with your own attributes.
        text_column: Column of the prompts in a table. Defaults to `prompt`.
        spans: What varies in prompts without placeholders, as `counterfactual_find` writes it.
        placebo: `"other"` words of the same group, or the same text `"again"`.
        place: Placements of the person around prompts that mention nobody.
        places_file: A TOML file with your own placements.
        repeats: How often each version is asked.
        sample_seed: Random seed for names and words.

    Returns:
        The file, the number of versions, and what is left out and why.

    Raises:
        UserError: If the prompts cannot be changed, or `out` exists.

    Example:
        >>> evenhand.counterfactual_versions("prompts.jsonl", "versions.jsonl").versions
    """
    options = CounterfactualOptions(
        prompts=Path(prompts),
        text_column=text_column,
        attributes=_together(attributes),
        attributes_file=inputs.path_of(attributes_file),
        spans=inputs.path_of(spans),
        placebo=placebo,
        place=_together(place) or None,
        places_file=inputs.path_of(places_file),
        repeats=repeats,
        sample_seed=sample_seed,
    )
    return await asyncio.to_thread(preparation.write_versions, options, Path(out))


async def counterfactual_plan(
    excess: float,
    *,
    attributes: Sequence[str] = _USUAL,
    attributes_file: str | Path | None = None,
) -> NeededPrompts:
    """Find how many prompts show an excess, as `evenhand counterfactual --plan` does.

    Args:
        excess: Share of decisions that changes with the group beyond the placebo.
        attributes: Protected attributes to vary.
        attributes_file: A TOML file with your own attributes.

    Returns:
        The number of prompts and attributes.

    Raises:
        UserError: If no number of prompts would show it.

    Example:
        >>> evenhand.counterfactual_plan(0.05).prompts
    """
    options = CounterfactualOptions(
        attributes=_together(attributes), attributes_file=inputs.path_of(attributes_file)
    )
    return await asyncio.to_thread(preparation.plan_prompts, options, excess)


def _together(attributes: Sequence[str]) -> str:
    """The names with commas between, as an option has them."""
    return attributes if isinstance(attributes, str) else ",".join(attributes)


show_settings(counterfactual)
