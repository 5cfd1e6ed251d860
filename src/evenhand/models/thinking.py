"""What a model thought before it answered is kept apart from its answer.

Servers give it in a field of its own, as parts of the content, or in the answer's own text between
tags. Here the tags are read; `wire` reads the fields and the parts.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from evenhand.models.base import ModelReply, Sample, TokenLogprob

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


def may_be_in(text: str) -> bool:
    """Say whether a text may have a tag. Nearly none has, and this is all that it costs them."""
    return "<" in text or "[T" in text or "[/" in text or "◁" in text


def split(text: str) -> tuple[str, str]:
    """Split a text into what was thought and what was answered.

    A block may be closed, nested, or cut off; its opening tag may be in the prompt, so that the
    reply has the closing one alone. Inside a JSON object only whole blocks are taken out: the rest
    of it must stay JSON.
    """
    splitter = Splitter()
    splitter.add(text)
    splitter.end()
    if not splitter.thinking:
        return "", text
    return joined(splitter.thinking), splitter.answer


class Splitter:
    """It splits a text that comes in pieces, which may be cut within a tag.

    >>> splitter = Splitter()
    >>> splitter.add("<thi"), splitter.add("nk>Hm.</think>Yes. <")
    (None, None)
    >>> splitter.take()
    'Yes. '
    """

    def __init__(self) -> None:
        self.thinking: list[str] = []
        self.late = False  # a part of the answer was taken that turned out to be thinking
        self._answer: list[str] = []
        self._taken = 0  # pieces of that
        self._block: list[str] = []  # what is open, with its tag
        self._depth = 0
        self._closed: int | None = None  # the place in the block of its last closing tag
        self._tail = ""  # may be the beginning of a tag
        self._is_json: bool | None = None  # None: nothing but blanks so far
        self._ended = False

    @property
    def answer(self) -> str:
        """The answer so far."""
        answer = "".join(self._answer)
        return answer.strip() if self.thinking else answer

    def add(self, piece: str) -> None:
        """Read the next piece."""
        text, start = self._tail + piece, 0
        for tag in _TAG.finditer(text):
            self._say(text[start : tag.start()])
            self._read_tag(tag)
            start = tag.end()
        end = _unfinished(text, start)
        self._say(text[start:end])
        self._tail = text[end:]

    def end(self) -> None:
        """Read what the end of the text leaves open."""
        self._say(self._tail)
        if self._depth and self._closed is not None:  # a tag was only mentioned: the last ends it
            self.thinking.append("".join(self._block[1 : self._closed]))
            self._answer += self._block[self._closed + 1 :]
        elif self._depth and self._is_json:
            self._answer += self._block
        elif self._depth:
            self.thinking.append("".join(self._block[1:]))
        self._tail, self._block, self._depth, self._ended = "", [], 0, True

    def take(self) -> str:
        """Give what is new of the answer. Blanks at its beginning wait: thinking may follow."""
        words = "".join(self._answer[self._taken :])
        if not self._taken and not self._ended and not words.strip():
            return ""
        words = words.lstrip() if self.thinking and not self._taken else words
        self._taken = len(self._answer)
        return words

    def _say(self, words: str) -> None:
        if not words:
            return
        (self._block if self._depth else self._answer).append(words)
        if self._is_json is None and (first := words.lstrip()[:1]):
            self._is_json = first == "{"

    def _read_tag(self, tag: re.Match[str]) -> None:
        self._is_json = bool(self._is_json)
        if tag["open"] is not None:
            if self._depth == 0:
                self._block, self._closed = [], None
            self._depth += 1
            self._block.append(tag[0])
        elif self._depth > 1:
            self._depth, self._closed = self._depth - 1, len(self._block)
            self._block.append(tag[0])
        elif self._depth == 1:
            self.thinking.append("".join(self._block[1:]))
            self._depth = 0
        elif self._is_json:
            self._answer.append(tag[0])
        else:  # the block began in the prompt
            self.late = self.late or self._taken > 0
            self.thinking.append("".join(self._answer))
            self._answer, self._taken = [], 0


def _unfinished(text: str, start: int) -> int:
    """Give the place of a tag that the text's end cuts off; its length if there is none."""
    for match in _BEGINNING.finditer(text, max(start, len(text) - _LONGEST)):
        rest = text[match.start() :]
        if any(tag.startswith(rest) for tag in _TAGS):
            return match.start()
    return len(text)


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
    thinking, answer = split(sample.text)
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
