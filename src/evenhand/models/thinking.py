"""What a model thought before it answered is kept apart from its answer.

Servers give it in a field of its own, as parts of the content, or in the answer's own text between
tags. Here the tags are read; `wire` reads the fields and the parts.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from evenhand.models.base import ModelReply, Sample, TokenLogprob
from evenhand.models.json_reader import ObjectReader

# Tags as models write them: DeepSeek and Qwen, Mistral, Kimi, Cohere, gpt-oss.
_NAMES = ("think", "thinking", "thought", "seed:think")
_OPENING = (
    *(f"<{name}>" for name in _NAMES),
    *("[THINK]", "◁think▷", "<|START_THINKING|>", "<|channel|>analysis<|message|>"),
)
_FINAL = "<|channel|>final<|message|>"
_CLOSING = (
    *(f"</{name}>" for name in _NAMES),
    *("[/THINK]", "◁/think▷", "<|END_THINKING|>", f"<|end|><|start|>assistant{_FINAL}", _FINAL),
)
_TAGS = (*_OPENING, *_CLOSING)
_LONGEST = max(map(len, _TAGS))
_TAG = re.compile(
    f"(?P<open>{'|'.join(map(re.escape, _OPENING))})|{'|'.join(map(re.escape, _CLOSING))}"
)
_BEGINNING = re.compile(r"[<\[◁]")
_STRING = re.compile(r'(?:[^"\\]++|\\.)*+', re.DOTALL)  # of JSON, up to its end
# How a reply ends that may end within a thought: at a limit, or with a call out of it.
_CUT = ("length", "content_filter", "tool_calls", "function_call")
_Piece = tuple[int, str]  # where it begins in all that was added, and its words


def may_be_in(text: str) -> bool:
    """Say whether a text may have a tag. Nearly none has, and this is all that it costs them."""
    return "<" in text or "[T" in text or "[/" in text or "◁" in text


def split(text: str, *, cut: bool = False) -> tuple[str, str]:
    """Split a text into what was thought and what was answered.

    A block may be closed, nested, or cut off; its opening tag may be in the prompt, so that the
    reply has the closing one alone. Within a string of a JSON object only whole blocks are taken
    out: the rest of it must stay JSON.

    Args:
        text: The reply.
        cut: Whether the reply ended at a limit, so that an open block may not be closed.

    Returns:
        The thought and the answer.
    """
    thought, [answer] = split_parts([text], cut=cut)
    return thought, answer


def split_parts(texts: Sequence[str], *, cut: bool = False) -> tuple[str, list[str]]:
    """Split a text that comes in parts: a block may begin in one and end in another.

    Args:
        texts: The parts, in their order.
        cut: Whether the last one ended at a limit.

    Returns:
        The thought, and what each part has of the answer.
    """
    splitter = Splitter()
    for text in texts:
        splitter.add(text)
    splitter.end(cut=cut)
    if not splitter.thinking:
        return "", list(texts)
    return joined(splitter.thinking), splitter.answers(list(map(len, texts)))


class Splitter:
    """It splits a text that comes in pieces, which may be cut within a tag.

    A tag within a string of a JSON object is a word of that string. Whether it is an object is
    known at its end, so that what comes from the tag on is held until then.

    >>> splitter = Splitter()
    >>> splitter.add("<thi"), splitter.add("nk>Hm.</think>Yes. <")
    (None, None)
    >>> splitter.take()
    'Yes. '
    """

    def __init__(self) -> None:
        self.thinking: list[str] = []
        self.late = False  # a part of the answer was taken that turned out to be thinking
        self.is_open = False  # the text ended within a block
        self.was_open = False  # it began within one
        self._answer: list[_Piece] = []
        self._taken = 0  # pieces of that
        self._block: list[_Piece] = []  # what is open, with its tag
        self._depth = 0
        self._closed: int | None = None  # the place in the block of its last closing tag
        self._tail = ""  # may be the beginning of a tag
        self._size = 0  # of all that was added
        self._object = ObjectReader()  # of the answer behind the last thought
        self._read = 0  # pieces of the answer that it has read
        self._held: list[str] = []  # from a tag within a string on, until the object ends
        self._ended = False

    @property
    def answer(self) -> str:
        """The answer so far."""
        answer = _words(self._answer)
        return answer.strip() if self.thinking else answer

    def answers(self, sizes: Sequence[int]) -> list[str]:
        """Give the answer in the parts that were added.

        Args:
            sizes: The length of each part.

        Returns:
            The words of each; without blanks at both ends of the answer.
        """
        ends = list(accumulate(sizes))
        parts = [""] * len(ends)
        for place, words in self._answer:
            start, part = place, bisect_right(ends, place)
            while start < place + len(words):
                end = min(ends[part], place + len(words))
                parts[part] += words[start - place : end - place]
                start, part = end, part + 1
        filled = [index for index, words in enumerate(parts) if words.strip()]
        first, last = (filled[0], filled[-1]) if filled else (len(parts), -1)
        parts = [words if first <= i <= last else "" for i, words in enumerate(parts)]
        if filled:
            parts[first] = parts[first].lstrip()
            parts[last] = parts[last].rstrip()
        return parts

    def add(self, piece: str) -> None:
        """Read the next piece."""
        self._size += len(piece)
        start = 0
        if self._held:
            self._held.append(piece)
            end = self._object.read(piece)
            if self._holds:
                return
            text = "".join(self._held)
            self._held = []
            start = self._leave_object(text, 0, len(text) - len(piece) + end)
        else:
            text = self._tail + piece
        while tag := _TAG.search(text, start):
            self._say(text, start, tag.start())
            start = tag.start()
            if not self._in_string():
                self._read_tag(tag, self._size - len(text) + start)
                start = tag.end()
                continue
            end = self._object.read(text, start)
            if self._holds:
                self._held, self._tail = [text[start:]], ""
                return
            start = self._leave_object(text, start, end)
        end = _unfinished(text, start)
        self._say(text, start, end)
        self._tail = text[end:]

    def end(self, *, cut: bool = False) -> None:
        """Read what the end of the text leaves open.

        Args:
            cut: Whether the text ended at a limit. A block that is open then is not closed: its
                closing tags may all be mentioned ones.
        """
        held = "".join(self._held)
        blocks = list(_blocks(held, 0, len(held)))
        self._take_object(held, 0, len(held))
        self._say(self._tail, 0, len(self._tail))
        in_string = bool(blocks) and blocks[-1][1] == len(held) and not held.endswith(_CLOSING)
        self.is_open = self.is_open or self._depth > 0 or in_string
        if self._depth and self._closed is not None and not cut:  # a tag was only mentioned
            self.thinking.append(_words(self._block[1 : self._closed]))
            self._answer += self._block[self._closed + 1 :]
        elif self._depth:
            self.thinking.append(_words(self._block[1:]))
        self._held, self._tail, self._block, self._depth = [], "", [], 0
        self._ended = True

    def take(self) -> str:
        """Give what is new of the answer. Blanks at its beginning wait: thinking may follow."""
        words = _words(self._answer[self._taken :])
        if not self._taken and not self._ended and not words.strip():
            return ""
        words = words.lstrip() if self.thinking and not self._taken else words
        self._taken = len(self._answer)
        return words

    def _say(self, text: str, start: int, end: int) -> None:
        if start < end:
            piece = (self._size - len(text) + start, text[start:end])
            (self._block if self._depth else self._answer).append(piece)

    def _read_tag(self, tag: re.Match[str], place: int) -> None:
        if tag["open"] is not None:
            if self._depth == 0:
                self._block, self._closed = [], None
            self._depth += 1
            self._block.append((place, tag[0]))
        elif self._depth > 1:
            self._depth, self._closed = self._depth - 1, len(self._block)
            self._block.append((place, tag[0]))
        elif self._depth == 1:
            self.thinking.append(_words(self._block[1:]))
            self._depth = 0
            if self._object.broken or not self._object.depth:
                self._object, self._read = ObjectReader(), len(self._answer)
        else:  # the block began in the prompt
            self.was_open = True
            self.late = self.late or self._taken > 0
            self.thinking.append(_words(self._answer))
            self._answer, self._taken = [], 0
            self._object, self._read = ObjectReader(), 0

    @property
    def _holds(self) -> bool:
        """Whether it is open what a tag within a string is."""
        return self._object.depth > 0 and not self._object.broken

    def _in_string(self) -> bool:
        """Say whether the answer is within a string of an object."""
        if self._depth:
            return False
        for _, words in self._answer[self._read :]:
            at = 0
            while at < len(words) and not self._object.broken:
                at = self._object.read(words, at)
        self._read = len(self._answer)
        return self._object.in_string and not self._object.broken

    def _leave_object(self, text: str, start: int, end: int) -> int:
        """Take the rest of an object, and give the place behind it: none if it is no object."""
        if self._object.broken:
            return start
        self._take_object(text, start, end)
        return end

    def _take_object(self, text: str, start: int, end: int) -> None:
        """Take words of an object, without the blocks in its strings."""
        for opens, ends, thought in _blocks(text, start, end):
            self._say(text, start, opens)
            self.thinking.append(thought)
            start = ends
        self._say(text, start, end)
        self._read = len(self._answer)


def _words(pieces: Sequence[_Piece]) -> str:
    return "".join(words for _, words in pieces)


def _blocks(text: str, start: int, end: int) -> Iterator[tuple[int, int, str]]:
    """Find the blocks in the strings of JSON, of which the first has begun: where each begins and
    ends, and what was thought. Only in the last string, if it is cut off, a block may be open."""
    while start < end:
        match = _STRING.match(text, start, end)
        closes = match.end() if match else end
        is_cut = text[closes : closes + 1] != '"' or closes == end
        opening: re.Match[str] | None = None
        closing: re.Match[str] | None = None
        depth = 0
        for tag in _TAG.finditer(text, start, closes):
            if tag["open"] is not None:
                opening, closing = (opening, closing) if depth else (tag, None)
                depth += 1
            elif opening is not None and depth:
                depth, closing = depth - 1, tag
                if depth == 0:
                    yield opening.start(), tag.end(), text[opening.end() : tag.start()]
        if opening is not None and depth and is_cut:
            yield opening.start(), end, text[opening.end() : end]
        elif opening is not None and depth and closing is not None:  # a tag was only mentioned
            yield opening.start(), closing.end(), text[opening.end() : closing.start()]
        begins = text.find('"', closes + 1, end)
        start = begins + 1 if begins >= 0 else end


def _unfinished(text: str, start: int) -> int:
    """Give the place of a tag that the text's end cuts off; its length if there is none."""
    for match in _BEGINNING.finditer(text, max(start, len(text) - _LONGEST)):
        rest = text[match.start() :]
        if any(tag.startswith(rest) for tag in _TAGS):
            return match.start()
    return len(text)


def is_cut(finish: str) -> bool:
    """Say whether a reply that ended so may have ended within a thought."""
    return finish in _CUT


def used_it_up(reply: ModelReply) -> bool:
    """Say whether a reply ended at its limit with thinking in it, or with nothing at all."""
    sample, usage = reply.samples[0], reply.usage
    if sample.finish != "length":
        return False
    counted = usage is not None and bool(usage.thinking_tokens)
    nothing = not sample.text and sample.logprobs is None
    return bool(sample.thinking) or counted or nothing


def more_room(limit: int) -> int:
    """Give the limit of a reply when it is asked again because thinking used up this one. Our
    choice: four times as much, and 4,096 tokens at least."""
    return max(4 * limit, 4096)


def joined(parts: Sequence[str]) -> str:
    """Join what was thought in several places."""
    return "\n\n".join(filter(None, map(str.strip, parts)))


def apart(sample: Sample) -> Sample:
    """Give the sample with what was thought in its text in the field for it."""
    thinking, answer = split(sample.text, cut=is_cut(sample.finish))
    if answer is sample.text:
        return sample
    behind = _is_behind(answer, sample.text)
    logprobs = _of_answer(sample.logprobs, answer) if sample.logprobs and behind else None
    thinking = joined((sample.thinking, thinking))
    return replace(sample, text=answer, thinking=thinking, logprobs=logprobs)


def without_blanks(sample: Sample) -> Sample:
    """Give the sample without the blanks before its answer, which some servers and libraries leave
    there when they take out a thought."""
    answer = sample.text.lstrip()
    return sample if len(answer) == len(sample.text) else replace(sample, text=answer)


def with_own_tokens(sample: Sample) -> Sample:
    """Give the sample with the log-probabilities of its answer alone. Some servers take a thought
    out of the text and leave its tokens in the list; the first of a list decides what a one-word
    verdict is. Behind a thought, tokens that do not spell the answer are left out."""
    own = sample.logprobs and _of_answer(sample.logprobs, sample.text)
    return sample if own is None and not sample.thinking else replace(sample, logprobs=own)


def _is_behind(answer: str, text: str) -> bool:
    """Say whether an answer is the end of its text, and all before it was thought."""
    before = text.rstrip().removesuffix(answer)
    return len(before) < len(text.rstrip()) and not split(before)[1].strip()


def _of_answer(tokens: tuple[TokenLogprob, ...], answer: str) -> tuple[TokenLogprob, ...] | None:
    """Give the tokens at the end of a list that spell an answer, blanks around it aside; None where
    they do not. The last may be the end of a reply, which is in no text."""
    words = answer.strip()
    for spelling in (tokens, tokens[:-1]):
        spelled = "".join(token.token for token in spelling)
        if spelled == answer:
            return spelling
        if not words:
            return None
        own = _behind(spelling, len(spelled.rstrip()) - len(words))
        if "".join(token.token for token in own).strip() == words:
            return own
    return None


def _behind(tokens: tuple[TokenLogprob, ...], place: int) -> tuple[TokenLogprob, ...]:
    """Give the tokens from the one that holds a place of the text which they spell."""
    passed = 0
    for index, token in enumerate(tokens):
        passed += len(token.token)
        if passed > place:
            return tokens[index:]
    return ()
