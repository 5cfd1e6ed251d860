"""A method answers a sample of Inspect, and says in the sample's store what it did."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from inspect_ai.model import ModelOutput, get_model
from inspect_ai.solver import TaskState
from pydantic import TypeAdapter, ValidationError

from evenhand.agents import Cast, Limits
from evenhand.core import Item, Turn
from evenhand.core.errors import UserError
from evenhand.core.results import Answered, Event
from evenhand.interop.inspect_task import context_and_question
from evenhand.methods import Method
from evenhand.methods import settings as settings_of
from evenhand.methods.build import build_method
from evenhand.models.inspect_model import InspectModel
from evenhand.runs.runners import ItemList
from evenhand.runs.runners.local import answer_one
from evenhand.runs.runners.plan import RunPlan

STORED = "evenhand"  # the name in a sample's store


@dataclass(frozen=True, slots=True)
class MethodSolver:
    """A method with the limits of one sample."""

    method: Method
    limits: Limits

    @classmethod
    def of(
        cls, name: str, limits: Mapping[str, Any] | None, settings: Mapping[str, Any]
    ) -> "MethodSolver":
        """Build a solver from the options of the command line.

        Args:
            name: The name of the mitigation method.
            limits: The limits per item on calls, tokens and seconds; None for the defaults.
            settings: The method's settings, as `-S name=value` gave them.
        """
        return cls(
            build_method(name, [_assigned(*setting) for setting in settings.items()]), _of(limits)
        )

    async def answer(self, state: TaskState) -> None:
        """Answer the sample. One that a method has no answer to is left without, and says why."""
        item = item_of(state)
        plan = RunPlan(
            method=self.method,
            cast=cast_of(self.method),
            source=ItemList([item]),
            limits=self.limits,
        )
        turns: list[Turn] = []
        ended = await answer_one(plan, 0, item, turns.append)
        _put(state, ended)
        state.store.set(
            STORED, {**_did(self.method, ended), "asked": [turn.role for turn in turns]}
        )


def cast_of(method: Method) -> Cast:
    """The model under test plays all roles but those that were given to others by `--model-role`,
    and those that no language model may play."""
    roles = {agent.role for agent in method.agents() if not agent.needs_player}
    return Cast(InspectModel(get_model()), {r: InspectModel(get_model(role=r)) for r in roles})


def item_of(state: TaskState) -> Item:
    """What a method is asked: the user's last words, and what was said before them."""
    messages = [(message.role, message.text) for message in state.messages]
    user_turns = [index for index, (role, text) in enumerate(messages) if role == "user" and text]
    if not user_turns:
        raise UserError(f"the sample {state.sample_id} has no text to answer")
    context, question = context_and_question(messages.pop(user_turns[-1])[1])
    before = [f"{role}: {text}" for role, text in messages if text]
    return Item(
        id=str(state.sample_id),
        prompt=question,
        context="\n\n".join([*before, context] if context else before),
        choices=tuple(choice.value for choice in state.choices),
    )


def _put(state: TaskState, ended: Event) -> None:
    """Put the answer where Inspect's scorers look for it."""
    if not isinstance(ended, Answered):
        state.output = ModelOutput(model=str(state.model))
        return
    text, choice = ended.answer.text, ended.answer.choice
    if choice is not None:
        for index in range(len(state.choices)):
            state.choices.mark_choice(index, index == choice)
        text = f"ANSWER: {chr(ord('A') + choice)}"
    state.output = ModelOutput.from_content(str(state.model), text)
    state.messages.append(state.output.message)


def _did(method: Method, ended: Event) -> dict[str, Any]:
    did: dict[str, Any] = {
        "method": method.name,
        "settings": settings_of(method),
        "calls": ended.calls,
        "prompt_tokens": ended.prompt_tokens,
        "completion_tokens": ended.completion_tokens,
    }
    if not isinstance(ended, Answered):
        return {**did, "failed": ended.reason, "message": ended.message}
    answer = ended.answer
    return {
        **did,
        "stopped": answer.stopped,
        "outcome": answer.outcome,
        "changed": answer.changed,
        "choice": answer.choice,
        "drafts": [asdict(draft) for draft in answer.drafts],
    }


def _assigned(name: str, value: Any) -> str:
    """A setting as a command line has it; Inspect has made a list of what had commas in it."""
    return f"{name}={','.join(map(str, value)) if isinstance(value, list) else value}"


def _of(limits: Mapping[str, Any] | None) -> Limits:
    try:
        return TypeAdapter(Limits).validate_python(dict(limits or {}))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UserError(f"limits: {first['loc'][0]}: {first['msg']}") from None
