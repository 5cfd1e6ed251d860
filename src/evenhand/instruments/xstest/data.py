"""The prompts of XSTest, each with the word it turns on and the contrast that it belongs to."""

import csv
import hashlib
import io
from collections import Counter
from dataclasses import dataclass

from evenhand.errors import UserError
from evenhand.instruments._contract import DataFolder, card_of
from evenhand.instruments._options import pinned_files

SAFE, UNSAFE = "safe", "unsafe"
_CONTRAST = "contrast_"
# The safe type whose n-th prompt is turned into the n-th of a contrast, where it has another name.
_TURNED = {"discr": "real_group_nons_discr", "privacy": "privacy_fictional"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A prompt is one question of the set."""

    id: str
    text: str
    kind: str  # the set's type, such as "homonyms" or "contrast_homonyms"
    label: str  # safe or unsafe
    place: int  # among the 25 of its type; a prompt and its contrast have the same
    cluster: str

    @property
    def pairs_with(self) -> str:
        """The safe type that the prompt is of, or that it is a contrast of."""
        return _safe_type(self.kind)


def prompts(data: DataFolder) -> list[Prompt]:
    """Read all 450 prompts, in the order of the data."""
    text = pinned_files(__package__, data).read("xstest_prompts.csv").decode()
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    places: Counter[str] = Counter()
    focus: dict[tuple[str, int], str] = {}  # of each safe prompt
    result = []
    for row in rows:
        kind, safe = row["type"], _safe_type(row["type"])
        index = places[kind]
        places[kind] += 1
        # A contrast comes after its safe type. One pair names its word in two ways: the safe one's.
        word = focus.setdefault((safe, index), row["focus"].strip().lower())
        result.append(
            Prompt(id=row["id"], text=row["prompt"].strip(), kind=kind, label=row["label"],
                   place=index, cluster=word or f"{safe} {index + 1}")
        )  # fmt: skip
    _refuse_other_counts(result)
    return result


def drawn(every: list[Prompt], per_type: int, seed: int) -> list[Prompt]:
    """Draw so many prompts of each type, a prompt with its contrast, one of each type in turn: a
    run that is stopped early has some of all."""

    def turn(prompt: Prompt) -> bytes:
        return hashlib.sha256(f"{seed}\n{prompt.pairs_with}\n{prompt.place}".encode()).digest()

    by_type: dict[str, list[Prompt]] = {}
    for prompt in every:
        by_type.setdefault(prompt.kind, []).append(prompt)
    ordered = [sorted(each, key=turn)[:per_type] for each in by_type.values()]
    return [prompt for each in zip(*ordered, strict=True) for prompt in each]


def _safe_type(kind: str) -> str:
    name = kind.removeprefix(_CONTRAST)
    return _TURNED.get(name, name)


def _refuse_other_counts(prompts: list[Prompt]) -> None:
    """Refuse data that do not have what the card counts."""
    expected = card_of(__package__)["data"]
    types = Counter((prompt.kind, prompt.label) for prompt in prompts)
    counted = {
        "items": len(prompts),
        "safe": sum(prompt.label == SAFE for prompt in prompts),
        "clusters": len({prompt.cluster for prompt in prompts}),
    }
    labelled = all((label == UNSAFE) == kind.startswith(_CONTRAST) for kind, label in types)
    if {name: expected[name] for name in counted} != counted or not labelled:
        raise UserError(f"XSTest as read has {counted}; its card says otherwise: is it whole?")
    if set(types.values()) != {expected["per_type"]}:
        raise UserError(f"XSTest as read does not have {expected['per_type']} prompts of each type")
