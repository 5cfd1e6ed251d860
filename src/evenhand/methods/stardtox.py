"""StarDTox: generate → (evaluate → revise)* by a team of evaluators (StarDTox paper, Figure 1).

The four components of the figure, each with its brain, toolbox and memory:

| component             | brain                     | toolbox  | memory                      |
| --------------------- | ------------------------- | -------- | --------------------------- |
| response generator    | LLM                       | none     | its own earlier drafts      |
| bias evaluator        | LLM, or a rule on a score | a scorer | none: sees one draft        |
| performance evaluator | LLM                       | none     | none: sees one draft        |
| coordinator           | rules                     | none     | the number of iterations    |

The paper's loop ends with its last draft. Here the best one is returned (`shared_settings.py`), and
a stored answer within the bounds of harm stays as it is; `keep = "last"` is the paper's.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from evenhand.agents import Agent, Ask, Read, Reply, YesNo, one_token, side_by_side, words
from evenhand.agents.agent import RepairRoles
from evenhand.agents.prompts import load
from evenhand.core import Answer, Draft, Item, ScoreLimit
from evenhand.core.errors import UserError
from evenhand.core.items import HARM, SUPPORT
from evenhand.methods.baselines.single_prompt import (
    PLAIN_CHOICE,
    PLAIN_TEXT,
    choice_agent,
    draft_by,
    first_draft,
    question,
    text_agent,
)
from evenhand.methods.evaluators import (
    RULE,
    ChoiceBrain,
    EvaluatorMarks,
    Scored,
    agents_of,
    calls_on_choices,
    of_choice,
    on,
    scoring_agent,
    support_bound,
    support_by_rule,
    team,
)
from evenhand.methods.shared_settings import (
    JUDGE_FAILED,
    LAST_BEFORE,
    Critique,
    JudgedDraft,
    Keep,
    MissingMark,
    Wording,
    attempted,
    critics,
    kept,
    shown,
    worded,
)

Reason = Annotated[str, words(240)]
Percent = Annotated[int, Field(ge=0, le=100)]


class Harm(Reply):
    reason: Reason
    harm: Percent


class Support(Reply):
    reason: Reason
    support: Percent


class Quality(Reply):
    reason: Reason
    fluency: Percent
    coherence: Percent
    relevance: Percent


_REVISE_TEXT = load("stardtox/revise_text")
_REVISE_CHOICE = load("stardtox/revise_choice")

WRITER = text_agent(PLAIN_TEXT)
TEXT_JUDGE = Agent(
    "bias_evaluator", load("stardtox/judge_text"), Harm, temperature=0.0, kind="judge"
)
SCORER = scoring_agent(
    "scorer",
    "Assign a scorer to `scorer` under [roles] in the config file, or in Python to "
    "`scorer` of the Cast, such as ScorerModel(WordList()).",
)
PERFORMANCE = Agent(
    "performance_evaluator",
    load("stardtox/performance"),
    Quality,
    temperature=0.0,
    kind="judge",
)
SUPPORT_JUDGE = Agent(
    "bias_evaluator", load("stardtox/judge_choice"), Support, temperature=0.0, kind="judge"
)
IS_HARMFUL = one_token("bias_evaluator", load("stardtox/judge_text_yes_no"), YesNo, "judge")
IS_SUPPORTED = one_token("bias_evaluator", load("stardtox/judge_choice_yes_no"), YesNo, "judge")


def judges(read: Read, wording: Wording = "ours") -> tuple[Agent[Any], Agent[Any]]:
    """The language model's judge of a text, and that of a choice. Of the former the paper has no
    words that ours could differ from."""
    by_json = read == "json"
    of_choice = SUPPORT_JUDGE if by_json else IS_SUPPORTED
    return TEXT_JUDGE if by_json else IS_HARMFUL, worded(of_choice, wording)


async def harm_of(item: Item, draft: Draft, ask: Ask, read: Read) -> tuple[float, str]:
    """Ask the judge how harmful a text is.

    Args:
        item: The item that the draft answers.
        draft: The text to judge.
        ask: Asks an agent.
        read: "json" for a score with a reason; otherwise by the probability of yes.

    Returns:
        The harm from 0 to 1, and what is wrong with the text.
    """
    if read == "json":
        verdict = await ask(TEXT_JUDGE, prompt=item.prompt, draft=draft.text)
        return verdict.harm / 100, verdict.reason
    harmful = await ask(IS_HARMFUL, prompt=item.prompt, draft=draft.text)
    return harmful.mark, "it reads as harmful, or as unfair to a group of people"


async def support_of(
    item: Item, draft: Draft, ask: Ask, read: Read, wording: Wording = "ours"
) -> tuple[float, str]:
    """Ask the judge how well the context supports a choice.

    Args:
        item: The question that the draft answers.
        draft: The choice to judge.
        ask: Asks an agent.
        read: "json" for a score with a reason; otherwise by the probability of yes.
        wording: Whose prompt the judge gets.

    Returns:
        The support from 0 to 1, and what is missing.
    """
    _, judge = judges(read, wording)
    verdict = await ask(judge, **question(item), chosen=draft.text)
    if read == "json":
        return verdict.support / 100, verdict.reason
    return verdict.mark, "the context does not seem to state it"


_Harmful = tuple[float, str]  # what `harm_of` gives
_MORE_HARMFUL = "It is more harmful than the first answer was."


@dataclass(frozen=True, slots=True)
class _Review:
    """What the evaluators make of one draft: each its marks, or why it gave none. Without an
    objection they accept it."""

    of_harm: tuple[EvaluatorMarks | MissingMark, ...]
    of_quality: tuple[EvaluatorMarks | MissingMark, ...]

    @property
    def marks(self) -> tuple[EvaluatorMarks, ...]:
        return tuple(
            mark for mark in (*self.of_harm, *self.of_quality) if isinstance(mark, EvaluatorMarks)
        )

    @property
    def failure(self) -> MissingMark | None:
        every = (*self.of_harm, *self.of_quality)
        return next((mark for mark in every if not isinstance(mark, EvaluatorMarks)), None)

    @property
    def objections(self) -> tuple[str, ...]:
        return tuple(objection for mark in self.marks for objection in mark.objections)

    @property
    def accepts(self) -> bool:
        return self.failure is None and not self.objections

    @property
    def clean(self) -> bool:
        """Every evaluator of harm gave a mark, and none objects."""
        return all(
            isinstance(mark, EvaluatorMarks) and not mark.objections for mark in self.of_harm
        )

    def judged(self, draft: Draft, *, accepted: bool) -> JudgedDraft:
        """The draft with these marks."""
        scores = {name: value for mark in self.marks for name, value in mark.scores.items()}
        harms = tuple(mark.harm for mark in self.marks if mark.harm is not None)
        qualities = [mark.quality for mark in self.marks if mark.quality is not None]
        return JudgedDraft(
            draft=replace(draft, scores=scores),
            accepted=accepted,
            harms=None if self.failure else harms,
            quality=sum(qualities) / len(qualities) if qualities else 0.0,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StarDTox:
    """
    >>> method = StarDTox(bias_brain="rule", performance=False)
    """

    name: ClassVar[str] = "stardtox"
    repairs: ClassVar[RepairRoles] = RepairRoles(
        scales={"harm": HARM, "support": SUPPORT},
        writer=WRITER.role,
        reviser=WRITER.role,
        critics={TEXT_JUDGE.role: "reason", SCORER.role: None, RULE.role: None},
    )
    calls_an_item: ClassVar[str] = "2 to 6, text: 3 to 9"

    max_iterations: Annotated[int, Field(ge=0)] = (
        2  # paper V: Tables II and III show two iterations
    )
    evaluators: str = ""  # paper III: a modular team; further ones, in TOML (`evaluators.py`)
    fluency_above: float | None = None  # our choice: None is quality_above, as for the next two
    coherence_above: float | None = None
    relevance_above: float | None = None
    harm_below: float = 0.1  # paper III-D: "toxicity below 0.1"; no other attribute decides
    quality_above: float = 0.8  # paper III-D: "fluency above 0.8"; we hold all three to it
    support_above: float | None = None  # None: 0.8 for a language model, 0.058 for the rule
    bias_brain: Literal["llm", "rule"] = "llm"  # paper III-B; of texts
    choice_brain: ChoiceBrain = (
        "llm"  # paper IV-A; "rule" is III-B's: the context-support classifier
    )
    performance: bool = True  # paper IV-B: the ablation; never used on choices (IV-A)
    critique: Critique = "own"  # our choice: "empty" and "other" are controls
    keep: Keep = field(
        default="best", metadata=LAST_BEFORE
    )  # our choice: the best draft; "last" is the paper's loop
    read: Read = "json"  # our choice; "logprob" is of the bias evaluator, LLM-based, alone
    wording: Wording = "ours"  # our choice: "paper" judges a choice without a rule for "unknown"

    def __post_init__(self) -> None:
        team(self.evaluators)  # refused before anything is asked
        self.support_bound()

    def support_bound(self) -> float:
        """Give the bound of support in force."""
        return support_bound(self.choice_brain, self.support_above)

    def agents(self) -> tuple[Agent[Any], ...]:
        of_text, llm = judges(self.read, self.wording)
        judge = SCORER if self.bias_brain == "rule" else of_text
        quality = (*(PERFORMANCE,) * self.performance, *agents_of(self.evaluators))
        on_text = (WRITER, text_agent(_REVISE_TEXT), judge, *quality)
        on_choices = (
            choice_agent(PLAIN_CHOICE, 3),
            choice_agent(_REVISE_CHOICE, 3),
            of_choice(self.choice_brain, llm),
        )
        return *on_text, *on_choices, *critics(self.critique)

    def within(self, calls: int) -> Self:
        """As many revisions as fit, counted as on choices: 2 calls and 2 a revision. A text takes
        3 and 3; lending a critique of another item takes no model, so it is not counted."""
        each = 2 + calls_on_choices(self.evaluators)
        if calls < each:
            raise UserError(
                f"stardtox needs at least {each} calls per item, and the limit is {calls}. Raise "
                "`calls` under [limits] in the config."
            )
        return replace(self, max_iterations=calls // each - 1)

    def bounds(self) -> tuple[ScoreLimit, ...]:
        """The scores that measure harm, and what they are held to."""
        return (
            ScoreLimit(score="harm", limit=self.harm_below),
            ScoreLimit(score="support", limit=self.support_bound(), higher_is_worse=False),
            *(
                ScoreLimit(score=evaluator.name, limit=evaluator.bound)
                for evaluator in team(self.evaluators)
                if evaluator.at_most
            ),
        )

    async def answer(self, item: Item, ask: Ask) -> Answer:
        judged: list[JudgedDraft] = []
        reviews: dict[str, _Review] = {}  # an evaluator has no memory: the same draft, the same one
        draft = await first_draft(item, ask)
        for iteration in range(self.max_iterations + 1):
            if draft.text not in reviews:
                reviews[draft.text] = await self._review(item, draft, ask)
            review = reviews[draft.text]
            judged.append(self._judged(item, draft, review, judged))
            if judged[-1].accepted:
                return kept(judged, self.keep, "accepted")
            if review.failure is not None:
                if self.keep == "last" or (len(judged) == 1 and not item.answer):
                    raise review.failure.error
                return kept(judged, self.keep, JUDGE_FAILED)
            if iteration < self.max_iterations:
                objections = review.objections or (_MORE_HARMFUL,)
                notes = await shown(self.critique, objections, item, ask)
                draft = await self._revise(
                    item, [candidate.draft for candidate in judged], notes, ask
                )
        return kept(judged, self.keep, "max_iterations")

    def _judged(
        self, item: Item, draft: Draft, review: _Review, before: Sequence[JudgedDraft]
    ) -> JudgedDraft:
        """The draft with its marks, and whether it is accepted. A stored answer is not rewritten
        for its quality, and a revision must not be more harmful than the first draft."""
        if self.keep == "last":
            return review.judged(draft, accepted=review.accepts)
        if not before:
            stays = bool(item.answer) and review.clean
            return review.judged(draft, accepted=stays or review.accepts)
        candidate = review.judged(draft, accepted=review.accepts)
        return replace(candidate, accepted=candidate.accepted and not candidate.rises(before[0]))

    # -- response generator --------------------------------------------------------------------

    async def _revise(
        self, item: Item, drafts: list[Draft], objections: tuple[str, ...], ask: Ask
    ) -> Draft:
        memory = {"history": [draft.text for draft in drafts], "feedback": objections}
        return await draft_by(item, ask, _REVISE_TEXT, _REVISE_CHOICE, **memory)

    # -- evaluators, asked side by side ----------------------------------------------------------

    async def _review(self, item: Item, draft: Draft, ask: Ask) -> _Review:
        """The review of a draft, by all evaluators of such an item."""
        further = on(self.evaluators, item)
        built_in = self._support if item.choices else self._harm
        of_harm = [built_in, *(evaluator.look for evaluator in further if evaluator.at_most)]
        of_quality = [evaluator.look for evaluator in further if not evaluator.at_most]
        if self.performance and not item.choices:
            of_quality.insert(0, self._quality)
        outcomes = await side_by_side(
            *(attempted(look, item, draft, ask) for look in (*of_harm, *of_quality))
        )
        return _Review(tuple(outcomes[: len(of_harm)]), tuple(outcomes[len(of_harm) :]))

    async def _support(self, item: Item, draft: Draft, ask: Ask) -> EvaluatorMarks:
        if self.choice_brain == "rule":
            support, missing = await support_by_rule(item, draft, ask)
        else:
            support, missing = await support_of(item, draft, ask, self.read, self.wording)
        return self._of_support(support, missing)

    async def _harm(self, item: Item, draft: Draft, ask: Ask) -> EvaluatorMarks:
        if self.bias_brain == "rule":
            return self._of_harm(await ask(SCORER, draft=draft.text))
        return self._of_harm(await harm_of(item, draft, ask, self.read))

    async def _quality(self, item: Item, draft: Draft, ask: Ask) -> EvaluatorMarks:
        return self._of_quality(await ask(PERFORMANCE, prompt=item.prompt, draft=draft.text))

    # -- coordinator: rules; both bounds are strict ----------------------------------------------

    def _of_quality(self, quality: Quality) -> EvaluatorMarks:
        traits = {t: getattr(quality, t) / 100 for t in ("fluency", "coherence", "relevance")}
        bounds = {trait: self._least(trait) for trait in traits}
        objections = []
        for bound in dict.fromkeys(bounds.values()):
            weak = [t for t, value in traits.items() if bounds[t] == bound and not value > bound]
            if weak:
                objections.append(
                    f"{', '.join(weak).capitalize()} too low (must be above {bound:g}): "
                    f"{quality.reason}"
                )
        return EvaluatorMarks(traits, tuple(objections), quality=sum(traits.values()) / len(traits))

    def _least(self, trait: str) -> float:
        least: float | None = getattr(self, f"{trait}_above")
        return self.quality_above if least is None else least

    def _of_harm(self, bias: _Harmful | Scored) -> EvaluatorMarks:
        """Toxicity decides; the other attributes say of what kind it is."""
        if isinstance(bias, Scored):
            harm, reason = bias.toxicity, "; ".join(bias.because) or "it reads as toxic"
            kinds = self._kinds(bias.attributes)
            scores = {"harm": harm, **bias.attributes}
        else:
            (harm, reason), kinds = bias, ""
            scores = {"harm": harm}
        if harm < self.harm_below:
            return EvaluatorMarks(scores, (), harm=harm)
        objection = f"Harm {harm:.2f} (must be below {self.harm_below:g}{kinds}): {reason}"
        return EvaluatorMarks(scores, (objection,), harm=harm)

    def _kinds(self, attributes: dict[str, float]) -> str:
        """The attributes that are too high as well, the highest first."""
        high = [(value, name) for name, value in attributes.items() if value >= self.harm_below]
        labels = [f"{name.replace('_', ' ')} {value:.2f}" for value, name in sorted(high)[::-1]]
        return "".join(f"; {label}" for label in labels)

    def _of_support(self, support: float, missing: str) -> EvaluatorMarks:
        scores = {"support": support}
        if support > self.support_bound():
            return EvaluatorMarks(scores, (), harm=-support)
        objection = (
            f"Supported by the context only to {support:.2f} (must be above "
            f"{self.support_bound():g}): {missing}"
        )
        return EvaluatorMarks(scores, (objection,), harm=-support)
