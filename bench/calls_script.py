"""The scripted model of `bench/calls.py`: what it says to an item follows from the item alone.

The mix is made up, and stated here in full; the bench also prints each path by itself, so that any
other mix can be weighed.

- 62 % of the items pass their first verdict, 25 % after one revision, 13 % never.
- On an item that never passes, each attempt of the rephraser is one of three, equally likely: new
  words that are no more biased, new words that are more biased, the same words again. The reviser
  of StarDTox insists on its option or moves to another, equally likely.
- A query finds three pages (80 %), nothing (15 %), or fails (5 %).
- The option follows from the reasoning: asked twice about the same reasoning, the model chooses
  the same one. Without this, a terminating agent could overrule a solver whose reasoning passed.
"""

import hashlib
import json
import re
from collections.abc import Callable

from evenhand.agents import Cast
from evenhand.core import Item
from evenhand.core.errors import ModelError, SearchFailed
from evenhand.models import ModelRequest, ScriptedModel

AT_ONCE, ONE_REVISION, NEVER = "at once", "one revision", "never"
MIX = {AT_ONCE: 0.62, ONE_REVISION: 0.25, NEVER: 0.13}
NOTHING_FOUND, FAILED = 0.15, 0.05
_BIASED, _PASSES = 6, 1
_REASONING = re.compile(r"<reasoning>\n(.*?)\n</reasoning>", re.DOTALL)
_CHOSEN = re.compile(r"<answer>\n(.*?)\n</answer>", re.DOTALL)


def share(*of: object) -> float:
    """A number from 0 to 1 that is always the same for the same things."""
    digest = hashlib.sha256(":".join(map(str, of)).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def path_of(item: Item, loop: str) -> str:
    drawn, reached = share(item.id, loop, "path"), 0.0
    for path, part in MIX.items():
        reached += part
        if drawn < reached:
            return path
    return NEVER


class Script:
    """What every agent says about one item, from the first call to the last."""

    def __init__(self, item: Item, *, fresh: bool = False) -> None:
        self._item = item
        self._fresh = fresh  # nobody repeats itself or gets worse: the least that can be saved
        self._option = int(share(item.id, "solver") * 3)
        self._attempts = 0
        self._drafts: list[int] = []
        self._first = _steps(item, "The question is about two people.", 0)
        self._grades = {self._first: _PASSES if self._path("mabrf") == AT_ONCE else _BIASED}

    def cast(self, seconds: float) -> Cast:
        """Everybody takes `seconds` to answer, the search engine too."""
        said: dict[str, Callable[[ModelRequest], str | ModelError]] = {
            "solver": lambda _: self._said(reasoning=self._first, answer="ABC"[self._option]),
            "judge": self._judge,
            "rephraser": self._rephrase,
            "terminator": self._terminate,
            "planner": self._plan,
            "summariser": self._summarise,
            "generator": self._choose,
            "bias_evaluator": self._support,
        }
        roles = {
            role: ScriptedModel(say, name="model", seconds=seconds) for role, say in said.items()
        }
        engine = ScriptedModel(self._search, name="engine", seconds=seconds)
        return Cast(roles["solver"], {**roles, "search": engine})

    def _path(self, loop: str) -> str:
        return path_of(self._item, loop)

    @staticmethod
    def _said(**fields: object) -> str:
        return json.dumps(fields)

    # -- MABRF -----------------------------------------------------------------------------------

    def _judge(self, request: ModelRequest) -> str:
        bias = self._grades[_inside(_REASONING, request)]
        reason = "No step rests on more than the context." if bias == 1 else "Step 2 assumes."
        said = {"bias_reason": reason, "bias": bias}
        return self._said(**said, relevancy_reason="It keeps to the context.", relevancy=8)

    def _rephrase(self, request: ModelRequest) -> str:
        self._attempts += 1
        before = _inside(_REASONING, request)
        after, grade = self._attempt(before)
        self._grades.setdefault(after, grade)
        return self._said(reasoning=after)

    def _attempt(self, before: str) -> tuple[str, int]:
        number, grade = self._attempts, self._grades[before]
        if self._path("mabrf") == ONE_REVISION:
            return _steps(self._item, "The context does not say which of them.", number), _PASSES
        drawn = 1.0 if self._fresh else share(self._item.id, "attempt", number)
        if drawn < 1 / 3:
            return before, grade
        if drawn < 2 / 3:
            return _steps(self._item, "One of them is surely the one.", number), grade + 2
        return _steps(self._item, "One of them may be the one.", number), max(2, grade - 1)

    def _terminate(self, request: ModelRequest) -> str:
        reasoning = _inside(_REASONING, request)
        drawn = int(share(self._item.id, reasoning) * 3)
        return self._said(answer="ABC"[self._option if reasoning == self._first else drawn])

    # -- its search ------------------------------------------------------------------------------

    def _plan(self, request: ModelRequest) -> str:
        words = request.messages[-1].content
        about = share(words.partition("<reasoning>")[2])
        queries = [f"research on assumption {about:.6f} part {n}" for n in range(3)]
        fields = {"groups": [], "queries": queries}
        asked = request.schema.body["properties"] if request.schema else {}
        return json.dumps({name: fields[name] for name in asked})

    def _search(self, request: ModelRequest) -> str | ModelError:
        query = request.messages[-1].content
        drawn = share(self._item.id, query)
        if drawn < FAILED:
            return SearchFailed("HTTP 503")
        pages = 0 if drawn < FAILED + NOTHING_FOUND else 3
        hits = [
            {
                "url": f"https://example.org/{share(query, n):.12f}",
                "title": "A survey",
                "text": f"What {query} found. " + "The groups did not differ. " * 20,
                "sha256": "0" * 64,
                "fetched": True,
            }
            for n in range(pages)
        ]
        return self._said(query=query, engine="engine", hits=hits)

    def _summarise(self, request: ModelRequest) -> str:
        sources = request.messages[-1].content.count("<source>")
        facts = [{"fact": "The groups did not differ.", "source": n + 1} for n in range(sources)]
        return self._said(facts=facts, contradictions=[], gaps=[])

    # -- StarDTox ----------------------------------------------------------------------------------

    def _choose(self, _: ModelRequest) -> str:
        self._drafts.append(self._next() if self._drafts else self._option)
        return self._said(answer="ABC"[self._drafts[-1]])

    def _next(self) -> int:
        insists = not self._fresh and share(self._item.id, "reviser", len(self._drafts)) < 1 / 2
        if insists and self._path("stardtox") == NEVER:
            return self._drafts[-1]
        return (self._drafts[-1] + 1) % 3

    def _support(self, request: ModelRequest) -> str:
        chosen = self._item.choices.index(_inside(_CHOSEN, request))
        path = self._path("stardtox")
        passes = path == AT_ONCE or (path == ONE_REVISION and chosen != self._option)
        reason = "The context states it." if passes else "The context does not state it."
        return self._said(reason=reason, support=95 if passes else 30)


def _inside(tag: re.Pattern[str], request: ModelRequest) -> str:
    found = tag.search(request.messages[-1].content)
    assert found is not None
    return found[1]


def _steps(item: Item, thought: str, version: int) -> str:
    told = item.context.split(". ")[0]
    return f"1. The context says: {told}.\n2. {thought}\n3. That is version {version}."
