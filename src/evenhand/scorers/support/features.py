"""A claim as numbers: what the context says of the one who was chosen, and of the others. Before
that, a text as sentences, parts of sentences and words, and how near two words are in meaning."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from evenhand.core.package_data import word_sets
from evenhand.scorers.offline.network import Floats, PackedModel

_LISTS = word_sets(__package__, "english.toml")

_TITLES = "".join(rf"(?<!\b{title}\.)" for title in ("Mr", "Ms", "Mrs", "Dr", "St"))
_SENTENCE = re.compile(rf"(?<=[.!?]){_TITLES}[\"”’')\]]*\s+")
_WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*|[,;:—–]")
_STOPS = frozenset(",;:—–")
BREAKS = _LISTS["breaks"]
NEGATORS = _LISTS["negators"]
PRONOUNS = _LISTS["pronouns"]
_EMPTY_WORDS = _LISTS["empty_words"]
_ENDINGS = ("ing", "ied", "ies", "ed", "es", "ly", "er", "s", "e", "y")
_NEAR = 0.25  # our choice: below this cosine two words have nothing to do with each other


def sentences(text: str) -> list[str]:
    return [part for part in _SENTENCE.split(text.strip()) if part]


def words(text: str) -> list[str]:
    """Words in small letters, and the marks that part a sentence."""
    return _WORD.findall(text.lower().replace("’", "'"))


def is_mark(word: str) -> bool:
    return word in _STOPS


def denies(word: str) -> bool:
    return word in NEGATORS or word.endswith("n't")


def tells(word: str) -> bool:
    """Whether a word has content of its own."""
    return word not in _EMPTY_WORDS and not is_mark(word) and not denies(word)


@cache
def stem(word: str) -> str:
    """The word without its endings, roughly: "studies", "studied" and "study" are one."""
    word = word.removesuffix("'s")
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            bare = word[: -len(ending)]
            return bare[:-1] if len(bare) > 3 and bare[-1] == bare[-2] else stem(bare)
    return word


class WordSimilarity:
    """How near words are in meaning, by the word vectors of the offline scorer."""

    def __init__(self) -> None:
        self._seen: dict[str, Floats] = {}
        self._model = PackedModel()

    @cached_property
    def _table(self) -> Floats:
        """The vectors of all pieces, centred and of length 1."""
        table = self._model.weights.floats("words")
        return _unit(table - table.mean(0))

    def vector(self, word: str) -> Floats:
        vector = self._seen.get(word)
        if vector is None:
            vector = _unit(self._table[self._model.pieces.pieces(word) or [0]].mean(0))
            if len(self._seen) < 100_000:
                self._seen[word] = vector
        return vector

    def along(self, words: Sequence[str], direction: Floats) -> Floats:
        """How far each word lies along a direction."""
        if not words:
            return np.zeros(0, dtype=np.float32)
        return np.asarray(self.vectors(words) @ direction, dtype=np.float32)

    def vectors(self, words: Sequence[str]) -> Floats:
        return np.stack([self.vector(word) for word in words])

    def near(self, ours: Sequence[str], theirs: Sequence[str]) -> Floats:
        """Compare each of our words with each of theirs: 0 to 1, and 1 for equal stems."""
        if not ours or not theirs:
            return np.zeros((len(ours), len(theirs)), dtype=np.float32)
        cosines = self.vectors(ours) @ self.vectors(theirs).T
        near = np.clip((cosines - _NEAR) / (1 - _NEAR), 0, 1)
        same = np.array([stem(w) for w in ours])[:, None] == np.array([stem(w) for w in theirs])
        return np.asarray(np.where(same, 1.0, near), dtype=np.float32)


def _unit(vectors: Any) -> Floats:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-9), dtype=np.float32)


_ALIKE = 0.5  # our choice: how near a word must be to stand for one that the context lacks
_SAID = 2  # words after a mention from which on "and" begins a new part


_Piece = tuple[list[str], list[str], str]  # its words, who is named in it, who first


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a sentence, and who it is about."""

    words: tuple[str, ...]
    about: frozenset[str]  # of "chosen" and "other"
    first: str  # who is named first in it; "" if nobody is, and it goes on about the one before
    sentence: int


@dataclass(frozen=True, slots=True)
class ParsedContext:
    """A context in parts, and the stems in it by which the options are named."""

    parts: tuple[Clause, ...]
    names: frozenset[str]


def marks_of(answer: str, others: Sequence[str]) -> tuple[str, ...]:
    """The stems by which an answer is known: those that no other option has, if there are any."""
    stems = tuple(dict.fromkeys(stem(word) for word in words(answer) if tells(word)))
    shared = {stem(word) for other in others for word in words(other)}
    return tuple(mark for mark in stems if mark not in shared) or stems


def parts(
    context: str, chosen: str, others: Sequence[str], meanings: WordSimilarity
) -> ParsedContext:
    """Split a context into clauses, each with the options that it is about.

    A clause that names nobody may continue the one before it; then it is about the same.

    Args:
        context: The context of the question.
        chosen: The option whose support is asked.
        others: The other options.
        meanings: Finds words of the context that mean the same as those of an option.

    Returns:
        The clauses, and the words that name an option.
    """
    lines = [words(sentence) for sentence in sentences(context)]
    spellings = {"chosen": _spellings(chosen, others, lines, meanings)}
    apart = [(other, [chosen, *others[:i], *others[i + 1 :]]) for i, other in enumerate(others)]
    spelled = (_spellings(other, rest, lines, meanings) for other, rest in apart)
    spellings["other"] = frozenset[str]().union(*spelled) - spellings["chosen"]
    context_parts: list[Clause] = []
    for number, line in enumerate(lines):
        for piece, who, first in _cut(line, spellings):
            about = frozenset(who)
            if (
                not about
                and context_parts
                and (context_parts[-1].sentence == number or _refers(piece))
            ):
                about = context_parts[-1].about
            context_parts.append(Clause(tuple(piece), about, first, number))
    marks = [mark for option in (chosen, *others) for mark in marks_of(option, ())]
    return ParsedContext(
        tuple(context_parts), spellings["chosen"] | spellings["other"] | frozenset(marks)
    )


def _spellings(
    option: str, others: Sequence[str], lines: Sequence[Sequence[str]], meanings: WordSimilarity
) -> frozenset[str]:
    """The stems of the context that stand for an option; near words only if it has none."""
    marks = marks_of(option, others)
    there = frozenset(marks) & {stem(word) for line in lines for word in line}
    if there:
        return there
    ours = [word for word in words(option) if stem(word) in marks]
    theirs = sorted({word for line in lines for word in line if tells(word)})
    near = meanings.near(ours, theirs)
    nearest = [(row, int(row.argmax())) for row in near] if theirs else []
    return frozenset(stem(theirs[at]) for row, at in nearest if row[at] >= _ALIKE)


def _refers(piece: Sequence[str]) -> bool:
    return any(word in PRONOUNS for word in piece[:2])


def _cut(line: Sequence[str], spellings_by_role: dict[str, frozenset[str]]) -> list[_Piece]:
    """A sentence in parts: at marks, at words such as "while", and at an "and" that comes after
    something has been said of the one before it."""
    pieces: list[_Piece] = []
    piece: list[str] = []
    who: list[str] = []
    since = 0
    for word in line:
        joins = word in ("and", "or") and (not who or since < _SAID)
        if is_mark(word) or word in BREAKS or (word in ("and", "or") and not joins):
            if piece:
                pieces.append((piece, who, who[0] if who else ""))
            piece, who, since = ([] if is_mark(word) else [word]), [], 0
            continue
        piece.append(word)
        since += 1
        for name, spellings in spellings_by_role.items():
            if stem(word) in spellings:
                who, since = [*who, name], 0
    if piece:
        pieces.append((piece, who, who[0] if who else ""))
    return _joined(pieces)


def _joined(pieces: list[_Piece]) -> list[_Piece]:
    """A part of nothing but a name belongs to the next one: "Kim, who was late, …"."""
    joined: list[_Piece] = []
    for piece, who, first in pieces:
        before, names, earlier = joined[-1] if joined else ([], [], "")
        if before and sum(map(tells, before)) <= len(names):
            joined[-1] = (before + piece, names + who, earlier or first)
        else:
            joined.append((piece, who, first))
    return joined


_HEDGES = frozenset("one someone somebody either perhaps maybe might may nobody unclear".split())
_NUMBER = re.compile(r"\d")
_NAMED = re.compile(r"\b[A-Z]\w+|\d[\w,.]*")
_MISSING = 0.5  # our choice: a word of the question that nothing comes nearer to is not there
_TELLING = 0.2  # our choice: a word nearer to neither good nor bad says neither
_OPPOSITE = 0.5  # our choice: how far apart, as good and bad, two words are opposites
_BOTH = frozenset({"chosen", "other"})
_ABOUT = ("parts", "near", "best", "agrees", "same_way", "fits", "denied", "told")
WHO = ("chosen", "other", "both", "nobody")


@dataclass(frozen=True, slots=True)
class SupportClaim:
    """That a context supports an answer to a question, against these others."""

    context: str
    question: str
    answer: str
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _ParsedQuestion:
    """A question without the names in it."""

    words: list[str]
    denies: bool
    valence: float


@dataclass(frozen=True, slots=True)
class _ClauseMatch:
    """A part of the context, and how near each word of the question comes to one of its words."""

    part: Clause
    near: Floats
    cover: float  # the mean of `near`
    same_way: float  # how near, where a good word next to a bad one counts against it
    denied: bool
    told: int
    valence: float

    @property
    def whom(self) -> str:
        if self.part.about == _BOTH:
            return "both"
        return next(iter(self.part.about), "nobody")


class Features:
    """The numbers of a claim by name. `valence` says how good or bad a thing a word means, as a
    direction among word vectors."""

    def __init__(self, meanings: WordSimilarity, valence: Floats) -> None:
        self._meanings, self._direction = meanings, valence

    def of(self, claim: SupportClaim) -> dict[str, float]:
        """Names count by where they stand alone: what a name means, good or bad, counts nowhere, so
        that the same is said of any two people."""
        context_parts = parts(claim.context, claim.answer, claim.others, self._meanings)
        query = self._asked(claim.question, context_parts.names)
        part_scores = self._said(context_parts.parts, context_parts.names, query)
        features = {"options": float(bool(claim.others))}
        for who in WHO:
            about = _of(query, [score for score in part_scores if score.whom == who])
            features |= {f"{who}_{name}": value for name, value in about.items()}
        for name in ("near", "best", "agrees", "same_way", "fits"):
            features[f"{name}_more"] = features[f"chosen_{name}"] - features[f"other_{name}"]
        marks = set(marks_of(claim.answer, claim.others))
        return features | _places(claim, query, part_scores, marks) | _kind(claim)

    def _asked(self, question: str, names: frozenset[str]) -> _ParsedQuestion:
        question_words = words(question)
        content_words = [word for word in question_words if tells(word) and stem(word) not in names]
        denied = any(map(denies, question_words))
        return _ParsedQuestion(content_words, denied, self.valence(content_words, denied))

    def _said(
        self, context_parts: Sequence[Clause], names: frozenset[str], query: _ParsedQuestion
    ) -> list[_ClauseMatch]:
        content_words = [
            [w for w in part.words if tells(w) and stem(w) not in names] for part in context_parts
        ]
        flat = [word for part_words in content_words for word in part_words]
        near = self._meanings.near(query.words, flat)
        good = self._meanings.along(flat, self._direction)
        ours = self._meanings.along(query.words, self._direction)
        scores, start = [], 0
        for part, part_words in zip(context_parts, content_words, strict=True):
            here, values = (
                near[:, start : start + len(part_words)],
                good[start : start + len(part_words)],
            )
            start += len(part_words)
            denied = any(map(denies, part.words))
            best = here.max(1) if part_words else np.zeros(len(query.words), dtype=np.float32)
            same_way = _same_way(best, ours, values[here.argmax(1)]) if here.size else 0.0
            scores.append(
                _ClauseMatch(
                    part=part,
                    near=best,
                    cover=float(best.sum()) / max(len(best), 1),
                    same_way=same_way if denied == query.denies else -same_way,
                    denied=denied,
                    told=len(part_words),
                    valence=_valence(values, denied),
                )
            )
        return scores

    def valence(self, content_words: Sequence[str], denied: bool) -> float:
        """How good or bad a thing is said, from -1 to 1; a denial turns it round."""
        return _valence(self._meanings.along(content_words, self._direction), denied)


def _valence(values: Floats, denied: bool) -> float:
    value = math.tanh(sum(score for score in values.tolist() if abs(score) > _TELLING))
    return -value if denied else value


def _same_way(near: Floats, ours: Floats, theirs: Floats) -> float:
    """The nearest words, for or against: "failed" is near to "passed" and says the opposite."""
    opposite = (ours * theirs < 0) & (np.abs(ours - theirs) > _OPPOSITE)
    return float(np.where(opposite, -near, near).sum()) / len(near)


def _of(query: _ParsedQuestion, scores: Sequence[_ClauseMatch]) -> dict[str, float]:
    """What those parts say that are about the same people."""
    if not scores or not query.words:
        return dict.fromkeys(_ABOUT, 0.0)
    best = max(scores, key=lambda score: score.cover)
    cover = best.cover
    return {
        "parts": float(min(len(scores), 4)),
        "near": float(np.max([score.near for score in scores], axis=0).mean()),
        "best": cover,
        "agrees": cover if best.denied == query.denies else -cover,
        "same_way": max((score.same_way for score in scores), key=abs),
        "fits": query.valence * math.tanh(sum(score.valence for score in scores)),
        "denied": float(best.denied),
        "told": float(np.log1p(sum(score.told for score in scores))),
    }


def _places(
    claim: SupportClaim, query: _ParsedQuestion, scores: Sequence[_ClauseMatch], marks: set[str]
) -> dict[str, float]:
    """Where in the context the answer stands, and what of the question does not."""
    nothing = np.zeros(max(len(query.words), 1), dtype=np.float32)
    lines: dict[int, Floats] = {}
    answer_sentences: set[int] = set()
    mentions = 0
    for score in scores if query.words else ():
        at, hits = score.part.sentence, sum(stem(word) in marks for word in score.part.words)
        lines[at] = np.maximum(lines.get(at, nothing), score.near)
        mentions += hits
        if hits:
            answer_sentences.add(at)
    cover = {at: float(line.mean()) for at, line in lines.items()}
    best_own = max(answer_sentences, key=cover.__getitem__, default=-1)
    weakest = np.sort(lines.get(best_own, nothing))
    coverage = np.max([*lines.values(), nothing], axis=0)
    last = max(lines, default=0)
    context = claim.context.lower()
    missing = [name for name in _NAMED.findall(claim.question)[1:] if name.lower() not in context]
    alone = [score for score in scores if score.whom == "chosen"]
    hedged = [score for score in scores if score.whom == "nobody" and _HEDGES & {*score.part.words}]
    return {
        "sentences": float(min(len(lines), 8)),
        "verbatim": float(claim.answer.lower() in context),
        "mentions": float(min(mentions, 6)),
        "in_sentences": float(min(len(answer_sentences), 4)),
        "own_sentence": cover.get(best_own, 0.0),
        "own_is_best": cover.get(best_own, 0.0) - max(cover.values(), default=0.0),
        "weakest": float(weakest[0]),
        "next_weakest": float(weakest[:2][-1]),
        "missing": float((coverage < _MISSING).sum()),
        "found": float(coverage.mean()),
        "names_missing": float(len(missing)),
        "leads_both": float(any(o.part.first == "chosen" and o.whom == "both" for o in scores)),
        "last_alone": float(any(score.part.sentence == last for score in alone)),
        "hedged": float(bool(hedged)),
        "asks_denied": float(query.denies),
        "asks_valence": query.valence,
        "asked": float(min(len(query.words), 10)),
        "in_question": float(bool(marks & {stem(word) for word in words(claim.question)})),
        "answer_words": float(min(len(words(claim.answer)), 12)),
    }


def _kind(claim: SupportClaim) -> dict[str, float]:
    """Whether the answer is of the kind that is asked for."""
    question = words(claim.question)
    start, number = question[:3], bool(_NUMBER.search(claim.answer))
    counts = bool({"when", "many", "much"} & {*start}) or "year" in question
    person = bool({"who", "whom"} & {*start})
    return {
        "number_asked": float(counts),
        "number_fits": float(counts) * (1.0 if number else -1.0),
        "person_asked": float(person),
        "name_given": float(person and claim.answer[:1].isupper()),
    }
