"""BOLD as an instrument: do continuations speak worse of some groups than of others?"""

import hashlib
import re
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

import orjson
import polars as pl

from evenhand.core import Item
from evenhand.core.errors import UserError
from evenhand.findings.estimates import Section
from evenhand.findings.report import Report
from evenhand.findings.scoring import outcomes_of
from evenhand.instruments import _spoken_of
from evenhand.instruments._contract import (
    DataFolder,
    Grouping,
    ListedItems,
    card_of,
    option,
    thinking_option,
)
from evenhand.instruments._spoken_of import (
    GAP_BY,
    NEGATIVE_REGARD,
    REFUSAL,
    REFUSED,
    SPOKEN,
    TOXICITY,
    SpokenOf,
    mean,
)
from evenhand.instruments.files import InstrumentWords, PinnedFiles, names_in
from evenhand.instruments.realtoxicityprompts.continuations import continuation
from evenhand.instruments.realtoxicityprompts.data import prompt
from evenhand.runs.runners.source import Source
from evenhand.runs.store import RunReader
from evenhand.scorers.regard import WHO

_WORDS = InstrumentWords(__package__)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoldPrompt:
    """A prompt is the beginning of a sentence about somebody or something of a group."""

    id: str
    domain: str
    group: str
    title: str  # of the article
    text: str
    wikipedia: str  # the whole sentence


def prompts(data: DataFolder, domains: str = "") -> list[BoldPrompt]:
    """Read the prompts of some domains, said with commas, or all 23,679, in the data's order."""
    card = card_of(__package__)["data"]
    selected = names_in(domains) or list(card["domains"])
    if unknown := [name for name in selected if name not in card["domains"]]:
        raise UserError(
            f"unknown BOLD domain {', '.join(unknown)!r}. Available: "
            f"{', '.join(card['domains'])}. Example: --domains gender,race"
        )
    files = PinnedFiles.of("bold/data", card, data.local, data.cache)
    loaded = []
    for domain in dict.fromkeys(selected):
        begun = orjson.loads(files.read(f"prompts/{domain}_prompt.json"))
        sentences = orjson.loads(files.read(f"wikipedia/{domain}_wiki.json"))
        for group, titles in begun.items():
            entries = ((title, *both) for title, texts in titles.items()
                       for both in zip(texts, sentences[group][title], strict=True))  # fmt: skip
            loaded += [
                BoldPrompt(id=f"{domain}:{group}:{index}", domain=domain, group=group, title=title,
                           text=text.strip(), wikipedia=sentence.strip())
                for index, (title, text, sentence) in enumerate(entries)
            ]  # fmt: skip
    _refuse_other_counts(loaded)
    return loaded


def drawn(every: list[BoldPrompt], per_group: int | None, seed: int) -> list[BoldPrompt]:
    """Sample prompts of each group, in turn, so that a run stopped early has some of every group.

    A text that appears twice in a group counts once.

    Args:
        every: All prompts of the dataset.
        per_group: Largest number of prompts per group. None: all.
        seed: Seed for sampling.

    Returns:
        The prompts, one of each group in turn.
    """
    by_group: dict[tuple[str, str], dict[str, BoldPrompt]] = {}
    for each in every:
        by_group.setdefault((each.domain, each.group), {}).setdefault(each.text, each)

    def turn(prompt: BoldPrompt) -> bytes:
        return hashlib.sha256(f"{seed}\n{prompt.id}".encode()).digest()

    ordered = [sorted(each.values(), key=turn)[:per_group] for each in by_group.values()]
    most = max(map(len, ordered), default=0)
    return [each[index] for index in range(most) for each in ordered if index < len(each)]


def _refuse_other_counts(items: list[BoldPrompt]) -> None:
    """Refuse data that do not have what the card counts."""
    expected = card_of(__package__)["data"]
    rows = Counter(prompt.domain for prompt in items)
    groups = Counter(domain for domain, _ in {(prompt.domain, prompt.group) for prompt in items})
    counted = {name: [rows[name], groups[name]] for name in rows}
    if counted != {name: expected["domains"][name] for name in counted}:
        raise UserError(
            f"BOLD has {counted}, which differs from its dataset card. Check that the "
            "download is complete"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BoldOptions:
    # Our choice of 20: 43 groups, 852 calls with a short reply each.
    per_group: int | None = option(20, "Maximum number of prompts per group (43 groups).", least=2)
    domains: str = option("", "Domains, comma-separated, such as gender,race. Default: all five.")
    sample_seed: int = option(0, "Random seed for sampling prompts.")
    thinking: str | None = thinking_option()


class Bold(SpokenOf):
    """Measures how continuations of Wikipedia's sentences speak of people, by group within gender,
    race, ideology, religion and profession: negative regard and toxicity (Dhamala et al. 2021)."""

    name = "bold"
    title = "BOLD"
    clusters = "articles"
    facts: ClassVar = dict.fromkeys(
        ("domain", "group", "title", "beginning", "wikipedia"), pl.String()
    )
    options = BoldOptions
    every_item: ClassVar = {"per_group": None, "domains": ""}
    measures = (
        NEGATIVE_REGARD,
        mean("beyond_wikipedia", "negative regard beyond Wikipedia's sentence", better="zero",
             within=(-1, 1), lost=REFUSED),
        TOXICITY,
        REFUSAL,
        mean("words", "words a continuation", within=(0, float("inf")), unit="words"),
    )  # fmt: skip
    groups = (
        Grouping(column="domain", measures=(*SPOKEN, "beyond_wikipedia"), says_whom=False),
        Grouping(column="group", measures=(*SPOKEN, "beyond_wikipedia", "refusal")),
    )
    covered_by = "domain"

    def source(self, data: DataFolder, options: BoldOptions) -> Source:
        sample = drawn(prompts(data, options.domains), options.per_group, options.sample_seed)
        sampling = {"per_group": options.per_group, "domains": options.domains or "all",
                    "seed": options.sample_seed}  # fmt: skip
        also = {"prompt": {prompt().label: prompt().sha256}}
        version = self.card()["version"]
        return ListedItems(self, list(map(_item, sample)), sampling=sampling, version=version,
                           also=also)  # fmt: skip

    def outcomes(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The scores of each prompt with its continuation; null where there is none."""
        replies = rows.select("text", "beginning", "title").iter_rows()
        scored = _spoken_of.scored(rows, [_read(*row) for row in replies])
        sentences = rows.select("wikipedia", "title").iter_rows()
        wikipedia = _spoken_of.regard([hidden(*row) for row in sentences])
        return scored.with_columns(wikipedia=wikipedia).select(
            "item_id",
            "domain",
            "group",
            *SPOKEN,
            "wikipedia",
            "refused",
            "words",
            "state",
            beyond_wikipedia=pl.col("negative_regard") - pl.col("wikipedia"),
            cluster=pl.format("{}: {}", "group", "title"),
        )

    def says(self, report: Report) -> tuple[str, ...]:
        """The level, and the gaps that are shown."""
        return _spoken_of.said(report, "A continuation")

    def notes(self, report: Report, run: RunReader) -> tuple[str, ...]:
        return (*_spoken_of.DOUBTS, _WORDS("other_prompts"))

    def sections(self, report: Report, run: RunReader) -> tuple[Section, ...]:
        """The largest gap in each domain, as the model writes and as Wikipedia does."""
        labels = GAP_BY | {name: _WORDS(name) for name in ("wikipedia", "beyond_wikipedia")}
        rows = outcomes_of(self, run)
        floors = dict.fromkeys(labels, 0.0) | {"beyond_wikipedia": -1.0}
        gaps = _spoken_of.gaps(rows, "domain", "group", floors)
        return (_spoken_of.section(gaps, labels), _spoken_of.scored_by())


def _item(item: BoldPrompt) -> Item:
    (message,) = prompt().render({"text": item.text})
    tags = {"domain": item.domain, "group": item.group, "title": item.title, "beginning": item.text,
            "wikipedia": item.wikipedia}  # fmt: skip
    return Item(id=item.id, prompt=message.content, tags=tags)


def _read(text: str | None, beginning: str, title: str) -> _spoken_of.Read:
    """The prompt with its continuation: the prompt alone is not scored for it."""
    reply = "" if text is None else continuation(text, beginning)
    full_text = f"{beginning} {reply}"
    return _spoken_of.read(reply, full_text, hidden(full_text, title))


def hidden(text: str, title: str) -> str:
    """The text with "someone" in place of the words of the article's title, in any number."""
    words = [re.escape(word) for word in re.split(r"[\W_]+", title) if len(word) > 3]
    return (
        re.sub(rf"\b(?:{'|'.join(words)})s?\b", WHO, text, flags=re.IGNORECASE) if words else text
    )
