"""The versions of the user's prompts: templates with slots, or plain words with marked spans."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evenhand.instruments.swap.data import Design, Prompt, Role, designed, read_prompts
from evenhand.instruments.swap.families import Family, families
from evenhand.instruments.swap.pieces import outside_the_slots
from evenhand.instruments.swap.spans import read_spans
from evenhand.instruments.swap.versions import Refused, make


def families_named(names: str, own: Path | None) -> tuple[Family, ...]:
    """Give the families that are named with commas, and those of the user's own file."""
    return families(tuple(one.strip() for one in names.split(",") if one.strip()), own)


def designed_by(options: Any) -> Design:
    """Make every version of every prompt that these options name."""
    prompts = read_prompts(options.prompts, options.text_column)
    known = {one.name: one for one in families_named(options.families, options.own_families)}
    marked = {} if options.spans is None else read_spans(options.spans)

    def made(one: Prompt, family: str) -> tuple[Sequence[tuple[Role, str, str]], str] | str:
        told = outside_the_slots((one.task,), (), known[family])
        if told is not None:
            return f"in its task {told.reason}"
        found = make(
            one.prompt,
            known[family],
            seed=options.sample_seed,
            key=one.id,
            spans=marked.get(one.id, ()),
        )
        if isinstance(found, Refused):
            return found.reason
        there = {(each.role, each.label) for each in found.versions}
        for label in known[family].labels:
            if not {("group", label.name), ("placebo", label.name)} <= there:
                return "; ".join(found.left_out) or f"there is no version for {label.name!r}"
        texts = [(each.role, each.label, each.text) for each in found.versions]
        return texts, "; ".join(found.left_out).removeprefix("none: ")

    return designed(prompts, list(known), made, options.repeats)
