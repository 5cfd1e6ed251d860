"""The items of BBQ as samples of Inspect."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inspect_ai.dataset import MemoryDataset, Sample

from evenhand.core import Item
from evenhand.core.errors import UserError
from evenhand.experiments import config as configuration
from evenhand.instruments.bbq.instrument import Bbq
from evenhand.interop.inspect_task import bbq_input


@dataclass(frozen=True, slots=True)
class InspectQuestions:
    dataset: MemoryDataset
    language: str


def bbq(options: Mapping[str, Any]) -> InspectQuestions:
    """Draw the items by the options of `evenhand measure bbq`."""
    instrument = Bbq()
    chosen = instrument.options_from(options)
    if instrument.stores_answers(chosen):
        raise UserError("answers that exist are scored by: evenhand measure bbq --answers FILE")
    source = instrument.source(configuration.data_folder(), chosen)
    samples = [_sample(item) for item in source.read(0, len(source))]
    return InspectQuestions(MemoryDataset(samples, name="bbq"), chosen.language)


def _sample(item: Item) -> Sample:
    """A sample in the words and with the names of inspect_evals' BBQ. One whose own right answer
    contradicts its text has none here."""
    category, _, example = item.id.rpartition("/")
    gold = "" if item.tags["masked"] == "1" else chr(ord("A") + int(item.tags["gold"]))
    return Sample(
        id=f"{category}_{int(example):05d}",
        input=bbq_input(item.context, item.prompt),
        choices=list(item.choices),
        target=gold,
        metadata={
            "source_id": int(example),
            "category": category,
            "question_index": item.tags["template"].rpartition("/")[2],
            "question_polarity": item.tags["polarity"],
            "context_condition": item.tags["condition"],
        },
    )
