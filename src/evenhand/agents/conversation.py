"""A conversation asks agents: recording, budgets, deadlines and re-asking live here alone."""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Protocol, TypeVar, TypeVarTuple

import orjson
from pydantic import Field, ValidationError

from evenhand.agents.agent import Agent, FreeText, Reply
from evenhand.agents.cast import Cast, require_tools
from evenhand.agents.prompts import load
from evenhand.agents.prompts.fence import as_data, without_tags
from evenhand.core import Item, Message, Turn, Usage
from evenhand.core.errors import (
    REFUSAL,
    BudgetSpent,
    DeadlinePassed,
    ModelError,
    ModelRefused,
    ScorerFailed,
    UnreadableReply,
    Unsuited,
    UserError,
)
from evenhand.core.items import CalledFunction, Tool, ToolCall, spoken
from evenhand.models import thinking
from evenhand.models.base import ModelReply, ModelRequest, Sample, request_sha256
from evenhand.statistics.metrics.refusal import refuses


def instructed(messages: tuple[Message, ...], system: str | None) -> tuple[Message, ...]:
    """Put a system prompt before the words of an agent. Both are one message where there is one
    already, of the agent or of the item: many chat templates take no second one."""
    if system is None:
        return messages
    agent_system = messages[0].content if messages[0].role == "system" else ""
    first = Message("system", f"{system}\n\n{agent_system}" if agent_system else system)
    return (first, *messages[1:]) if agent_system else (first, *messages)


_EARLIER = load("shared/earlier_turns")
_REQUEST = frozenset({"prompt", "question"})  # variables of prompts that hold the request


def in_conversation(
    agent: Agent[Any], messages: tuple[Message, ...], item: Item | None
) -> tuple[Message, ...]:
    """Put the words of an agent into the conversation of an item.

    Agents that write continue the conversation itself. A judge that sees the request reads the
    other turns between tags; a judge of a text alone sees none of them.

    Args:
        agent: The agent that is asked.
        messages: The words of the agent.
        item: The item; None for a single prompt.

    Returns:
        The messages to send.

    Raises:
        Unsuited: If the agent continues a raw text, which has no turns.
    """
    if item is None or not item.messages:
        return messages
    if agent.raw:
        raise Unsuited(
            f"item {item.id!r} is a conversation, and {agent.role!r} continues a raw text: use a "
            "method that asks in a chat"
        )
    if agent.takes_system:
        before = item.history
        if before and before[0].role == "system":
            messages, before = instructed(messages, before[0].content), before[1:]
        own = 1 if messages[0].role == "system" else 0
        return (*messages[:own], *before, *messages[own:], *item.tool_turns)
    turns = item.messages if item.tool_turns else item.history
    if turns and agent.kind == "judge" and _REQUEST & agent.prompt.variables:
        transcript = "\n\n".join(f"{message.role}: {message.text}" for message in turns)
        safe = as_data(transcript, agent.prompt.uses.fences)
        (earlier,) = _EARLIER.render({"transcript": safe})
        request = Message("user", f"{earlier.content}\n\n{messages[-1].content}")
        return (*messages[:-1], request)
    return messages


def tools_for(agent: Agent[Any], item: Item | None) -> tuple[Tool, ...]:
    """Give the tools of an item to the agents whose plain words may be its answer."""
    answers = item is not None and agent.takes_system and agent.reply is FreeText
    return item.tools if item is not None and answers else ()


# Our choice before the endpoint's own count is known: cautious for English, right for most
# Chinese.
_BYTES_PER_TOKEN = 3.0
_TOKENS_PER_CALL = 24  # our choice: a chat template around system and user message
_SHORTEST_REPLY = 16  # our choice: with room for fewer tokens a call is not worth its prompt


class Budget:
    """The budget of one item, in calls and tokens.

    A reply is never allowed more tokens than are left after the estimated prompt, so the total
    passes the budget by no more than the estimate's error; that error shrinks after the first
    call, when the endpoint's own usage corrects it.
    """

    def __init__(self, calls: int, tokens: int) -> None:
        self.calls = 0
        self.prompt_tokens: int | None = 0
        self.completion_tokens: int | None = 0
        self._max_calls = calls
        self._max_tokens = tokens
        self._spent = 0  # settled and reserved
        self._per_byte = 1 / _BYTES_PER_TOKEN

    def reserve(self, size: int, max_tokens: int | None) -> tuple[int, int]:
        """Reserve a call: (tokens reserved, tokens the reply may have), or `BudgetSpent`."""
        if self.calls >= self._max_calls:
            raise BudgetSpent(f"the item's {self._max_calls} calls are used up")
        prompt = self._estimate(size)
        room = self._max_tokens - self._spent - prompt
        if room < _SHORTEST_REPLY:
            raise BudgetSpent(
                f"{self._spent} of the item's {self._max_tokens} tokens are used up, "
                f"and the next prompt needs about {prompt}"
            )
        allowed = room if max_tokens is None else min(room, max_tokens)
        self.calls += 1
        self._spent += prompt + allowed
        return prompt + allowed, allowed

    def settle(self, reserved: int, usage: Usage | None, size: int, *, learns: bool = True) -> None:
        """Replace a reservation with the tokens that the endpoint counted.

        Without a count the reservation stays: an unknown cost is never free.

        Args:
            reserved: The tokens that `reserve` set aside for this call.
            usage: The count of the endpoint; None if it gave none.
            size: The length of the prompt, in bytes.
            learns: Whether the estimate for later prompts is updated from this count.
        """
        if usage is None:
            self.prompt_tokens = self.completion_tokens = None
            return
        self._spent += usage.total - reserved
        if self.prompt_tokens is not None and self.completion_tokens is not None:
            self.prompt_tokens += usage.prompt_tokens
            self.completion_tokens += usage.completion_tokens
        if not learns:
            return
        counted = (usage.prompt_tokens - _TOKENS_PER_CALL) / max(size, 1)
        self._per_byte = max(self._per_byte, counted)

    def spent(self) -> tuple[int, int | None, int | None]:
        """Give calls, prompt tokens and completion tokens; None where an endpoint did not count."""
        return self.calls, self.prompt_tokens, self.completion_tokens

    def _estimate(self, size: int) -> int:
        return int(size * self._per_byte) + _TOKENS_PER_CALL


_R = TypeVar("_R", bound=Reply)
_Ts = TypeVarTuple("_Ts")
_REASK = load("shared/reask")
Declared = frozenset[tuple[str, str | None, str]]
_QUOTED_BACK = 2_000  # characters of an unreadable reply that the model is shown again


class Ask(Protocol):
    """A method sees this of a conversation: a function that asks an agent and gives its typed
    reply."""

    async def __call__(self, agent: Agent[_R], /, **variables: Any) -> _R: ...


def declared_by(agents: Iterable[Agent[Any]]) -> Declared:
    """Collect what a conversation lets a method ask: role, kind and prompt of each agent. The reply
    type is left open, since a question with more options has another one."""
    return frozenset(agent.identity for agent in agents)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one item: what it may cost, and how long one reply may be."""

    calls: Annotated[int, Field(ge=1)] = 64
    tokens: Annotated[int, Field(ge=1)] = 100_000
    max_tokens: Annotated[int, Field(ge=1)] = (
        1024  # a typed reply that is cut off here cannot be read: leave room
    )
    answer_tokens: Annotated[int, Field(ge=1)] | None = (
        None  # an answer in plain words is cut here, as some benchmarks have it
    )
    seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 600.0

    def most_tokens(self, agent: Agent[Any]) -> int:
        """Give the longest reply of an agent. A writer's plain words are taken for an answer; an
        agent whose words are something else, such as a plan, has `max_tokens` of its own."""
        answers = agent.kind == "writer" and agent.reply is FreeText
        return (self.answer_tokens if answers else None) or self.max_tokens


class Conversation:
    """One item's conversation with its cast. Call it to ask an agent:

    >>> verdict = await ask(JUDGE, draft=draft)

    Each request ends in a recorded turn, readable or not, answered or failed; it is recorded
    before it is read, so that what could not be read can be looked at.
    """

    def __init__(
        self,
        cast: Cast,
        record: Callable[[Turn], None],
        *,
        limits: Limits | None = None,
        seed: int | None = None,
        position: int = 0,
        item: Item | None = None,
        declared: Declared | None = None,
    ) -> None:
        """Take the cast, the limits and the item, in whose conversation agents are asked.
        `declared` holds the agents that may be asked, from `declared_by`; None allows any."""
        limits = limits or Limits()
        self._limits = limits
        self._cast = cast
        self._record = record
        self._seed = seed
        self._position = position
        self.item = item  # of a dialogue: the turn that is asked
        self._item_id = item.id if item is not None else ""
        self._declared = declared
        self._asked: dict[str, int] = {}
        self._turns = 0
        self.deadline = asyncio.get_running_loop().time() + limits.seconds
        self.budget = Budget(limits.calls, limits.tokens)
        self.tags_taken_off = 0

    async def __call__(self, agent: Agent[_R], /, **variables: Any) -> _R:
        self._refuse_undeclared(agent)
        require_tools((agent,), self._cast)
        worded = in_conversation(agent, _worded(agent, variables), self.item)
        messages = instructed(worded, self._cast.system_for(agent))
        reply, limit = await self._turn(agent, messages), None
        if thinking.used_it_up(reply):
            try:
                return self._read(agent, reply.samples[0])  # enough may have been said
            except (UnreadableReply, ModelRefused):  # or no log-probability of it
                limit = thinking.more_room(self._limit_of(agent))
                reply = await self._turn(agent, messages, limit)
        try:
            return self._read(agent, reply.samples[0])
        except UnreadableReply as problem:
            if limit is not None and thinking.used_it_up(reply):
                raise UnreadableReply("cut_off", self._thought_on(agent, reply)) from None
            if agent.raw:  # a text to be continued has no room for a remark
                raise
            note = _REASK.render({"problem": str(problem)[:200]})
            quoted = Message("assistant", reply.samples[0].text[:_QUOTED_BACK])
            reply = await self._turn(agent, (*messages, quoted, *note), limit)
        again = reply.samples[0]
        try:
            return self._read(agent, again)
        except UnreadableReply as problem:
            kind = REFUSAL if refuses(again.text) else problem.kind
            raise UnreadableReply(
                kind, f"{agent.role} replied twice in another form; {problem.detail}"
            ) from None

    def _read(self, agent: Agent[_R], sample: Sample) -> _R:
        """Read a reply without the tags of its prompt that the model copied into it.

        The tags fence what the model was shown; its own words do not include them. The recorded
        call keeps them.
        """
        reply, taken_off = _untagged(_read(agent, sample), agent.prompt.uses.fences)
        self.tags_taken_off += taken_off
        return reply

    def _refuse_undeclared(self, agent: Agent[Any]) -> None:
        """Refuse an agent that a method did not declare: it would be on no record, and a judge
        among them in no gate."""
        if self._declared is not None and agent.identity not in self._declared:
            raise UserError(
                f"The method asks {agent.role!r} as a {agent.kind} with the prompt "
                f"{agent.prompt.label}, which its agents() does not list. Add that agent to "
                "agents()."
            )

    def _limit_of(self, agent: Agent[Any]) -> int:
        return agent.max_tokens or self._limits.most_tokens(agent)

    def _thought_on(self, agent: Agent[Any], reply: ModelReply) -> str:
        """Say that thinking used up both limits, and what helps."""
        used = reply.usage.completion_tokens if reply.usage else None
        again = "a larger one" if used is None else f"{used} when asked again"
        return (
            f"the model's thinking used up {self._limit_of(agent)} tokens, and {again}: give it "
            "more room (--max-tokens 8192, and tokens in [limits]) or have it think less (such as "
            "--param reasoning_effort=low)"
        )

    async def _turn(
        self, agent: Agent[_R], messages: tuple[Message, ...], limit: int | None = None
    ) -> ModelReply:
        model = self._cast.model_for(agent.role)
        request = self._request(agent, messages, model.name, limit)
        index, self._turns = self._turns, self._turns + 1
        words = request.prompt_bytes
        clock = asyncio.get_running_loop().time
        started_us, started = time.time_ns() // 1000, clock()
        try:
            request, reserved = self._reserve(request, words)
            reply = await model.complete(request)
        except (ModelError, asyncio.CancelledError) as ended:
            error = ended if isinstance(ended, ModelError) else self._late(clock())
            if error is not None:
                if isinstance(error, ScorerFailed) and error.attempts:  # a model was asked
                    self.budget.settle(reserved, _counted(error), words, learns=False)
                when = error.recorded or (started_us, clock() - started)
                self._keep(agent, request, index, *when, error=error)
            raise
        reply = _encodable(reply)
        # What a scorer asks a language model is longer than the text that it is given.
        self.budget.settle(reserved, reply.usage, words, learns=agent.kind != "scorer")
        self._keep(agent, request, index, reply.started_us, reply.seconds, reply=reply)
        return reply

    def _request(
        self, agent: Agent[_R], messages: tuple[Message, ...], model: str, limit: int | None = None
    ) -> ModelRequest:
        request = ModelRequest(
            messages=() if agent.raw else messages,
            prompt=messages[-1].content if agent.raw else None,
            schema=agent.reply.wire_schema(),
            temperature=agent.temperature,
            max_tokens=limit or self._limit_of(agent),
            logprobs=agent.logprobs,
            deadline=self.deadline,
            position=self._position,
            tools=tools_for(agent, self.item),
        )
        settings = _settings(request)
        sha = request_sha256(model, orjson.dumps(messages), settings, request.schema)
        occurrence = self._asked.get(sha, 0)
        self._asked[sha] = occurrence + 1
        seed = None
        if self._seed is not None:
            key = f"{self._seed}:{self._item_id}:{sha}:{occurrence}".encode()
            seed = int.from_bytes(hashlib.sha256(key).digest()[:4], "big") >> 1
        request.sha256, request.occurrence, request.seed = sha, occurrence, seed
        return request

    def _reserve(self, request: ModelRequest, words: int) -> tuple[ModelRequest, int]:
        reserved, max_tokens = self.budget.reserve(words, request.max_tokens)
        # After the budget: a replay, which is never late, must count the same calls.
        if (late := self._late(asyncio.get_running_loop().time())) is not None:
            raise late
        if max_tokens != request.max_tokens:
            request = replace(request, max_tokens=max_tokens)
        return request, reserved

    def _late(self, now: float) -> DeadlinePassed | None:
        """Give the error of an item that was cut off by its deadline, or None if it was cut off by
        the end of the run."""
        if now < self.deadline:
            return None
        return DeadlinePassed(f"the item's {self._limits.seconds:g} s are used up")

    def _keep(
        self,
        agent: Agent[_R],
        request: ModelRequest,
        index: int,
        started_us: int,
        seconds: float,
        *,
        reply: ModelReply | None = None,
        error: ModelError | None = None,
    ) -> None:
        samples = reply.samples if reply else ()
        usage = reply.usage if reply else _counted(error)
        logprobs = request.logprobs is not None and reply is not None
        self._record(
            Turn(
                position=self._position,
                item_id=self._item_id,
                index=index,
                role=agent.role,
                prompt=agent.prompt.label,
                prompt_sha256=agent.prompt.sha256,
                request=request.sha256,
                occurrence=request.occurrence,
                model=self._cast.model_for(agent.role).name,
                messages=request.messages or (Message("user", request.prompt or ""),),
                settings=_settings(request).decode(),
                started_us=started_us,
                seconds=seconds,
                attempts=reply.attempts if reply else error.attempts if error else 0,
                texts=tuple(sample.text for sample in samples),
                finish=tuple(sample.finish for sample in samples),
                tool_calls=_called(samples),
                logprobs=orjson.dumps([s.logprobs for s in samples]).decode() if logprobs else None,
                prompt_tokens=usage.prompt_tokens if usage else None,
                completion_tokens=usage.completion_tokens if usage else None,
                thinking=_thinking(samples),
                thinking_tokens=usage.thinking_tokens if usage else None,
                served_by=reply.served_by if reply else "",
                adapted=reply.adapted if reply else "",
                batch=reply.batch if reply else "",
                error=error.reason if error else None,
                error_message=str(error) if error else None,
            )
        )


def _thinking(samples: tuple[Sample, ...]) -> tuple[str, ...]:
    thoughts = tuple(sample.thinking for sample in samples)
    return thoughts if any(thoughts) else ()


def _called(samples: tuple[Sample, ...]) -> str | None:
    calls = [sample.tool_calls for sample in samples]
    return orjson.dumps(calls).decode() if any(calls) else None


def _counted(error: ModelError | None) -> Usage | None:
    """Give the tokens that a failed call took, where they are known."""
    return Usage(*error.tokens) if error is not None and error.tokens is not None else None


def _worded(agent: Agent[Any], variables: dict[str, Any]) -> tuple[Message, ...]:
    """Write what an agent is told. A text to continue ends in `so_far`, as it is: a prompt has no
    blanks at its end, and what was said so far may have."""
    if not agent.raw:
        return agent.prompt.render(variables)
    so_far = variables.pop("so_far", "")
    return (Message("user", agent.prompt.render(variables)[-1].content + so_far),)


def _settings(request: ModelRequest) -> bytes:
    settings = request.settings()
    return orjson.dumps(settings if request.prompt is None else {**settings, "raw": True})


def _read(agent: Agent[_R], sample: Sample) -> _R:
    try:
        return agent.reply.read_sample(sample)
    except UnreadableReply as problem:
        if sample.finish != "length" or agent.max_tokens == 1:  # one token is all that was wanted
            raise
        detail = f"the reply ended at the token limit (--max-tokens): {problem.detail}"
        raise UnreadableReply("cut_off", detail) from None


def _untagged(reply: _R, tags: frozenset[str]) -> tuple[_R, int]:
    """Take the tags off a reply's words. One that has no words but tags is as good as empty, and
    what is left is held to the form of the reply again."""
    words = {name: value for name, value in reply if isinstance(value, str)}
    cleaned = {name: without_tags(value, tags) for name, value in words.items()}
    changed = {name: text.strip() for name, (text, count) in cleaned.items() if count}
    if not changed:
        return reply, 0
    try:
        bare = type(reply).model_validate({**dict(reply), **changed})
    except ValidationError:
        bare = None
    if bare is None or (isinstance(bare, FreeText) and not bare.text):
        raise UnreadableReply("empty", "the reply has no words but the prompt's own tags")
    return bare, sum(count for _, count in cleaned.values())


def _encodable(reply: ModelReply) -> ModelReply:
    """Replace half a surrogate pair, which no file can hold, by a question mark before the text is
    recorded or read, so that both are the same text."""
    try:
        for sample in reply.samples:
            sample.text.encode()
            sample.thinking.encode()
            spoken("", sample.tool_calls).encode()
    except UnicodeEncodeError:
        samples = tuple(
            replace(
                sample,
                text=_encoded(sample.text),
                thinking=_encoded(sample.thinking),
                tool_calls=tuple(map(_encodable_call, sample.tool_calls)),
            )
            for sample in reply.samples
        )
        return replace(reply, samples=samples)
    return reply


def _encodable_call(call: ToolCall) -> ToolCall:
    name, arguments = _encoded(call.function.name), _encoded(call.function.arguments)
    return ToolCall(_encoded(call.id), CalledFunction(name, arguments))


def _encoded(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


async def side_by_side(*asks: Awaitable[Any]) -> Any:
    """Ask several agents at once. All are waited for, so that every turn is recorded; then the
    first failure, in the order given, is raised."""
    outcomes = await asyncio.gather(*asks, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return outcomes
