"""What a model, a server, a file or its name says is words on the screen, and no command to it."""

import json
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from rich.console import RenderableType
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from evenhand.cli import screen
from evenhand.views import html, markdown, terminal
from evenhand.views.blocks import GAP, Block, Grid, Line
from evenhand.views.visible import visible
from tests.cli.conftest import Run
from tests.loopback import replies
from tests.loopback.http import Call
from tests.loopback.http import Line as Wire
from tests.loopback.process import in_own_process

_BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_NO_WIDTH = "\u00ad\u180e\u200b\u200c\u200d\u2060\u2061\u2062\u2063\u2064\ufeff\ufff9\ufffa\ufffb"
_FILLERS = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2028\u2029\u3164\uffa0"
_SELECTORS = "".join(map(chr, [*range(0xFE00, 0xFE10), 0xE0100, 0xE01EF]))
_TAGS = "".join(map(chr, range(0xE0000, 0xE0080)))
_CONTROLS = "".join(map(chr, [*range(9), *range(11, 32), *range(127, 160)]))
BAD = frozenset(_CONTROLS + _BIDI + _NO_WIDTH + _FILLERS + _SELECTORS + _TAGS)
_ATTACKS = [
    "\x1b]0;title\x07",
    "\x1b[2J\x1b[H",
    "\x1b]52;c;cm0gLXJm\x1b\\",
    "\x1b]8;;http://evil.example\x07link\x1b]8;;\x07",
    "\x9b31m",
    "\x9d0;title\x9c",
    "\x90q\x9c",
    "a\rb",
    "a\b\b\bb",
    "[red]x",
    "[/x]",
    "[/]",
    "[link=http://evil.example]x[/link]",
    "[@click=quit]x[/]",
    "\\[red]",
    ":smile: :warning:",
    "rm -rf \u202e/ #",
    "<script>alert(1)</script>",
    "| a | **b** `c`",
    "日本語 עברית ﷽ e\u0301 🙂\ufe0f",
]


def _hostile() -> list[str]:
    """Each sign alone, each attack alone, and attacks with a sign in their middle."""
    singles = sorted(BAD)
    mixed = [attack[:2] + singles[place] + attack[2:] for place, attack in enumerate(_ATTACKS * 5)]
    made = [*singles, *_ATTACKS, *mixed]
    return [f"v{number:03d}{one}w{number:03d}" for number, one in enumerate(made)]


HOSTILE = _hostile()
NAME = "org/m[/x]\x1b[2J\u202e\x9b31m"
TEXT = "\n".join(HOSTILE)


def _seen(text: str) -> str:
    return "".join(sign for sign in text if sign not in BAD)


def test_three_hundred_hostile_strings_are_tried_and_what_can_be_seen_stays() -> None:
    assert len(set(HOSTILE)) >= 290
    for text in HOSTILE:
        assert visible(text) == _seen(text)
    kept = visible("".join(map(chr, range(0x110000))))
    left = {ord(sign) for sign in kept if unicodedata.category(sign) in ("Cc", "Cf", "Cs")}
    # What is left of these kinds has a shape: signs before Arabic numbers, hieroglyphs, music.
    assert left - {9, 10} <= {*range(0x600, 0x900), *range(0x11000, 0x1D17B)}


def _ways(text: str) -> Iterator[RenderableType]:
    table = Table(text, "b", box=None, title=text)
    table.add_row(text, Text(text))
    yield from (text, Text(text), table, screen.WaitingLine(text))
    yield terminal.render([Line(text), Grid(("a", text), ((text, text),), title=text)])


def test_no_hostile_string_steers_the_terminal_however_it_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    console = screen.err
    monkeypatch.setattr(console, "_width", 400)
    for text in HOSTILE:
        file = StringIO()
        monkeypatch.setattr(console, "_file", file)
        for way in _ways(text):
            console.print(way)
        screen.problem(text)
        shown = file.getvalue()
        assert BAD.isdisjoint(shown), text
        assert shown.count(_seen(text)) >= 5, text


def test_a_bar_that_moves_holds_its_own_commands_to_the_terminal_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = StringIO()
    monkeypatch.setattr(screen.err, "_file", file)
    monkeypatch.setattr(screen.err, "_force_terminal", True)
    with Progress(console=screen.err) as progress:
        progress.add_task("x\x9b31m\u202e]0;y", total=1)
    assert "\x1b[" in file.getvalue()  # its own
    assert "x31m]0;y" in file.getvalue()
    assert {"\x9b", "\u202e"}.isdisjoint(file.getvalue())


@dataclass
class Hostile:
    """A server whose model has a hostile name and says hostile things."""

    async def __call__(self, call: Call, line: Wire) -> str:
        if call.path.endswith("/models"):
            await line.send_json({"data": [{"id": NAME}]})
        elif b"REFUSE" in call.raw:
            await line.send_json({"error": {"message": TEXT[:200]}}, status=400)
        else:
            await line.send_json(
                replies.completion(TEXT, prompt_tokens=1, completion_tokens=1, model=NAME)
            )
        return "said"


def test_every_command_shows_hostile_words_as_words(evenhand: Run, tmp_path: Path) -> None:
    out = "runs/a\x9b31m\u202e"
    (tmp_path / "p.jsonl").write_text('{"prompt": "Describe a nurse."}\n{"prompt": "REFUSE"}\n')
    default = ["--method", "default"]
    commands = {
        "doctor": (["doctor"], 0),
        "trace": (["answer", "hi", *default, "--show-trace", "--show-prompts"], 0),
        "refused": (["answer", "REFUSE", *default, "--show-trace"], 1),
        "as JSON": (["answer", "hi", *default, "--json", "--show-trace"], 0),
        "mitigate": (["mitigate", "p.jsonl", *default, "--out", out], None),
        "list": (["runs", "list", "runs"], 0),
        "item": (["runs", "show", out, "--item", "0"], 0),
        "score": (["scorers", "score", "wordlist", *HOSTILE[::10]], 0),
    }
    with in_own_process(Hostile(), lists_models=False) as server:
        given = {"EVENHAND_BASE_URL": server.url, "COLUMNS": "400"}
        for name, (arguments, code) in commands.items():
            ran = evenhand(*arguments, **given)
            shown = ran.stdout + ran.stderr
            print(name, ran.returncode, shown[:300])
            assert "Traceback" not in shown, name
            assert code is None or ran.returncode == code, name
            assert BAD.isdisjoint(shown), name
            if name in ("trace", "item"):
                assert all(_seen(text) in shown for text in HOSTILE), name
            if name == "as JSON":
                assert json.loads(ran.stdout)["text"] == TEXT


def test_exported_pages_hold_no_sign_that_cannot_be_seen() -> None:
    for text in HOSTILE:
        page: list[Block] = [Line(text), Grid(("a", text), ((text, text),), title=text)]
        for made in (html.document(page, text), markdown.render(page)):
            assert BAD.isdisjoint(made)


_MARKUP = (
    "&#8238;evil", "&zwj;", "&lt;b&gt; &amp;amp;", "# big", "####### x", "> said", "~~not~~",
    "1. x", "12) x", "- x", "+ x", "===", "---", "***", "$x$", "![x](y)", "<b>x</b>", "`x`",
    "a | b", "-0.5",
)  # fmt: skip


def _words_of(source: str) -> str:
    """What a reader of the rendered Markdown sees, whose only marks may be those of a table."""
    said = []
    for token in MarkdownIt("commonmark").enable(["strikethrough", "table"]).parse(source):
        assert token.type.removesuffix("_open").removesuffix("_close") in (
            "paragraph", "inline", "table", "thead", "tbody", "tr", "th", "td", "bullet_list",
            "list_item",
        ), source  # fmt: skip
        for part in token.children or ():
            assert part.type in ("text", "text_special", "strong_open", "strong_close"), source
            said.append(part.content)
        said.append("\n")
    return "".join(said)


@pytest.mark.parametrize("text", _MARKUP)
def test_what_markdown_would_read_as_more_than_words_is_words(text: str) -> None:
    """An entity is any sign at all: in rendered Markdown "&#8238;" turned the direction."""
    lines = [Line("before"), Line(text), Line(text, "bad"), Line(text, indent=2)]
    page: list[Block] = [*lines, GAP, Grid(("a", text), ((text, text),), title=text)]
    shown = _words_of(markdown.render(page))
    assert shown.count(text) == 7
    assert BAD.isdisjoint(shown)
