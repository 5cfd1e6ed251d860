"""An exchange becomes rows of a run folder: each of its texts is an item.

What the check came to an end on is answered, and `text` is what went out. All else is failed, with
action and reason: blocked, not run, or flagged because the check itself broke off. A verdict of
"passed" that no score stands behind is failed as well.

Texts are kept with personal data masked: e-mail addresses, telephone numbers, numbers of cards and
bank accounts, social security numbers, and names where they are reliably names: behind a title or
"my name is", a frequent given name with what follows it, and a word that is a name elsewhere in the
same exchange. A surname alone and a rare given name are not recognized. Made for English.
"""

import hashlib
import hmac
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from evenhand.agents.tools.search.privacy import fold, listed
from evenhand.core import Answer, Answered, Draft, Event, Failed, Item, Message, Result, Turn
from evenhand.core.items import CalledFunction, ToolCall, ToolCalls, ToolResult
from evenhand.gateway.verdicts import Action, Exchange, ExchangeVerdict
from evenhand.runs.store import tables

_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,8}[^\W\d_]{2,24}(?![\w-])")
_SSN = re.compile(r"(?<![\d-])\d{3}-\d{2}-\d{4}(?![\d-])")
_IBAN = re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?!\w)")
_CARD = re.compile(r"(?<![\d.,-])\d(?:[ -]?\d){12,18}(?![\d-]|[.,]\d)")
_PHONES = (
    re.compile(r"(?<![\w+])(?:\+|00)[1-9](?:[ ().-]{0,2}\d){8,14}(?!\w)"),  # +44 20 7946 0958
    re.compile(r"(?<![\w.+-])(?:1[ .-])?\(?\d{3}\)?[ .-]?\d{3}[ .-]\d{4}(?![\w-])"),  # 415-555-2671
    re.compile(r"(?<![\w.+-])\(?0\d{1,4}\)?[ /-]\d{3,4}[ -]?\d{3,5}(?![\w-])"),  # 020 7946 0958
    re.compile(r"(?<![\w.+-])0\d(?:[ .]\d{2}){4}(?![\w-])"),  # 01 23 45 67 89
)
_CALLED = re.compile(
    r"((?<!\w)(?:phone|tel|telephone|mobile|cell|fax|call)(?!\w)[^\d\n]{0,16})\d{7,15}(?!\w)",
    re.IGNORECASE,
)
# A word with a capital, of which "O'Neill" and "Anne-Marie" are one.
_WORD = r"[^\W\d_a-z][^\W\d_]*(?:['’-][^\W\d_]+)*"
_BEHIND = rf"(?: (?:(?:de|da|del|van|von|der|bin|al|la) ){{0,2}}{_WORD}|\ [A-Z]\.){{0,3}}"
_TITLED = re.compile(rf"(?<!\w)((?:Mr|Mrs|Ms|Mx|Miss|Dr|Prof|Professor|Sir)\.? )({_WORD}{_BEHIND})")
_INTRODUCED = re.compile(rf"(?<!\w)((?i:(?:my|his|her|their) name is) )({_WORD}{_BEHIND})")
_CAPITAL = re.compile(rf"(?<!\w){_WORD}")
_SURNAMES = re.compile(_BEHIND)
_LETTERS = re.compile(r"[^\W\d_]+")
_LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"')
# Given names that are words, places or firms as well: names only in front of another.
_ALSO_WORDS = frozenset(
    "amber bill carol chad charlotte chen crystal diego francisco george grace harry heather "
    "jack jackson jasmine jean jerome jesus kelly kumar lamar lawrence logan marie mark "
    "marquis mason mei nguyen raj rosa rose russell santiago sasha scott sofia terry tony "
    "victor victoria will ".split()
)


def names_in(texts: Iterable[str]) -> frozenset[str]:
    """The words of these texts that are reliably somebody's name, for `masked`."""
    names: set[str] = set()
    for text in texts:
        for start, end in _names(text):
            names.update(fold(word) for word in _LETTERS.findall(text[start:end]))
    ordinary = listed("function_words") | listed("topic_words") | listed("identity_words")
    return frozenset(word for word in names - ordinary - _ALSO_WORDS if len(word) > 1)


def masked(text: str, names: frozenset[str] = frozenset()) -> str:
    """The text with a mark in the place of what is personal.

    Args:
        text: Any text. If it is JSON, its structure, its numbers and its layout stay.
        names: Words that are names elsewhere (`names_in`); they are masked however written.
    """
    if text.lstrip()[:1] in ("{", "[", '"') and _is_json(text):
        return _LITERAL.sub(lambda literal: _literal(literal[0], names), text)
    return _plain(text, names)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _literal(written: str, names: frozenset[str]) -> str:
    value = json.loads(written)
    plain = _plain(value, names)
    return written if plain == value else json.dumps(plain, ensure_ascii=False)


def _plain(text: str, names: frozenset[str]) -> str:
    text = _EMAIL.sub("[email]", text)
    if any(sign.isdigit() for sign in text):
        text = _IBAN.sub(_if(_is_iban, "[iban]"), text)
        text = _SSN.sub("[ssn]", text)
        text = _CARD.sub(_if(_is_card, "[card]"), text)
        for phone in _PHONES:
            text = phone.sub("[phone]", text)
        text = _CALLED.sub(r"\1[phone]", text)
    text = _without_names(text)
    if names:
        text = _LETTERS.sub(lambda word: "[name]" if fold(word[0]) in names else word[0], text)
    return text


def _without_names(text: str) -> str:
    parts, past = [], 0
    for start, end in sorted(_names(text)):
        if end > past:
            parts += [text[past : max(past, start)], "[name]" if start >= past else ""]
            past = end
    return "".join([*parts, text[past:]])


def _names(text: str) -> Iterator[tuple[int, int]]:
    """Where names stand in a text."""
    for pattern in (_TITLED, _INTRODUCED):
        yield from (match.span(2) for match in pattern.finditer(text))
    given_names = listed("given_names")
    for match in _CAPITAL.finditer(text):
        first = fold(_LETTERS.findall(match[0])[0])
        if first not in given_names:
            continue
        behind = _SURNAMES.match(text, match.end())
        end = behind.end() if behind else match.end()
        if end > match.end() or first not in _ALSO_WORDS:
            bare = match[0].removesuffix("'s").removesuffix("’s")
            name_end = end if end > match.end() else match.start() + len(bare)
            yield match.start(), name_end


def _if(right: Callable[[str], bool], mark: str) -> Callable[[re.Match[str]], str]:
    return lambda match: mark if right(match[0]) else match[0]


def _is_card(written: str) -> bool:
    """By the Luhn checksum, which one number of ten passes by chance."""
    digits = [int(sign) for sign in written if sign.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return len(set(digits)) > 1 and (sum(doubled) + sum(digits[-1::-2])) % 10 == 0


def _is_iban(written: str) -> bool:
    bare = written.replace(" ", "")
    turned = bare[4:] + bare[:4]
    return int("".join(str(int(sign, 36)) for sign in turned)) % 97 == 1


Content = Literal["off", "hashed", "on"]
Keep = Callable[[str], str]
NOT_KEPT = "[not kept]"
_SCREEN = "screen"
_NAME = re.compile(r"[\w.:/@+-]{0,100}", re.ASCII)


@dataclass(frozen=True, slots=True)
class RecordedExchange:
    """One item of a run folder, and the action that it is counted by if it is lost."""

    exchange: str
    action: Action
    result: Result
    turns: tuple[Turn, ...]

    def __post_init__(self) -> None:
        for row in (self.result, *self.turns):
            tables.encode(row)  # raises here, where it costs this exchange alone

    def at(self, position: int) -> "RecordedExchange":
        """Give it a place in the run."""
        turns = tuple(replace(turn, position=position) for turn in self.turns)
        return replace(self, result=replace(self.result, position=position), turns=turns)


def rows(exchange: Exchange, content: Content, key: bytes, redact: Keep) -> list[RecordedExchange]:
    """Turn an exchange into items of a run folder. They do not have a position yet.

    Args:
        exchange: The exchange; one without verdicts becomes a single failed item.
        content: How much of the texts is kept.
        key: The secret that texts are hashed with, if only their hashes are kept.
        redact: Takes API keys out of a text.

    Returns:
        The items, one for each verdict.
    """
    asked = (exchange.prompt, exchange.context, *(turn.text for turn in exchange.messages))
    if not exchange.verdicts:
        keep = keeper(content, key, redact, asked)
        item = _item(exchange, exchange.id, exchange.action, exchange.reason, keep)
        event = _failed(item, exchange.action, exchange.reason, None, ())
        return [RecordedExchange(exchange.id, exchange.action, _kept(Result.of(event), keep), ())]
    records = []
    for index, verdict in enumerate(exchange.verdicts):
        drafts = _drafts(verdict)
        draft_texts = (draft.text for draft in drafts)
        turn_texts = (text for turn in verdict.turns for text in _words(turn))
        keep = keeper(content, key, redact, (*asked, *draft_texts, *turn_texts))
        name = f"{exchange.id}-{index}"
        item = _item(exchange, name, verdict.action, verdict.reason, keep)
        result = replace(Result.of(_event(item, verdict, drafts)), answer_before=verdict.before)
        turns = tuple(_turns(verdict.turns, name, content, keep))
        records.append(RecordedExchange(exchange.id, verdict.action, _kept(result, keep), turns))
    return records


def _event(item: Item, verdict: ExchangeVerdict, drafts: Sequence[Draft]) -> Event:
    action, answer = verdict.action, verdict.answer
    judged = answer is not None or (action is Action.PASSED and verdict.screen is not None)
    if not judged or action in (Action.NOT_RUN, Action.BLOCKED):
        return _failed(item, action, verdict.reason, verdict.screen, verdict.turns)
    stopped = answer.stopped if answer else verdict.reason
    if action is Action.FLAGGED:
        stopped = f"flagged:{verdict.reason}"
    final_answer = Answer(drafts=tuple(drafts), stopped=stopped)
    return Answered(0, item, final_answer, len(verdict.turns), *tokens(verdict.turns))


def _failed(
    item: Item, action: Action, reason: str, screen: float | None, turns: Sequence[Turn]
) -> Failed:
    message = "no screen score" if screen is None else f"screen score {screen:.4g}"
    return Failed(0, item, f"{action}:{reason}", message, len(turns), *tokens(turns))


def _item(exchange: Exchange, name: str, action: Action, reason: str, keep: Keep) -> Item:
    """The item of an exchange, with its words as they are kept."""
    tags = {
        "tenant": exchange.tenant,
        "route": exchange.route,
        "model": plain_name(exchange.model),
        "action": str(action),
        "reason": reason,
    }
    safe_tags = {name: _writable(value) for name, value in tags.items()}
    turns = [_kept_message(turn, keep) for turn in exchange.messages]
    users = [at for at, turn in enumerate(exchange.messages) if turn.role == "user" and turn.text]
    at = users[-1] if users else len(turns)
    return Item(
        id=name,
        prompt=keep(exchange.prompt),
        tags=safe_tags,
        history=tuple(turns[:at]) if users else (),
        tool_turns=tuple(turns[at + 1 :]),
    )


def plain_name(name: str) -> str:
    """A model's name as it is kept. The client chooses it, so that it could be anything."""
    return name if _NAME.fullmatch(name) else NOT_KEPT


def _drafts(verdict: ExchangeVerdict) -> list[Draft]:
    """Every version: the upstream's own words first, with the screen's score, and last what went
    out. One that was flagged went out as it was, after all that was tried."""
    drafts = list(verdict.answer.drafts) if verdict.answer else []
    if not drafts or drafts[0].text != verdict.before:
        drafts.insert(0, Draft(text=verdict.before))
    if verdict.screen is not None:
        drafts[0] = replace(drafts[0], scores={**drafts[0].scores, _SCREEN: verdict.screen})
    if drafts[-1].text != verdict.text:
        drafts.append(drafts[0] if verdict.text == verdict.before else Draft(text=verdict.text))
    return drafts


def tokens(turns: Sequence[Turn]) -> tuple[int | None, int | None]:
    """The tokens in and out of all turns; None where an endpoint did not count."""
    sums: list[int | None] = []
    for each in ([t.prompt_tokens for t in turns], [t.completion_tokens for t in turns]):
        counts = [count for count in each if count is not None]
        sums.append(sum(counts) if len(counts) == len(each) else None)
    return sums[0], sums[1]


# -- how much of the texts is kept -------------------------------------------------------------


def keeper(content: Content, key: bytes, redact: Keep, texts: Sequence[str]) -> Keep:
    """What is written in the place of a text of this item.

    Args:
        content: What the policy keeps of the words.
        key: What they are hashed with.
        redact: Takes keys out of a text.
        texts: All texts of the item. A name in one of them is masked in all, however written.
    """
    if content == "off":
        return lambda text: NOT_KEPT if text else ""
    if content == "hashed":
        return lambda text: hashed(key, text)
    names = names_in(texts)
    return lambda text: _writable(masked(redact(text), names))


def _words(turn: Turn) -> Iterator[str]:
    yield from (message.text for message in turn.messages)
    yield from turn.texts


def hashed(key: bytes, text: str) -> str:
    """A text's HMAC-SHA256: equal texts are found again, and without the key none can be tried."""
    if not text:
        return ""
    data = text.encode("utf-8", "surrogatepass")
    return f"hmac-sha256:{hmac.new(key, data, hashlib.sha256).hexdigest()}"


def _writable(text: str) -> str:
    """A lone surrogate, which JSON can spell and UTF-8 cannot, must not cost the whole row."""
    return text.encode("utf-8", "replace").decode()


def _kept_message(message: Message, keep: Keep) -> Message:
    """A turn with its words as they are kept, those of its tool calls among them."""
    content = keep(message.content)
    if isinstance(message, ToolCalls):
        calls = (
            ToolCall(keep(call.id), CalledFunction(keep(name), keep(arguments)))
            for call in message.tool_calls
            for name, arguments in ((call.function.name, call.function.arguments),)
        )
        return ToolCalls(message.role, content, tuple(calls))
    if isinstance(message, ToolResult):
        return ToolResult(message.role, content, keep(message.tool_call_id))
    return Message(message.role, content)


def _kept(result: Result, keep: Keep) -> Result:
    """A result with the words of its answer as they are kept; its item has them so already."""
    drafts = tuple(
        replace(draft, text=keep(draft.text), reasoning=keep(draft.reasoning))
        for draft in result.drafts
    )
    return replace(
        result,
        text=None if result.text is None else keep(result.text),
        answer_before=None if result.answer_before is None else keep(result.answer_before),
        drafts=drafts,
    )


def _turns(turns: Sequence[Turn], name: str, content: Content, keep: Keep) -> Iterator[Turn]:
    """The turns under the item's name. The hash of a request could be tried with guessed texts, so
    it is kept only where the texts are; log-probabilities spell out the words that they are of."""
    occurrences: Counter[str] = Counter()
    for index, turn in enumerate(turns):
        request = turn.request if content == "on" else keep(turn.request)
        yield replace(
            turn,
            item_id=name,
            index=index,
            request=request,
            occurrence=occurrences[request],
            messages=tuple(_kept_message(message, keep) for message in turn.messages),
            texts=tuple(map(keep, turn.texts)),
            logprobs=None,
            tool_calls=None,
            error_message=None if turn.error_message is None else keep(turn.error_message),
        )
        occurrences[request] += 1
