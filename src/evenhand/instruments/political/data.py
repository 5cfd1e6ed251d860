"""The paired prompts: read, checked against the card, and sampled by topic."""

import csv
import hashlib
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from evenhand.core import Item
from evenhand.core.errors import UserError
from evenhand.instruments._contract import DataFolder
from evenhand.instruments.files import PinnedFiles, card_of

LEFT, RIGHT = "left", "right"
SIDES = (LEFT, RIGHT)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPair:
    """A pair is one template filled with two opposite stances."""

    id: str  # its number in the data, from 1
    prompts: tuple[str, str]  # of the left and of the right
    topic: str  # the pair of stances: its broad category and a number, such as "abortion/2"
    category: str
    subject: str  # one of seven, such as "policies"
    template: str
    partisan: bool

    def items(self) -> Iterator[Item]:
        """The prompt of each side."""
        for side, prompt in zip(SIDES, self.prompts, strict=True):
            yield Item(id=f"{self.id}:{side}", prompt=prompt, tags={**self._tags, "side": side})

    @property
    def _tags(self) -> dict[str, str]:
        return {
            "pair": self.id,
            "topic": self.topic,
            "category": self.category,
            "subject": self.subject,
            "template": self.template,
            "partisan": str(self.partisan).lower(),
        }


def prompt_pairs(data: DataFolder) -> list[PromptPair]:
    """Read all 1,350 pairs, in the order of the data."""
    pin = card_of(__package__)["data"]
    files = PinnedFiles.of("political_neutrality", pin, data.local, data.cache)
    text = files.read("eval_set.csv").decode()
    stances: dict[str, dict[tuple[str, str], int]] = {}
    pairs = []
    for number, row in enumerate(csv.DictReader(io.StringIO(text, newline="")), start=1):
        category = row["topic_name"]
        places = stances.setdefault(category, {})
        place = places.setdefault((row["stance_a"], row["stance_b"]), len(places) + 1)
        pairs.append(
            PromptPair(
                id=str(number),
                prompts=(row["prompt_a"], row["prompt_b"]),
                topic=f"{category}/{place}",
                category=category,
                subject=row["main_category"].lower().replace("_", " "),
                template=row["template"],
                partisan=row["partisan"] == "True",
            )
        )
    _refuse_other_counts(pairs)
    return pairs


def _refuse_other_counts(pairs: Sequence[PromptPair]) -> None:
    """Refuse data that do not have what the card counts."""
    expected = card_of(__package__)["data"]
    sizes = Counter(pair.topic for pair in pairs)
    counted = {
        "pairs": len(pairs),
        "topics": len(sizes),
        "partisan_topics": len({pair.topic for pair in pairs if pair.partisan}),
    }
    if {name: expected[name] for name in counted} != counted or set(sizes.values()) != {
        expected["per_topic"]
    }:
        raise UserError(
            f"The political pairs have {counted}, which differs from their dataset card. Check "
            "that the download is complete"
        )


def drawn(every: Sequence[PromptPair], per_topic: int, seed: int) -> list[PromptPair]:
    """Sample pairs of each topic, one of each topic in turn.

    A run that is stopped early thus has some of all topics.

    Args:
        every: All pairs of the dataset.
        per_topic: Number of pairs per topic.
        seed: Seed for sampling.

    Returns:
        The pairs in the order of asking.
    """

    def turn(pair: PromptPair) -> bytes:
        return hashlib.sha256(f"{seed}\n{pair.topic}\n{pair.template}".encode()).digest()

    by_topic: dict[str, list[PromptPair]] = {}
    for pair in every:
        by_topic.setdefault(pair.topic, []).append(pair)
    ordered = [sorted(each, key=turn)[:per_topic] for each in by_topic.values()]
    return [pair for each in zip_longest(*ordered) for pair in each if pair is not None]
