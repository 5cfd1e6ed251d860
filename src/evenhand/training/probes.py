"""What a reward model is asked before it may drive reinforcement learning, and the gate before.

It sees held-out pairs as they are, and the same answers changed in ways that make them no better:
behind another prompt, longer, with a role opener; and in their place answers that are worth
nothing. What follows from the rewards is said in `metrics.reward_probes` and `instruments.reward`.

Its certificate lies in the folder of the reward model and holds the checksums of every file that
shapes a reward. So an audit of other weights, or of another chat template, does not count.
"""

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any, Self

from pydantic import TypeAdapter

from evenhand.core.errors import UserError
from evenhand.core.package_data import read_toml
from evenhand.findings.certificate import Certificate, CertificateRequirements, why_not
from evenhand.statistics.metrics.reward_probes import FEWEST_TOPICS
from evenhand.training import data
from evenhand.training.debates.pairs import has_opener, without_opener
from evenhand.training.debates.splits import in_turn
from evenhand.training.folders import sha256_of_file

BIASED_TAIL = "good_with_biased_tail"
NEUTRAL_TAIL = "biased_with_neutral_tail"

_FAR_LONGER = 1.5  # ours: what an answer with filler is at least, against the other answer


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeKind:
    """One kind of worthless answer, in several wordings."""

    kind: str
    says: str
    wordings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeTexts:
    version: int
    keys: tuple[ProbeKind, ...]
    openers: tuple[str, ...]
    fillers: tuple[str, ...]
    neutral_tails: tuple[str, ...]

    @classmethod
    def shipped(cls) -> Self:
        return TypeAdapter(cls).validate_python(read_toml(__package__, "probes.toml"))

    def said(self) -> dict[str, str]:
        """Each kind of answer that is tried in place of the good one, in words."""
        return {
            **{key.kind: key.says for key in self.keys},
            NEUTRAL_TAIL: "the biased answer with a fair sentence behind it",
            BIASED_TAIL: "the good answer with the biased one behind it",
        }

    def opened(self, answer: str, role: str, number: int) -> str:
        """Add a role opener to an answer, unless it has one.

        Args:
            answer: The answer; an empty one stays empty.
            role: The role of the debate, whose opener is recognized.
            number: Chooses the opener; it may exceed their number.

        Returns:
            The answer with an opener.
        """
        if not answer.strip() or has_opener(answer, role):
            return answer
        return f"{self.openers[number % len(self.openers)]} {_lowered(answer)}"

    def filled(self, answer: str, other: str) -> str:
        """With filler behind it, one sentence at least, until it is far longer than the other."""
        for sentence in cycle(self.fillers):
            answer = f"{answer} {sentence}".strip()
            if len(answer) >= _FAR_LONGER * len(other):
                return answer
        raise AssertionError("a cycle has no end")


def unopened(answer: str, role: str) -> str:
    """Without its role opener, if it has one and says more than that."""
    return without_opener(answer, role) or answer


def _lowered(answer: str) -> str:
    """As it goes on behind a comma. "I" stays, and so does a word in capitals."""
    first = answer.split(maxsplit=1)[0]
    if first.startswith(("I'", "I’")) or first[:2].isupper() or first == "I":
        return answer
    return answer[0].lower() + answer[1:]


Messages = Sequence[Mapping[str, str]]
Score = Callable[[Sequence[Messages], Sequence[str]], Sequence[float]]
KEY = "key:"  # begins the name of what stands in the place of the good answer

_Question = tuple[int, str]  # the first pair with this prompt, and the answer to it
_BATCH = 64  # texts that are scored at once
_PADDED = 16  # answers that padding is tried on


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbePair:
    prompt: Messages
    chosen: str
    rejected: str
    topic: str
    bias_type: str
    role_chosen: str = ""
    role_rejected: str = ""

    @classmethod
    def of(cls, row: data.Row) -> Self:
        """From a row of a pairs folder."""
        return cls(
            prompt=row["prompt"],
            chosen=data.response(row, "chosen"),
            rejected=data.response(row, "rejected"),
            topic=row["topic"],
            bias_type=row["bias_type"],
            role_chosen=row["role_chosen"] or "",
            role_rejected=row["role_rejected"] or "",
        )


def held_out(folder: Path) -> list[ProbePair]:
    """The test side of a pairs folder, all bias types."""
    pairs = [ProbePair.of(row) for row in data.held_out(folder)]
    if not pairs:
        raise UserError(
            f"{folder} has no held-out pairs (*/test-*.parquet), and a reward model must be "
            "audited on topics that it was not trained on. Create the pairs with --test-share."
        )
    return pairs


def drawn(pairs: list[ProbePair], most: int) -> list[ProbePair]:
    return in_turn(pairs, lambda pair: pair.topic, most)


class Probes:
    """Every text that a reward model is asked about, by pair and by name: the two answers of a
    pair, the same answers changed, and under `key:KIND:WORDING` what stands in the place of the
    good one. A text that several of them need is scored once."""

    def __init__(self, pairs: Sequence[ProbePair], texts: ProbeTexts) -> None:
        self._pairs = pairs
        self._columns = {**_variants(pairs, texts), **_keys(pairs, texts)}
        questions = (question for column in self._columns.values() for question in column)
        self._longest = max(questions, key=lambda question: len(question[1]))
        self._rewards: dict[_Question, float] = {}

    def scores(self, position: int, score: Score) -> dict[str, float]:
        """Return the rewards that one pair needs, by name. The first pairs are also scored by
        themselves (`alone`) and together with the longest text of all (`beside_longer`)."""
        questions = {name: column[position] for name, column in self._columns.items()}
        self._ask([q for q in dict.fromkeys(questions.values()) if q not in self._rewards], score)
        rewards = {name: self._rewards[question] for name, question in questions.items()}
        return rewards | (self._padded(position, score) if position < _PADDED else {})

    def _ask(self, questions: Sequence[_Question], score: Score) -> None:
        # Texts of one length together: little is padded.
        ordered = sorted(questions, key=lambda question: len(question[1]))
        for start in range(0, len(ordered), _BATCH):
            part = ordered[start : start + _BATCH]
            prompts = [self._pairs[prompt].prompt for prompt, _ in part]
            scores = score(prompts, [text for _, text in part])
            for question, reward in zip(part, scores, strict=True):
                self._rewards[question] = _a_number(reward, question[1])

    def _padded(self, position: int, score: Score) -> dict[str, float]:
        pair, (index, longest) = self._pairs[position], self._longest
        alone = score([pair.prompt], [pair.chosen])[0]
        together = score([pair.prompt, self._pairs[index].prompt], [pair.chosen, longest])[0]
        both = {"alone": alone, "beside_longer": together}
        return {name: _a_number(reward, pair.chosen) for name, reward in both.items()}


def _variants(pairs: Sequence[ProbePair], texts: ProbeTexts) -> dict[str, list[_Question]]:
    """The answers of each pair, as they are and changed."""
    prompts = _prompts(pairs)
    columns: dict[str, list[str]] = {
        "chosen": [pair.chosen for pair in pairs],
        "rejected": [pair.rejected for pair in pairs],
        "chosen_filled": [texts.filled(pair.chosen, pair.rejected) for pair in pairs],
        "rejected_filled": [texts.filled(pair.rejected, pair.chosen) for pair in pairs],
        "chosen_twice": [f"{pair.chosen} {pair.chosen}" for pair in pairs],
    }
    roles = {
        "chosen": [pair.role_chosen for pair in pairs],
        "rejected": [pair.role_rejected for pair in pairs],
    }
    for side, role_names in roles.items():
        spoken = list(zip(columns[side], role_names, strict=True))
        columns[f"{side}_unopened"] = [unopened(text, role) for text, role in spoken]
        columns[f"{side}_opened"] = [
            texts.opened(*entry, number) for number, entry in enumerate(spoken)
        ]
    variants = {name: list(zip(prompts, answers, strict=True)) for name, answers in columns.items()}
    elsewhere = _elsewhere(pairs, prompts)
    if elsewhere is not None:
        for side in roles:
            variants[f"{side}_elsewhere"] = list(zip(elsewhere, columns[side], strict=True))
    return variants


def _keys(pairs: Sequence[ProbePair], texts: ProbeTexts) -> dict[str, list[_Question]]:
    """What stands in the place of the good answer, by kind and wording."""
    prompts = _prompts(pairs)
    questions = {
        f"{KEY}{key.kind}:{wording}": [(prompt, wording) for prompt in prompts]
        for key in texts.keys
        for wording in key.wordings
    }
    for tail in texts.neutral_tails:
        questions[f"{KEY}{NEUTRAL_TAIL}:… {tail}"] = [
            (prompt, f"{pair.rejected} {tail}") for prompt, pair in zip(prompts, pairs, strict=True)
        ]
    questions[f"{KEY}{BIASED_TAIL}:"] = [
        (prompt, f"{pair.chosen} {pair.rejected}")
        for prompt, pair in zip(prompts, pairs, strict=True)
    ]
    return questions


def _prompts(pairs: Sequence[ProbePair]) -> list[int]:
    """For each pair the first one with the same prompt."""
    first: dict[str, int] = {}
    keys = [repr([dict(message) for message in pair.prompt]) for pair in pairs]
    return [first.setdefault(key, index) for index, key in enumerate(keys)]


def _elsewhere(pairs: Sequence[ProbePair], prompts: Sequence[int]) -> list[int] | None:
    """For each pair a prompt of the next topic; None if there is only one topic."""
    first: dict[str, int] = {}
    for pair, prompt in zip(pairs, prompts, strict=True):
        first.setdefault(pair.topic, prompt)
    if len(first) < 2:
        return None
    topics = list(first)
    following = dict(zip(topics, [*topics[1:], topics[0]], strict=True))
    return [first[following[pair.topic]] for pair in pairs]


def _a_number(reward: float, text: str) -> float:
    """Refuse NaN and infinity: they beat nothing and move nothing, so that checks would pass."""
    if not math.isfinite(reward):
        raise UserError(
            f"The reward model gives {reward} to {text[:60]!r}, so its weights are broken. Train "
            "it again with a lower learning rate."
        )
    return float(reward)


CERTIFICATE_FILE = "reward-certificate.json"
KIND = "reward"
CHECKS = frozenset((
    "accuracy", "gap", "longer_wins", "shorter_wins", "length", "repetition", "padding",
    "role_opener_chosen", "role_opener_rejected",
    *(f"key:{kind}" for kind in ProbeTexts.shipped().said()),
))  # fmt: skip

# The scale in reward_scale.json moves all rewards alike, and so changes no preference.
_SHAPING = (
    "*.safetensors",
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
)


def require_passed(reward_folder: Path, force: bool) -> str:
    """Refuse a reward model whose own audit did not pass.

    Args:
        reward_folder: The folder of the model.
        force: Whether to train against it all the same.

    Returns:
        What belongs into the record of the training: that it passed, or what `force` went past.

    Raises:
        UserError: Without a certificate that passes, unless forced.
    """
    objection = _objection(reward_folder)
    if objection is None:
        return "the reward model passed its audit"
    if force:
        return f"forced, although {objection}"
    raise UserError(
        f"{objection}. Audit it: `evenhand audit reward --weights {reward_folder} --pairs PAIRS "
        "--out RUN`. If the audit is inconclusive, add pairs on more topics. If it fails, train "
        "on better pairs. To skip it, pass --force."
    )


def _objection(folder: Path) -> str | None:
    """Why this reward model may not be used; None if it may."""
    file = folder / CERTIFICATE_FILE
    if not file.is_file():
        return f"{folder} has no certificate of an audit"
    try:
        certificate = Certificate.from_bytes(file.read_bytes(), str(file))
    except UserError as problem:
        return str(problem)
    expected = CertificateRequirements(
        kind=KIND, model=identity_of(folder), method=method(), prompts={}, checks=CHECKS
    )
    reason = why_not(certificate, expected)
    if reason is not None:
        return f"{file} {reason}{_changed(folder, certificate.judge.described)}"
    topics = certificate.benchmark.get("topics", 0)
    if certificate.state != "pass":
        return f"the certificate of {folder} says {certificate.state}{certificate.decided_by}"
    if topics < FEWEST_TOPICS:
        return f"{folder} was audited on {topics} topics, and {FEWEST_TOPICS} are the least"
    return None


def _changed(folder: Path, then: dict[str, Any]) -> str:
    now = checksums_of(folder)
    changed = sorted(name for name in {*then, *now} if then.get(name) != now.get(name))
    return f" ({', '.join(changed)} changed since)" if changed else ""


def method() -> dict[str, Any]:
    """How a reward model is audited, as its certificate names it."""
    return {"name": KIND, "settings": {"texts": ProbeTexts.shipped().version}}


def identity_of(folder: Path) -> str:
    """One checksum of every file that shapes a reward."""
    lines = (f"{name}\0{sha256}\n" for name, sha256 in checksums_of(folder).items())
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def sha256_of(folder: Path) -> str:
    """Of all tables of a pairs folder, with their names."""
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.parquet")):
        digest.update(f"{file.relative_to(folder).as_posix()}\0{sha256_of_file(file)}\n".encode())
    return digest.hexdigest()


def checksums_of(folder: Path) -> dict[str, str]:
    """Of every file that shapes a reward, by its name."""
    files = {file for pattern in _SHAPING for file in folder.glob(pattern)}
    return {file.name: sha256_of_file(file) for file in sorted(files)}
