"""The versions of the user's prompts: templates with slots, or plain words with marked spans."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evenhand.instruments.swap.data import Role, SwapDesign, SwapPrompt, designed, read_prompts
from evenhand.instruments.swap.families import SwapFamily, families
from evenhand.instruments.swap.pieces import outside_the_slots
from evenhand.instruments.swap.spans import read_spans
from evenhand.instruments.swap.versions import RefusedPrompt, make


def families_named(names: str, file: Path | None) -> tuple[SwapFamily, ...]:
    """Give the families that are named with commas, and those of the user's own file."""
    return families(tuple(name.strip() for name in names.split(",") if name.strip()), file)


def designed_by(options: Any) -> SwapDesign:
    """Make every version of every prompt that these options name."""
    prompts = read_prompts(options.prompts, options.text_column)
    by_name = {
        family.name: family for family in families_named(options.families, options.own_families)
    }
    marked = {} if options.spans is None else read_spans(options.spans)

    def made(prompt: SwapPrompt, family: str) -> tuple[Sequence[tuple[Role, str, str]], str] | str:
        problem = outside_the_slots((prompt.task,), (), by_name[family])
        if problem is not None:
            return f"in its task {problem.reason}"
        result = make(
            prompt.prompt,
            by_name[family],
            seed=options.sample_seed,
            key=prompt.id,
            spans=marked.get(prompt.id, ()),
        )
        if isinstance(result, RefusedPrompt):
            return result.reason
        there = {(each.role, each.label) for each in result.versions}
        for label in by_name[family].labels:
            if not {("group", label.name), ("placebo", label.name)} <= there:
                return "; ".join(result.left_out) or f"there is no version for {label.name!r}"
        texts = [(each.role, each.label, each.text) for each in result.versions]
        return texts, "; ".join(result.left_out).removeprefix("none: ")

    return designed(prompts, list(by_name), made, options.repeats)
