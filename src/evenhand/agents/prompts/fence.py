"""Text from outside as data: between two tags that nothing inside it can open or close.

Our choice: what reads as one of the prompt's own tags loses its angle bracket. A fence with a name
that nobody can guess would leave the text as it is, but the name would have to come from the text
(a replay must ask the same words), so that two texts that differ in one word would be asked about
in two prompts, and chat tokens would still get through.
"""

import html
import re
import unicodedata
from collections.abc import Iterable
from functools import cache

# What a reader may take for "<": its own other forms and escapes.
_BRACKET = r"(?:[<＜﹤≮]|\\u003c|\\x3c|%3c)"
# Signs that look like it (Unicode's confusables.txt, but for the "‹" that we write ourselves) and
# other angle brackets: letters and quotes of their languages, so before a whole name alone.
_ALIKE = "[˂ᐸᚲ❮𝈶〈⟨〈]"
# In a name: whatever is not plain, such as a sign of no width, NUL or another alphabet.
_ODD = r"[^\t\n\x20-\x7e‹]"
# Chat tokens, which servers read in any text: "<|im_end|>", "</s>", "<end_of_turn>".
_TOKENS = r"\||(?:s|start_of_turn|end_of_turn)\b"
_AMPERSAND = re.compile("[&＆﹠]")
_DECODED = 4  # our choice: nobody unescapes an entity more often


def marked(text: str, tag: str, among: Iterable[str] = ()) -> str:
    """Put text from outside between fence tags that nothing inside can open or close.

    Args:
        text: The text from outside.
        tag: The name of the fence.
        among: The other fences of the same prompt, which are made harmless in the text too.

    Returns:
        The fenced text.
    """
    return f"<{tag}>\n{as_data(text, {tag, *among})}\n</{tag}>"


def as_data(text: str, tags: Iterable[str]) -> str:
    """Text in which nothing reads as one of these tags or as a chat token: what does loses its
    angle bracket, all else stays as it is. A text that spells a tag in entities is shown as what it
    spells."""
    tag = _tag(frozenset(tags))
    safe = tag.sub("‹", text)
    current = safe
    for _ in range(_DECODED):
        if not _AMPERSAND.search(current) or (decoded := _decoded(current)) == current:
            return tag.sub("‹", current) if tag.search(current) else safe
        current = decoded
    # wrapped more deeply than what is meant to be
    return tag.sub("‹", _AMPERSAND.sub("+", current))


def without_tags(text: str, tags: Iterable[str]) -> tuple[str, int]:
    """An answer less the tags of the prompt that the model copied into it, and how many. A tag that
    comes about as another is taken out of it goes too."""
    if not (tags := frozenset(tags)):
        return text, 0
    taken_off, tag = 0, _whole_tag(tags)
    for _ in range(_DECODED):
        text, count = tag.subn("", text)
        taken_off += count
        if not count:
            return text, taken_off
    return tag.sub("", re.sub("[<‹]", "", text)), taken_off  # nobody copies tags into tags


@cache
def _tag(tags: frozenset[str]) -> re.Pattern[str]:
    names = "|".join(map(re.escape, sorted(tags)))
    return re.compile(
        rf"{_BRACKET}(?=[\s/\\]*+(?:{_TOKENS}|{names}|[a-z0-9_-]*+{_ODD}))"
        rf"|{_ALIKE}(?=[\s/\\]*+(?:{names}))",
        re.IGNORECASE,
    )


@cache
def _whole_tag(tags: frozenset[str]) -> re.Pattern[str]:
    names = "|".join(map(re.escape, sorted(tags)))
    return re.compile(rf"[<‹]\s*+/?\s*+(?:{names})\s*+[>›]\n?", re.IGNORECASE)


def _decoded(text: str) -> str:
    """The text as a reader has it who unescapes entities and overlooks what cannot be seen."""
    visible = "".join(c for c in text if c in "\n\t" or unicodedata.category(c)[0] != "C")
    return html.unescape(unicodedata.normalize("NFKC", visible))
