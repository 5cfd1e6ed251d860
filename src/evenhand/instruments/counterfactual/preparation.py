"""Preparation of a counterfactual test, without model calls: spans to review, prompt variants for
your own app, and the number of prompts."""

from dataclasses import dataclass
from pathlib import Path

import orjson

from evenhand.core.errors import UserError
from evenhand.core.new_files import write_new
from evenhand.instruments.counterfactual.data import read_prompts
from evenhand.instruments.counterfactual.instrument import CounterfactualOptions
from evenhand.instruments.counterfactual.measures import prompts_needed
from evenhand.instruments.counterfactual.spans import find, write_spans
from evenhand.instruments.counterfactual.versions import designed_by, families_named


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedSpans:
    """A file of spans, to be looked at and corrected before anything is asked."""

    file: Path
    spans: int
    prompts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenVersions:
    """A file of the versions that are to be asked, and what is left out of it and why."""

    file: Path
    versions: int
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededPrompts:
    """How many prompts show an excess in one of several families, 4 times in 5."""

    excess: float
    families: int
    prompts: int


def mark_spans(options: CounterfactualOptions, file: Path) -> MarkedSpans:
    """Mark in plain prompts what would be swapped, and write the spans.

    Args:
        options: The prompts and the families.
        file: A new file.

    Returns:
        The file, and how many spans it has.

    Raises:
        UserError: If the prompts are empty, or the file exists.
    """
    if options.prompts is None:
        raise UserError("--find requires a file of prompts")
    lexicon = families_named(options.attributes, options.attributes_file)
    read = read_prompts(options.prompts, options.text_column)
    prompts = {item.id: item.text for item in read}
    spans = {name: find(prompt, lexicon) for name, prompt in prompts.items()}
    write_spans(file, spans, prompts)
    return MarkedSpans(file=file, spans=sum(map(len, spans.values())), prompts=len(spans))


def write_versions(options: CounterfactualOptions, file: Path) -> WrittenVersions:
    """Write all versions that are to be asked.

    Args:
        options: The prompts, the families, the spans and the seed.
        file: A new file.

    Returns:
        The file, how many versions it has, and what is left out.

    Raises:
        UserError: If the prompts are empty, or the file exists.
    """
    if options.prompts is None:
        raise UserError("--versions-out requires a file of prompts")
    design = designed_by(options)
    lines = [orjson.dumps(version.described()) for version in design.asked]
    write_new(file, b"\n".join(lines) + b"\n")
    return WrittenVersions(file=file, versions=len(lines), left_out=tuple(design.said()))


def plan_prompts(options: CounterfactualOptions, excess: float) -> NeededPrompts:
    """Find how many prompts show an excess.

    Args:
        options: The families.
        excess: The share of decisions that changes with the group beyond the placebo.

    Returns:
        The number of prompts.
    """
    several = len(families_named(options.attributes, options.attributes_file))
    prompts = prompts_needed(excess, families=several)
    return NeededPrompts(excess=excess, families=several, prompts=prompts)
