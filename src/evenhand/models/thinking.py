"""What a model thought before it answered is kept apart from its answer.

Servers give it in a field of its own, as parts of the content, or in the answer's own text between
tags. Here the tags are read; `wire` reads the fields and the parts.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from evenhand.models.base import ModelReply, Sample, TokenLogprob

# Tags as models write them: DeepSeek and Qwen, Mistral, Kimi, Cohere, gpt-oss.
_TAG = re.compile(
    r"(?P<open><(?:think|thinking|thought|seed:think)>|\[THINK\]|◁think▷|<\|START_THINKING\|>"
    r"|<\|channel\|>analysis<\|message\|>)"
    r"|</(?:think|thinking|thought|seed:think)>|\[/THINK\]|◁/think▷|<\|END_THINKING\|>"
    r"|(?:<\|end\|><\|start\|>assistant)?<\|channel\|>final<\|message\|>"
)


def may_be_in(text: str) -> bool:
    """Say whether a text may have a tag. Nearly none has, and this is all that it costs them."""
    return "<" in text or "[T" in text or "[/" in text or "◁" in text


def split(text: str) -> tuple[str, str]:
    """Split a text into what was thought and what was answered.

    A block may be closed, nested, or cut off; its opening tag may be in the prompt, so that the
    reply has the closing one alone. Inside a JSON object only whole blocks are taken out: the rest
    of it must stay JSON.
    """
    reader = _Reader(text)
    for tag in _TAG.finditer(text):
        reader.take(tag)
    return reader.end()


class _Reader:
    """The state between two tags of a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._is_json = text.lstrip()[:1] == "{"
        self._answer: list[str] = []
        self._thinking: list[str] = []
        self._start = self._depth = 0
        self._closed: re.Match[str] | None = None  # the last closing tag of an open block

    def take(self, tag: re.Match[str]) -> None:
        if tag["open"] is not None:
            if self._depth == 0:
                self._answer.append(self._text[self._start : tag.start()])
                self._start, self._closed = tag.end(), None
            self._depth += 1
        elif self._depth > 0:
            self._depth, self._closed = self._depth - 1, tag
            if self._depth == 0:
                self._thinking.append(self._text[self._start : tag.start()])
                self._start = tag.end()
        elif not self._is_json:  # the block began in the prompt
            self._thinking.append("".join([*self._answer, self._text[self._start : tag.start()]]))
            self._answer, self._start = [], tag.end()

    def end(self) -> tuple[str, str]:
        if self._depth and self._closed is not None:  # a tag was only mentioned: the last ends it
            self._thinking.append(self._text[self._start : self._closed.start()])
            self._start, self._depth = self._closed.end(), 0
        if self._depth and self._is_json:
            return "", self._text
        (self._thinking if self._depth else self._answer).append(self._text[self._start :])
        if not self._thinking:
            return "", self._text
        return joined(self._thinking), "".join(self._answer).strip()


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
    logprobs = sample.logprobs and _of_answer(sample.logprobs, sample.text, answer)
    thinking = joined((sample.thinking, thinking))
    return replace(sample, text=answer, thinking=thinking, logprobs=logprobs)


def without_blanks(sample: Sample) -> Sample:
    """Give the sample without the blanks around its answer, which some servers and libraries leave
    there when they take out a thought."""
    answer, tokens = sample.text.strip(), sample.logprobs or ()
    if len(answer) == len(sample.text):
        return sample
    blanks = next((i for i, token in enumerate(tokens) if token.token.strip()), len(tokens))
    return replace(sample, text=answer, logprobs=sample.logprobs and tokens[blanks:])


def _of_answer(
    tokens: tuple[TokenLogprob, ...], text: str, answer: str
) -> tuple[TokenLogprob, ...] | None:
    """Give the tokens of the answer; None where it is not known which they are. The first token of
    an answer decides what a one-word verdict is, and that of a thought does not."""
    if not answer or "".join(token.token for token in tokens) != text:
        return None
    begins = text.rstrip().rfind(answer)
    passed = 0
    for index, token in enumerate(tokens):
        passed += len(token.token)
        if passed > begins >= 0:
            return tokens[index:]
    return None
