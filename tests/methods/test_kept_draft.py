"""A remedy never returns something worse than it was given, by its own evaluators.

Evaluators are scripted: each text gets marks by a table, and some marks are missing.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.agents import Agent, FreeText, Reply
from evenhand.agents.prompts import LETTERS
from evenhand.core import OUTCOMES, Answer, Item, registry
from evenhand.core.errors import ScorerFailed, UnreadableReply
from evenhand.methods import Mabrf, StarDTox, named, of_record
from evenhand.methods import settings as settings_of
from evenhand.methods.baselines.several_drafts import BestOfN, Feedback, SelfRefine
from evenhand.methods.evaluators import PropertyRating, Scored
from evenhand.methods.mabrf import Rephrased, Verdict
from evenhand.methods.stardtox import Harm, Quality, Support

TEXT = Item(id="t", prompt="Describe a neighbour.")
STORED = replace(TEXT, answer=" They are\u00a0idiots.\r\n")
QUESTION = Item(id="q", prompt="Who?", context="Both left.", choices=("X", "Y", "Unknown"))
TEAM = """
[[evaluator]]
name = "insulting"
below = 0.3
prompt = '{{ draft | marked("text") }}'

[[evaluator]]
name = "courtesy"
above = 0.6
prompt = '{{ draft | marked("text") }}'
"""
LOOP = asyncio.Runner()  # one for all: a loop for each answer would take most of the time
Marks = Mapping[str, int | None]  # of one text, by the evaluator; None: it gives none


class Script:
    """Everybody whom a method may ask. A text is called by its number: the stored answer or first
    draft is 0; a mark of it is looked up by that number."""

    def __init__(self, marks: Sequence[Marks], choices: int) -> None:
        self._marks = marks
        self._choices = choices
        self._texts: list[str] = []
        self.asked = 0

    async def __call__(self, agent: Agent[Any], /, **given: Any) -> Any:
        self.asked += 1
        judged = given.get("draft", given.get("chosen", given.get("reasoning")))
        if agent.judges:
            return self._mark(agent, str(judged))
        if agent.reply is FreeText:
            return FreeText(text=self._new("draft"))
        if agent.reply is Rephrased:
            return Rephrased(reasoning=self._new("reasoning"))
        self._choices, chosen = divmod(self._choices, 3)
        letter = LETTERS[chosen]
        extra = {"reasoning": self._new("reasoning")} if "reasoning" in _names(agent) else {}
        return agent.reply(answer=letter, **extra)

    def marks_of(self, text: str) -> Marks:
        """The marks of a text that a method has seen, each once and for all."""
        if text not in self._texts:
            self._texts.append(text)
        return self._marks[self._texts.index(text) % len(self._marks)]

    def _new(self, kind: str) -> str:
        return f"{kind} {self.asked}"

    def _mark(self, agent: Agent[Any], text: str) -> Reply:
        marks = self.marks_of(text)
        name = agent.role if agent.reply in (Quality, PropertyRating) else "harm"
        mark = marks[name]
        if mark is None and agent.reply is Scored:
            raise ScorerFailed("no score")
        if mark is None:
            raise UnreadableReply("wrong_shape", "not a mark")
        made: Reply = REPLIES[agent.reply](mark)
        return made


REPLIES: dict[type[Reply], Callable[[int], Reply]] = {
    Scored: lambda mark: Scored(toxicity=mark / 100, attributes={}, because=[]),
    Harm: lambda mark: Harm(reason="r", harm=mark),
    Support: lambda mark: Support(reason="r", support=100 - mark),
    Verdict: lambda mark: Verdict(
        bias_reason="r", bias=1 + mark // 12, relevancy_reason="r", relevancy=5
    ),
    Feedback: lambda mark: Feedback(feedback="f", stop=mark < 50),
    Quality: lambda mark: Quality(reason="r", fluency=mark, coherence=mark, relevance=mark),
    PropertyRating: lambda mark: PropertyRating(reason="r", score=mark),
}


def _names(agent: Agent[Any]) -> set[str]:
    return set(agent.reply.model_fields)


def _measure(script: Script, method: Any, text: str) -> tuple[float, ...] | None:
    """Harm by the method's own evaluators, computed from the table and not from its scores."""
    marks = script.marks_of(text)
    wanted = ["harm"]
    if isinstance(method, StarDTox) and method.evaluators and text not in QUESTION.choices:
        wanted.append("insulting")
    found = [marks[name] for name in wanted]
    if None in found:
        return None
    if isinstance(method, SelfRefine):
        return (float((found[0] or 0) >= 50),)
    if isinstance(method, Mabrf):
        return (1 + (found[0] or 0) // 12,)
    return tuple(float(one or 0) for one in found)


def _ended(method: Any, item: Item, script: Script) -> Answer | None:
    """The answer; None where the item failed."""
    try:
        answer: Answer = LOOP.run(method.answer(item, script))
    except (UnreadableReply, ScorerFailed):
        return None
    return answer


_MARK = st.one_of(st.none(), st.sampled_from([0, 5, 9, 10, 11, 50, 80, 100]), st.integers(0, 100))
_TABLE = st.lists(
    st.fixed_dictionaries(
        {
            "harm": _MARK,
            "performance_evaluator": _MARK,
            "insulting": _MARK,
            "courtesy": _MARK,
        }
    ),
    min_size=1,
    max_size=6,
)
_CHOICES = st.integers(0, 3**8 - 1)  # what is chosen, in base 3
METHODS: dict[str, Callable[[], Any]] = {
    "stardtox": StarDTox,
    "stardtox, by a rule": lambda: StarDTox(bias_brain="rule", max_iterations=4),
    "stardtox, without quality": lambda: StarDTox(performance=False),
    "stardtox, a team": lambda: StarDTox(evaluators=TEAM),
    "stardtox, no revision": lambda: StarDTox(max_iterations=0),
    "self_refine": SelfRefine,
    "best_of_n": BestOfN,
    "mabrf": Mabrf,
}
REPAIRING = {"stardtox", "self_refine", "best_of_n", "mabrf"}


def _items(method: Any) -> list[Item]:
    stored = replace(QUESTION, answer="Y")
    texts = [] if isinstance(method, Mabrf) else [TEXT, STORED]
    return [*texts, QUESTION, *([] if isinstance(method, Mabrf) else [stored])]


@pytest.mark.parametrize("name", METHODS)
@settings(max_examples=40, deadline=None)
@given(marks=_TABLE, choices=_CHOICES)
def test_harm_by_the_methods_own_evaluators_never_rises(
    name: str, marks: list[Marks], choices: int
) -> None:
    method = METHODS[name]()
    for item in _items(method):
        script = Script(marks, choices)
        answer = _ended(method, item, script)
        if answer is None:
            assert not item.answer  # what is stored is given back, judged or not
            continue
        first, final = answer.drafts[0], answer.final
        judged = [
            one.reasoning if isinstance(method, Mabrf) else one.text for one in (first, final)
        ]
        before, after = (_measure(script, method, text) for text in judged)
        assert answer.outcome is None or answer.outcome in OUTCOMES
        assert answer.outcome != "not_improved"
        if judged[0] == judged[1]:
            continue
        assert before is not None
        assert after is not None
        assert all(there <= here for here, there in zip(before, after, strict=True))


@pytest.mark.parametrize("name", [name for name in METHODS if name != "mabrf"])
@settings(max_examples=30, deadline=None)
@given(marks=_TABLE, choices=_CHOICES)
def test_a_stored_answer_that_is_clean_or_cannot_be_judged_comes_back_to_the_byte(
    name: str, marks: list[Marks], choices: int
) -> None:
    method = METHODS[name]()
    script = Script(marks, choices)
    answer = _ended(method, STORED, script)
    assert answer is not None
    assert STORED.answer is not None
    harms = _measure(script, method, STORED.answer)
    if harms is None:
        assert (answer.text, answer.changed) == (STORED.answer, False)
        assert answer.outcome == "not_judged"
        return
    limits = (0.5,) if isinstance(method, SelfRefine) else (10, 30)
    if all(harm < limit for harm, limit in zip(harms, limits, strict=False)):
        assert (answer.text, answer.outcome, answer.stopped) == (
            *(STORED.answer, "accepted"),
            "accepted",
        )


@pytest.mark.parametrize("name", METHODS)
@settings(max_examples=15, deadline=None)
@given(marks=_TABLE, choices=_CHOICES)
def test_an_outcome_says_what_happened_to_the_text(
    name: str, marks: list[Marks], choices: int
) -> None:
    method = METHODS[name]()
    for item in _items(method):
        answer = _ended(method, item, Script(marks, choices))
        if answer is None or answer.outcome is None:
            continue
        assert (answer.stopped == "accepted") <= (answer.outcome == "accepted")
        if answer.outcome in ("unchanged", "not_judged"):
            assert not answer.changed


def test_every_method_that_judges_and_drafts_again_is_tested_here() -> None:
    """A method that has `keep`, or bounds of harm, has to be in the list above."""
    kinds = {name: named(name) for name in registry.OWN["methods"]}
    found = {
        name
        for name, kind in kinds.items()
        if hasattr(kind, "bounds") or "keep" in {one.name for one in fields(kind)}
    }
    assert found == REPAIRING


# -- worked by hand ------------------------------------------------------------------------------


def _by(harms: list[int | None], method: Any, item: Item = TEXT, quality: int = 90) -> Answer:
    marks = [{"harm": one, "performance_evaluator": quality} for one in harms]
    answer: Answer = LOOP.run(method.answer(item, Script(marks, 0)))
    return answer


@pytest.mark.parametrize(
    ("harms", "kept", "outcome", "stopped"),
    [
        ([20, 80, 60], 0, "unchanged", "max_iterations"),
        ([100, 100, 100], 0, "unchanged", "max_iterations"),  # ties go to the earliest
        ([60, 20, 80], 1, "improved_not_accepted", "max_iterations"),
        ([60, 20, 20], 1, "improved_not_accepted", "max_iterations"),
        ([60, 20, 9], 2, "accepted", "accepted"),
        ([9], 0, "accepted", "accepted"),
        ([60, None], 0, "unchanged", "judge_failed"),
        ([60, 20, None], 1, "improved_not_accepted", "judge_failed"),
    ],
)
def test_the_best_draft_is_the_answer(
    harms: list[int | None], kept: int, outcome: str, stopped: str
) -> None:
    answer = _by(harms, StarDTox())
    assert (answer.kept % len(answer.drafts), answer.outcome) == (kept, outcome)
    assert (answer.stopped, answer.text) == (stopped, answer.drafts[kept].text)
    assert answer.changed == (kept > 0)


@pytest.mark.parametrize(
    ("harms", "outcome"),
    [([20, 60, 80], "not_improved"), ([80, 80, 60], "improved_not_accepted")],
)
def test_the_papers_loop_returns_its_last_draft_and_says_whether_that_is_better(
    harms: list[int | None], outcome: str
) -> None:
    answer = _by(harms, StarDTox(keep="last"))
    assert (answer.text, answer.outcome) == (answer.drafts[2].text, outcome)


def test_a_stored_answer_without_harm_is_not_rewritten_for_its_quality() -> None:
    stays = _by([0, 0, 0], StarDTox(), STORED, quality=10)
    assert (stays.drafts[0].text, len(stays.drafts)) == (STORED.answer, 1)
    assert (stays.outcome, stays.final.scores["fluency"]) == ("accepted", 0.1)
    assert len(_by([0, 0, 0], StarDTox(keep="last"), STORED, quality=10).drafts) == 3


def test_a_better_text_that_is_more_harmful_than_the_first_draft_is_not_taken() -> None:
    """Both are within the bound of 0.1; the first is refused for its language."""
    marks = [
        {"harm": 2, "performance_evaluator": 50},
        *[{"harm": 8, "performance_evaluator": 95}] * 2,
    ]
    answer = LOOP.run(StarDTox().answer(TEXT, Script(marks, 0)))
    assert (answer.outcome, answer.changed, len(answer.drafts)) == ("unchanged", False, 3)
    papers = LOOP.run(StarDTox(keep="last").answer(TEXT, Script(marks, 0)))
    assert (papers.outcome, papers.final.scores["harm"]) == ("accepted", 0.08)


def test_a_record_without_the_setting_is_of_a_run_that_kept_the_last_draft() -> None:
    assert settings_of(StarDTox())["keep"] == "best"
    papers = settings_of(StarDTox(keep="last"))
    assert "keep" not in papers
    assert of_record({"name": "stardtox", "settings": papers}) == StarDTox(keep="last")
