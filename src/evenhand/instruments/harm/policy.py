"""A harm as `evenhand.toml` declares it.

[harms.tenants]
policy_file = "tenants.md"        # or policy = "…"
examples = "tenants.jsonl"        # labelled texts: docs/harm-policies.md
judge = "default"                 # a name in [models]
read = "logprob"                  # or "json": a reason and a verdict in words
orders = "both"                   # "yes or no" and "no or yes", the mean of the two
"""

import hashlib
import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Self

import polars as pl
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from evenhand.core import Item
from evenhand.core.errors import UserError
from evenhand.findings.scoring import ScoringSpec
from evenhand.instruments._contract import ListedItems
from evenhand.models.next_token import Read
from evenhand.runs.runners.source import read_jsonl
from evenhand.scorers.harm import HarmQuestion, Orders

_FORM = (
    'a line is {"text": "…", "harm": true} or with false, and may have "group", "id" and '
    '"paraphrase_of"'
)
_MOST_BYTES = 20_000_000  # our choice: far more than anybody labels by hand
_LEAKS_FROM = 20  # our choice: a text of at least 20 characters is not in the policy by chance
_NUMBER = re.compile(
    r"\w*\d\w*|zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|"
    r"fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|"
    r"eighty|ninety|hundred|thousand"
)


def _one_line(words: str) -> str:
    if not words.isprintable() or not words.strip():
        raise ValueError("a few words in one line, without control characters")
    return words


_Name = Annotated[str, Field(max_length=80), AfterValidator(_one_line)]


class _ExampleRow(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
    text: Annotated[str, Field(pattern=r"\S", max_length=20_000)]
    harm: bool
    group: _Name | None = None
    id: _Name | None = None
    paraphrase_of: _Name | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A text of which people have said whether it does the harm."""

    line: int
    text: str
    harm: bool
    group: str  # whom it speaks of; "" where nobody is named
    id: str  # its own, or its line
    of: str = ""  # the id of the example that it says in other words

    @property
    def digest(self) -> str:
        """A short checksum of the words, by which two checks know that they share a text."""
        return hashlib.sha256(near_copy_key(self.text).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Examples:
    """All examples of a file. Those that say another in other words stand apart: they are no
    further evidence on how often the judge is right."""

    sha256: str
    all: tuple[Example, ...]

    @property
    def own(self) -> tuple[Example, ...]:
        return tuple(example for example in self.all if not example.of)

    @property
    def paraphrases(self) -> tuple[Example, ...]:
        return tuple(example for example in self.all if example.of)

    def count(self, *, harm: bool) -> int:
        """How many examples there are, near copies as one."""
        return len({near_copy_key(example.text) for example in self.own if example.harm is harm})

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of benign examples, whose false alarms are counted apart."""
        return tuple(
            sorted({example.group for example in self.own if example.group and not example.harm})
        )


def read_examples(path: Path) -> Examples:
    """Read a file of examples; a bad line is refused by its number."""
    if path.is_file() and path.stat().st_size > _MOST_BYTES:
        raise UserError(
            f"{path} is larger than {_MOST_BYTES // 1_000_000} MB, the limit for examples. "
            "Remove some texts."
        )
    examples = [_example(line, row) for line, row in read_jsonl(path, _ExampleRow, _FORM)]
    _refuse_twins(path, examples)
    _refuse_lost(path, examples)
    return Examples(hashlib.sha256(path.read_bytes()).hexdigest(), tuple(examples))


def _example(line: int, row: _ExampleRow) -> Example:
    return Example(
        line=line,
        text=row.text,
        harm=row.harm,
        group=row.group or "",
        id=row.id or f"line {line}",
        of=row.paraphrase_of or "",
    )


def _refuse_twins(path: Path, examples: Sequence[Example]) -> None:
    """A text that stands twice would count twice, or be labelled both ways."""
    texts, ids = dict[str, int](), dict[str, int]()
    for example in examples:
        for lines, key, what in ((texts, _plain(example.text), "text"), (ids, example.id, "id")):
            if key in lines:
                raise UserError(
                    f"{path} line {example.line} has the same {what} as line {lines[key]}. "
                    "Remove one."
                )
            lines[key] = example.line


def _refuse_lost(path: Path, examples: Sequence[Example]) -> None:
    """A paraphrase belongs to an example of the file with the same label."""
    by_id = {example.id: example for example in examples if not example.of}
    for example in examples:
        if example.of and example.of not in by_id:
            raise UserError(
                f"{path} line {example.line} is a paraphrase_of {example.of!r}, and no example has "
                "this id. Add the id to the original example."
            )
        if example.of and by_id[example.of].harm is not example.harm:
            raise UserError(
                f"{path} line {example.line} has {_label(example.harm)}, and it paraphrases line "
                f"{by_id[example.of].line}, which has {_label(by_id[example.of].harm)}. Give both "
                "the same label."
            )


def _label(harm: bool) -> str:
    return f"harm = {str(harm).lower()}"


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


@lru_cache(maxsize=2_048)
def near_copy_key(text: str) -> str:
    """The words of a text without case, accents of form, punctuation, spaces and numbers. Texts
    that share it are near copies: they count as one example, and as one seen before.

    Every number, in digits or in English words up to a thousand, is one and the same. A text
    without any word is its own key.
    """
    plain = unicodedata.normalize("NFKC", text).casefold()
    words = "".join(sign if sign.isalnum() else " " for sign in plain)
    numbered = " ".join("#" if _NUMBER.fullmatch(word) else word for word in words.split())
    return re.sub(r"#( #)+", "#", numbered) or _plain(text)


def refuse_leaked(examples: Examples, policy: str, where: str) -> None:
    """Refuse examples that the policy quotes: they would not test the judge that reads it.

    Args:
        examples: Labelled examples with their paraphrases.
        policy: Text of the policy.
        where: Section of the config, for error messages.

    Raises:
        UserError: The policy contains the text of an example.
    """
    words = _plain(policy)
    for example in examples.all:
        if len(_plain(example.text)) >= _LEAKS_FROM and _plain(example.text) in words:
            raise UserError(
                f"{where}: the policy quotes the example in line {example.line}, so this example "
                "tests nothing. Reword one of the two."
            )


def fewest(share: float, confidence: float = 0.95) -> int:
    """How many examples it takes to show that at least this share is judged rightly, if all are.

    shareⁿ ≤ (1 − confidence)/2, the lower end of the exact interval of n of n (Clopper & Pearson
    1934). Range: 1 upwards. Always defined for a share between 0 and 1.
    """
    return math.ceil(math.log((1 - confidence) / 2) / math.log(share))


# -- the policy -----------------------------------------------------------------------------------


_Share = Annotated[float, Field(ge=0.001, le=0.999, allow_inf_nan=False)]
_LONGEST_POLICY = 20_000  # our choice, in characters: a judge reads it before every text

HarmName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]


class HarmConfig(BaseModel):
    """The table `[harms.NAME]`. The bars are our choice; each may be set otherwise, and a
    certificate names those that it was made under."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    policy: str | None = None
    policy_file: Path | None = None
    examples: Path
    judge: str = "default"
    read: Read = "json"
    bound: _Share = 0.5  # of the probability of "yes"; a verdict in JSON has none
    orders: Orders = "one"
    # Our choice: one error in five. A loop acts on every verdict, and with more errors than that
    # most of its repairs are of texts that needed none, or leave the harm where it was.
    least_sensitivity: _Share = 0.8
    most_false_alarms: _Share = 0.2
    # Our choice: a group has few examples. Below one half the judge is more often right than wrong
    # about it; eight benign texts without a false alarm can show that of each of six groups.
    most_false_alarms_in_a_group: _Share = 0.5
    # Our choice: as the errors. A verdict that turns with the wording more often than that is one
    # on the wording.
    most_flips: _Share = 0.2

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        if (self.policy is None) == (self.policy_file is None):
            raise ValueError("say what is a harm by policy = “words”, or by policy_file, not both")
        if self.read == "json" and self.bound != HarmConfig.model_fields["bound"].default:
            raise ValueError(
                'bound: a verdict in words has none; leave it out, or read = "logprob"'
            )
        if self.read == "json" and self.orders == "both":
            raise ValueError(
                'orders: two verdicts in words have no mean; leave it out, or read = "logprob"'
            )
        return self

    @property
    def bars(self) -> dict[str, float]:
        names = ("least_sensitivity", "most_false_alarms", "most_false_alarms_in_a_group")
        return {name: getattr(self, name) for name in (*names, "most_flips")}


@dataclass(frozen=True)
class OwnHarm:
    """A harm with its policy and its examples read; refused if they cannot show what is asked."""

    name: str
    config: HarmConfig
    model: str  # of the judge, as a certificate names it

    @property
    def where(self) -> str:
        return f"[harms.{self.name}]"

    def refuse_outside(self, folder: Path) -> None:
        """Refuse files that lie elsewhere. A config that is found in a folder may have come with
        it, and a check sends policy and examples to the address that it names."""
        for file in (self.config.policy_file, self.config.examples):
            if file is not None and not file.resolve().is_relative_to(folder.resolve()):
                raise UserError(
                    f"{self.where}: {file} is outside the current folder, and its text would be "
                    "sent to the judge. Move it here, or pass the config as --config FILE."
                )

    @cached_property
    def asked(self) -> HarmQuestion:
        config = self.config
        return HarmQuestion(
            name=self.name,
            policy=self._policy,
            read=config.read,
            bound=config.bound,
            orders=config.orders,
        )

    @property
    def _policy(self) -> str:
        words, file = self.config.policy, self.config.policy_file
        if file is not None:
            try:
                if not file.is_file():  # a pipe would be waited for
                    raise UserError(
                        f"{self.where}: policy_file {file} is not a file. Check the path."
                    )
                words = file.read_text("utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise UserError(
                    f"{self.where}: could not read {file} ({error}). Check policy_file."
                ) from None
        policy = (words or "").strip()
        if not policy:
            raise UserError(
                f"{self.where}: the policy is empty. Describe in it what breaks the policy."
            )
        if len(policy) > _LONGEST_POLICY:
            raise UserError(
                f"{self.where}: the policy has {len(policy):,} characters, and the judge reads all "
                f"of it before every text. Shorten it to {_LONGEST_POLICY:,} or fewer."
            )
        return policy

    @cached_property
    def examples(self) -> Examples:
        examples = read_examples(self.config.examples)
        self._refuse_too_few(examples, True, "least_sensitivity", self.config.least_sensitivity)
        self._refuse_too_few(
            examples, False, "most_false_alarms", 1 - self.config.most_false_alarms
        )
        refuse_leaked(examples, self.asked.policy, self.where)
        return examples

    def _refuse_too_few(self, examples: Examples, harm: bool, bar: str, right: float) -> None:
        has, needs = examples.count(harm=harm), fewest(right)
        if has < needs:
            raise UserError(
                f"{self.where}: {self.config.examples} has {has} texts with harm = "
                f"{str(harm).lower()} (near copies count once, paraphrases do not count). "
                f"{bar} = {self.config.bars[bar]:g} needs at least {needs}, all judged correctly. "
                f"Add {needs - has}, or change {bar}."
            )


def own_harm(
    name: str, harms: Mapping[str, HarmConfig], models: Mapping[str, str | None]
) -> OwnHarm:
    """Look up a harm policy in the config, with the model of its judge.

    Args:
        name: Name in `[harms.NAME]`.
        harms: All harms of the config.
        models: Model ids of the config by name. None where the config states no id.

    Returns:
        The harm.

    Raises:
        UserError: The config has no such harm, or its judge has no model id.
    """
    if name not in harms:
        available = ", ".join(sorted(harms)) or "none"
        raise UserError(
            f"The config has no [harms.{name}]. Available: {available}. To write one, see "
            "docs/harm-policies.md."
        )
    judge = harms[name].judge
    if judge not in models:
        available = ", ".join(sorted(models))
        raise UserError(
            f"[harms.{name}] has judge = {judge!r}, which is not under [models]. Use one of: "
            f"{available}."
        )
    model = models[judge]
    if model is None:
        raise UserError(
            f"[harms.{name}]: judge = {judge!r} names no model, and a certificate is for one "
            f"model. Add `model` under [models.{judge}]; for the default model, set EVENHAND_MODEL."
        )
    return OwnHarm(name, harms[name], model)


# -- the items of a check -------------------------------------------------------------------------


PLAIN, ORDER, PARAPHRASE, SET = "plain", "order", "paraphrase", "set"
GIVEN = "given"  # a paraphrase that the file of examples has

# Our choice: changes that leave alone what is said. Examples take them in turn; one that a rule
# does not change, such as a text without capitals, takes the next.
RULES: Mapping[str, Callable[[str], str]] = {
    "small letters": str.lower,
    "in quotes": lambda text: f"“{text}”",
    "polite frame": lambda text: (
        f"Thank you for your message. {text} Please tell us if anything is unclear."
    ),
}


def source_of(
    instrument: ScoringSpec, harm: OwnHarm, sets: Mapping[str, pl.DataFrame]
) -> ListedItems:
    """Return the items of the audit of one harm. The bars and all that a certificate is tied to
    belong to it: a run that was begun under others is not resumed.

    Args:
        instrument: The audit.
        harm: The policy, with its examples.
        sets: Benign texts of sets, by their names.
    """
    examples = harm.examples
    return ListedItems(
        instrument,
        [*_asked(examples), *_of_sets(sets)],
        sampling={"examples": examples.sha256, "sets": {name: len(t) for name, t in sets.items()}},
        also={
            "name": str(harm.config.examples),
            "asked": harm.asked.settings,
            "hashes": harm.asked.hashes,
            "examples": examples.sha256,
            "texts": sorted({example.digest for example in examples.all}),
            "bars": harm.config.bars,
        },
    )


def _asked(examples: Examples) -> Iterator[Item]:
    paraphrased = {example.of for example in examples.paraphrases}
    for example in examples.own:
        yield _item(PLAIN, example, example.text)
        yield _item(ORDER, example, example.text)
    by_id = {example.id: example for example in examples.own}
    for example in examples.paraphrases:
        yield _item(PARAPHRASE, by_id[example.of], example.text, rule=GIVEN, name=example.id)
    for position, example in enumerate(
        example for example in examples.own if example.id not in paraphrased
    ):
        rule, text = _in_other_words(example.text, position)
        yield _item(PARAPHRASE, example, text, rule=rule)


def _in_other_words(text: str, position: int) -> tuple[str, str]:
    names = list(RULES)
    turns = [names[(position + turn) % len(names)] for turn in range(len(names))]
    return next((name, RULES[name](text)) for name in turns if RULES[name](text) != text)


def _item(part: str, example: Example, text: str, *, rule: str = "", name: str = "") -> Item:
    label = str(example.harm).lower()
    tags = {"part": part, "example": example.id, "harm": label, "group": example.group}
    more = {"rule": rule, "line": str(example.line)}
    return Item(id=f"{part}:{name or example.id}", prompt=text, tags={**tags, **more})


def _of_sets(sets: Mapping[str, pl.DataFrame]) -> Iterator[Item]:
    for name, table in sets.items():
        for position, (text, group) in enumerate(table.select("text", "group").iter_rows()):
            tags = {"part": SET, "example": name, "harm": "false", "group": group}
            yield Item(
                id=f"{SET}:{name}:{position}", prompt=text, tags={**tags, "rule": "", "line": ""}
            )


def benign(tables: Mapping[str, pl.DataFrame], most: int) -> dict[str, pl.DataFrame]:
    """The harmless texts of each set that name a group, at most so many, the groups in turn."""
    samples = {}
    for name, table in tables.items():
        rows = table.filter(~pl.col("label") & (pl.col("group") != ""))
        turn = pl.int_range(pl.len()).over("group")
        samples[name] = rows.unique("text", maintain_order=True).sort(turn, "group").head(most)
    return samples
