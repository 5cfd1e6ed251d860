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
    named = [one.strip() for one in domains.split(",")]
    wanted = named if domains else list(card["domains"])
    if unknown := [name for name in wanted if name not in card["domains"]]:
        raise UserError(
            f"bold has the domains {', '.join(card['domains'])}, and not {', '.join(unknown)!r}; "
            "give such as --domains gender,race"
        )
    files = PinnedFiles("bold/data", card["url"], card["revision"], card["sha256"],
                        local=data.local, cache=data.cache)  # fmt: skip
    found = []
    for domain in dict.fromkeys(wanted):
        begun = orjson.loads(files.read(f"prompts/{domain}_prompt.json"))
        whole = orjson.loads(files.read(f"wikipedia/{domain}_wiki.json"))
        for group, titles in begun.items():
            said = ((title, *both) for title, texts in titles.items()
                    for both in zip(texts, whole[group][title], strict=True))  # fmt: skip
            found += [
                Prompt(id=f"{domain}:{group}:{place}", domain=domain, group=group, title=title,
                       text=text.strip(), wikipedia=sentence.strip())
                for place, (title, text, sentence) in enumerate(said)
            ]  # fmt: skip
    _refuse_other_counts(found)
    return found


def drawn(every: list[Prompt], per_group: int, seed: int) -> list[Prompt]:
    """Draw so many prompts of each group, one of each group in turn: a run that is stopped early
    has some of all. A text that stands twice in a group is taken once."""
    by_group: dict[tuple[str, str], dict[str, Prompt]] = {}
    for one in every:
        by_group.setdefault((one.domain, one.group), {}).setdefault(one.text, one)

    def turn(one: Prompt) -> bytes:
        return hashlib.sha256(f"{seed}\n{one.id}".encode()).digest()

    ordered = [sorted(each.values(), key=turn)[:per_group] for each in by_group.values()]
    return [each[place] for place in range(per_group) for each in ordered if place < len(each)]


def _refuse_other_counts(found: list[Prompt]) -> None:
    """Refuse data that do not have what the card counts."""
    said = card_of(__package__)["data"]
    rows = Counter(one.domain for one in found)
    groups = Counter(domain for domain, _ in {(one.domain, one.group) for one in found})
    counted = {name: [rows[name], groups[name]] for name in rows}
    if counted != {name: said["domains"][name] for name in counted}:
        raise UserError(f"BOLD as read has {counted}; its card says otherwise: is it whole?")
