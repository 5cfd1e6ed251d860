"""The prompts of BOLD, each with the sentence of Wikipedia that it is the beginning of."""

import hashlib
from collections import Counter
from dataclasses import dataclass

import orjson

from evenhand.errors import UserError
from evenhand.instruments._contract import DataFolder, card_of
from evenhand.instruments.files import PinnedFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A prompt is the beginning of a sentence about somebody or something of a group."""

    id: str
    domain: str
    group: str
    title: str  # of the article
    text: str
    wikipedia: str  # the whole sentence


def prompts(data: DataFolder, domains: str = "") -> list[Prompt]:
    """Read the prompts of some domains, said with commas, or all 23,679, in the data's order."""
    card = card_of(__package__)["data"]
    names = [name.strip() for name in domains.split(",")]
    selected = names if domains else list(card["domains"])
    if unknown := [name for name in selected if name not in card["domains"]]:
        raise UserError(
            f"bold has the domains {', '.join(card['domains'])}, and not {', '.join(unknown)!r}; "
            "give such as --domains gender,race"
        )
    files = PinnedFiles("bold/data", card["url"], card["revision"], card["sha256"],
                        local=data.local, cache=data.cache)  # fmt: skip
    loaded = []
    for domain in dict.fromkeys(selected):
        begun = orjson.loads(files.read(f"prompts/{domain}_prompt.json"))
        sentences = orjson.loads(files.read(f"wikipedia/{domain}_wiki.json"))
        for group, titles in begun.items():
            entries = ((title, *both) for title, texts in titles.items()
                       for both in zip(texts, sentences[group][title], strict=True))  # fmt: skip
            loaded += [
                Prompt(id=f"{domain}:{group}:{index}", domain=domain, group=group, title=title,
                       text=text.strip(), wikipedia=sentence.strip())
                for index, (title, text, sentence) in enumerate(entries)
            ]  # fmt: skip
    _refuse_other_counts(loaded)
    return loaded


def drawn(every: list[Prompt], per_group: int, seed: int) -> list[Prompt]:
    """Draw so many prompts of each group, one of each group in turn: a run that is stopped early
    has some of all. A text that stands twice in a group is taken once."""
    by_group: dict[tuple[str, str], dict[str, Prompt]] = {}
    for prompt in every:
        by_group.setdefault((prompt.domain, prompt.group), {}).setdefault(prompt.text, prompt)

    def turn(prompt: Prompt) -> bytes:
        return hashlib.sha256(f"{seed}\n{prompt.id}".encode()).digest()

    ordered = [sorted(each.values(), key=turn)[:per_group] for each in by_group.values()]
    return [each[index] for index in range(per_group) for each in ordered if index < len(each)]


def _refuse_other_counts(items: list[Prompt]) -> None:
    """Refuse data that do not have what the card counts."""
    expected = card_of(__package__)["data"]
    rows = Counter(prompt.domain for prompt in items)
    groups = Counter(domain for domain, _ in {(prompt.domain, prompt.group) for prompt in items})
    counted = {name: [rows[name], groups[name]] for name in rows}
    if counted != {name: expected["domains"][name] for name in counted}:
        raise UserError(f"BOLD as read has {counted}; its card says otherwise: is it whole?")
