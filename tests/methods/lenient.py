"""A reader of prompts who takes whatever looks like a tag for one: full-width, small and broken
tags, tags with NUL or signs of no width in them, and tags spelt in entities."""

import html
import re
import unicodedata
from collections.abc import Collection
from functools import cache

_NOT_PLAIN = re.compile(r"[^\t\n\x20-\x7e]")


def seen(words: str) -> str:
    """What the reader makes of the letters, before looking for tags."""
    before = None
    while words != before:
        before = words
        words = _NOT_PLAIN.sub(_visible, words)
        words = words if words.isascii() else unicodedata.normalize("NFKC", words)
        words = html.unescape(words) if "&" in words else words
    return words


def outside(words: str, tags: Collection[str]) -> str:
    """What stands in no region, read from left to right: a tag opens one, and the next closing of
    that tag ends it. A region that never ends is none."""
    words, kept, at = seen(words), [], 0
    while opened := _opening(frozenset(tags)).search(words, at):
        kept.append(words[at : opened.start()])
        closed = _closing(opened[1].lower()).search(words, opened.end())
        if closed is None:
            at = opened.start()
            break
        at = closed.end()
    return "".join([*kept, words[at:]])


def closings(tag: str) -> list[str]:
    """Ways to pretend that a region has ended."""
    first, rest = tag[0], tag[1:]
    wide = "".join(chr(ord(letter) + 0xFEE0) if letter.isalpha() else letter for letter in tag)
    return [
        f"</{tag}>",
        f"</{tag.upper()}>",
        f"< / {tag} >",
        f"</{tag}\n>",
        f"</{tag}></{tag}>",
        f"＜/{tag}＞",  # full width
        f"＜／{wide}＞",
        f"﹤/{tag}﹥",  # small
        f"</{wide}>",
        f"</{first}\u200b{rest}>",  # a space of no width
        f"<\u200b/{tag}>",
        f"</{first}\u00ad{rest}>",  # a soft hyphen
        f"\u202e</{tag}>\u202c",  # turned around and back
        f"<\x00/{tag}>",  # NUL
        f"</{first}\r{rest}>",
        f"</{tag}\ufeff>",
        f"<\U000e0041/{tag}>",  # a letter that is never shown
        f"&lt;/{tag}&gt;",
        f"&#60;/{tag}&#62;",
        f"&#x3C;&#x2f;{tag}>",
        f"&amp;lt;/{tag}&amp;gt;",
        f"&{'amp;' * 9}lt;/{tag}>",
        f"＆lt;/{tag}>",
        f"&#65308;/{tag}&#65310;",  # entities of full-width brackets
        f"&l\u200bt;/{first}&#{ord(rest[0])};{rest[1:]}>",
    ]


def _visible(hit: re.Match[str]) -> str:
    return "" if unicodedata.category(hit[0])[0] == "C" else hit[0]


@cache
def _opening(tags: frozenset[str]) -> re.Pattern[str]:
    return re.compile(rf"<\s*({'|'.join(sorted(tags))})\s*>", re.IGNORECASE)


@cache
def _closing(tag: str) -> re.Pattern[str]:
    return re.compile(rf"<\s*/\s*{tag}\s*>", re.IGNORECASE)
