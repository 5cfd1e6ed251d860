"""The door for LiteLLM's proxy: its generic guardrail API, answered by the checks of the policy.

The proxy asks twice. Before it asks a model it sends the request, which is kept; behind the model
it sends the whole answer under the same id, and gets it back passed, repaired or blocked. It sends
no prompt with an answer, so that an answer whose request was not seen is judged alone, and its
record says so by the route.

What the proxy does with a refusal depends on its configuration; with `BLOCKED` it can do one thing
only. So an answer that could not be read or checked, or was not let in, is blocked.

Of a streamed answer that calls tools the proxy sends the same words again with every piece of a
call, and breaks the stream off if it is told something else than before. So the same words of the
same answer are judged once.
"""

import asyncio
import hashlib
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from evenhand.gateway.admission import Admission, Permit
from evenhand.gateway.checking import Checker
from evenhand.gateway.exchanges import ExchangeAnswerer, ExchangeState
from evenhand.gateway.policy import LITELLM, LITELLM_ALONE, CheckPolicy, Policy
from evenhand.gateway.sending import PLAIN, Client
from evenhand.gateway.verdicts import Action
from evenhand.gateway.wire import ClientRequest, Refused, ToolArguments, ToolName, strict
from evenhand.gateway.wire.chat import conversation
from evenhand.models import thinking

PATH = "/beta/litellm_basic_guardrail_api"
UNCHANGED = orjson.dumps({"action": "NONE"})
# What `evenhand doctor litellm` has a model repeat. It must be all that was said, so that nothing
# can hide from the check next to it.
_CANARY = re.compile(r"""[\s"'`*.]*evenhand-canary-([0-9a-f]{16})[\s"'`*.]*""")
CUT_THINKING = "cut_thinking"
_CUT_THINKING = "a thought is cut into parts, which cannot be told from an answer"
_OF_A_CALL = {"id", "type", "index", "function"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyCall:
    """One question of the proxy."""

    id: str  # the hash of the proxy's own, of which the length is not bounded
    answered: bool  # a model has spoken; else it is about to be asked
    model: str
    sent: tuple[str, ...]  # the texts as they came
    texts: tuple[str, ...]  # the same; of an answer without what was thought
    cut_thinking: bool  # a thought is only in part in one of them, so that the rest seems said
    observed: tuple[str, ...]  # names and arguments of tool calls
    prompt: str
    context: str

    @property
    def said(self) -> bytes:
        """What an answer says, as a key: equal for equal words and calls of tools."""
        return hashlib.sha256(orjson.dumps([self.sent, self.observed])).digest()


def read(body: bytes) -> ProxyCall:
    """Read a question. Raises `Refused`."""
    raw = strict.request(body)
    kind = raw.get("input_type")
    if kind not in ("request", "response"):
        raise strict.refused("`input_type` is neither request nor response.", "bad_request")
    texts = strict.field(raw, "texts", list, [])
    if not all(isinstance(text, str) for text in texts):
        raise strict.refused("`texts` holds something that is not a text.", "bad_request")
    answered = kind == "response"
    calls = strict.field(raw, "tool_calls", list, []) if answered else []
    if answered and max(len(texts), len(calls)) > strict.MOST_TEXTS:
        raise strict.refused(
            f"`texts` and `tool_calls` may hold {strict.MOST_TEXTS} each.", "bad_request"
        )
    if answered and raw.get("images"):
        raise strict.refused("Only text can be checked, and the answer has images.")
    prompt, context = conversation(strict.field(raw, "structured_messages", list, []))
    name = strict.field(raw, "litellm_call_id", str, "")
    answers, cut_thinking = _answers(texts) if answered else (texts, False)
    return ProxyCall(
        id=hashlib.sha256(name.encode()).hexdigest() if name else "",
        answered=answered,
        model=strict.field(raw, "model", str, ""),
        sent=tuple(texts),
        texts=tuple(answers),
        cut_thinking=cut_thinking,
        observed=tuple(_called(calls)),
        prompt=prompt or ("\n\n".join(texts) if not answered else ""),
        context=context,
    )


def _answers(texts: Sequence[str]) -> tuple[list[str], bool]:
    """Give the texts without what was thought, and whether a thought is cut: one ended within it,
    or a later one began within it."""
    answers, untagged, cut_thinking = [], False, False
    for text in texts:
        splitter = thinking.Splitter()
        splitter.add(text)
        splitter.end()
        answers.append(splitter.answer)
        cut_thinking |= splitter.is_open or (splitter.was_open and untagged)
        untagged |= bool(text.strip()) and not splitter.thinking
    return answers, cut_thinking


def _called(calls: Sequence[Any]) -> Iterator[str]:
    """What tool calls say. One of a shape that we do not know is read whole."""
    for call in calls:
        if _is_plain(call):
            words = call["function"]["name"], call["function"]["arguments"]
            name, arguments = map(strict.readable, words)
            yield from filter(None, (ToolName(name), ToolArguments(arguments)))
        else:
            yield strict.readable(orjson.dumps(call).decode())


def _is_plain(call: Any) -> bool:
    """Whether a call has a name, arguments, and labels of one word that nobody needs to read."""
    if not isinstance(call, dict) or not call.keys() <= _OF_A_CALL:
        return False
    function, labels = call.get("function"), (call.get("id"), call.get("type"))
    return (
        isinstance(function, dict)
        and function.keys() == {"name", "arguments"}
        and all(isinstance(word, str) for word in function.values())
        and all(label in (None, "") or strict.token(label) for label in labels)
        and isinstance(call.get("index"), int | None)
    )


def answer(call: ProxyCall, texts: Sequence[str]) -> bytes:
    """Give the texts back, all of them, if one has changed."""
    if tuple(texts) == call.sent:
        return UNCHANGED
    return orjson.dumps({"action": "GUARDRAIL_INTERVENED", "texts": list(texts)})


def canary(call: ProxyCall) -> bytes | None:
    """The answer to the canary of `evenhand doctor litellm`, if an answer is nothing else."""
    matches = [match for text in call.texts if (match := _CANARY.fullmatch(text))]
    if not matches or len(matches) != len(call.texts) or call.observed:
        return None
    texts = [f"evenhand-repaired-{match[1]}" for match in matches]
    return orjson.dumps({"action": "GUARDRAIL_INTERVENED", "texts": texts})


def blocked(refused: Refused) -> bytes:
    """The answer for what may not leave, whatever the reason."""
    response: Mapping[str, str] = {"action": "BLOCKED", "blocked_reason": refused.message}
    return orjson.dumps(response)


# Our choices: an answer comes within minutes, and what is kept of all tenants fits into memory.
_KEPT_SECONDS = 900.0
_MOST_KEPT = 10_000  # of a tenant
_MOST_SIGNS = 32_000_000  # of all prompts together, shared alike by the tenants
_MOST_OF_ONE = 100_000  # of one prompt; its end is what was asked
_MOST_TOLD = 2  # of one answer: its words, and its words with the calls of tools


class Guardrail:
    """It answers the questions of LiteLLM's proxies."""

    def __init__(
        self,
        policy: Policy,
        checkers: Mapping[CheckPolicy, Checker],
        admission: Admission,
        answering: ExchangeAnswerer,
        refused: Callable[[str], None],
    ) -> None:
        self._policy = policy
        self._checkers = checkers
        self._admission = admission
        self._answering = answering
        self._refused = refused
        self._prompts = Prompts(max(1, len(policy.tenants)))

    async def answer(
        self,
        tenant: str,
        headers: Mapping[str, str],
        body: Callable[[Permit], Awaitable[bytes]],
        client: Client,
    ) -> None:
        """Answer one question of a LiteLLM proxy. In `observe` the answer comes before the check.

        Args:
            tenant: Who asks.
            headers: The headers of the request.
            body: Reads the body within the memory that the permit allows.
            client: Receives the answer.
        """
        check = self._policy.check_for(tenant, LITELLM)
        talk = ExchangeState(LITELLM_ALONE, _asked("", "", ""), tenant, headers, detailed=False)
        judging = False
        try:
            async with self._admission.enter(tenant, tokens=check.tokens) as permit:
                try:
                    call = await asyncio.to_thread(read, await body(permit))
                    response = self._known(tenant, call)
                    judging = response is None
                    if response is None:
                        response = await self._judged(talk, call, check, client)
                    if not client.started:
                        await _send(client, response)
                finally:
                    if talk.tokens is not None:  # else all that was reserved
                        permit.spend(talk.tokens)
        except Refused as refusal:
            self._refused(refusal.code)
            observes = check.mode == "observe"
            if not judging:  # else it is on record
                action = Action.NOT_RUN if observes else Action.BLOCKED
                self._answering.record_anyway(talk, action, refusal.code)
            await _send(client, UNCHANGED if observes else blocked(refusal))

    def _known(self, tenant: str, call: ProxyCall) -> bytes | None:
        """What is said without a check: to a request, to a canary, to words that were judged."""
        if not call.answered:
            self._prompts.keep(tenant, call)
            return UNCHANGED
        question = self._prompts.found(tenant, call)
        return canary(call) or (question.told.get(call.said) if question is not None else None)

    async def _judged(
        self,
        talk: ExchangeState,
        call: ProxyCall,
        check: CheckPolicy,
        client: Client,
    ) -> bytes:
        """Say what the proxy may do with an answer. Raises `Refused`, and then it is on record."""
        question = self._prompts.found(talk.tenant, call)
        talk.asked = _asked(call.model, "", "")
        if question is not None:
            talk.route, talk.asked = LITELLM, _asked(call.model, question.prompt, question.context)
        if call.cut_thinking and check.mode != "observe":
            self._answering.record_anyway(talk, Action.BLOCKED, CUT_THINKING)
            raise Refused(400, CUT_THINKING, _CUT_THINKING)
        checker = self._checkers[check]
        if check.mode == "observe":
            self._prompts.tell(talk.tenant, call, question, UNCHANGED)
            await _send(client, UNCHANGED)
            await self._answering.judged_afterwards(talk, checker, call)
            return UNCHANGED
        judging = self._answering.judged(talk, checker, call)
        _, texts = await client.unless_gone(judging)
        response = answer(call, texts)
        if all(verdict.ran for verdict in talk.verdicts):
            self._prompts.tell(talk.tenant, call, question, response)
        return response


async def _send(client: Client, response: bytes) -> None:
    await client.start(200, PLAIN, {})
    await client.end(response)


@dataclass(slots=True)
class _CachedQuestion:
    """A question, and what was told of its answer."""

    at: float
    prompt: str
    context: str
    told: OrderedDict[bytes, bytes] = field(default_factory=OrderedDict)

    @property
    def size(self) -> int:
        return len(self.prompt) + len(self.context) + sum(map(len, self.told.values()))


class Prompts:
    """What was asked, until its answer comes: bounded in number, size and time for each tenant, so
    that none takes another's place."""

    def __init__(self, tenants: int = 1, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._most_signs = _MOST_SIGNS // tenants
        self._kept: dict[str, OrderedDict[str, _CachedQuestion]] = {}
        self._signs: dict[str, int] = {}

    def keep(self, tenant: str, call: ProxyCall) -> None:
        """Keep a request. The oldest go first."""
        self._drop(tenant, call.id)
        prompt, context = call.prompt[-_MOST_OF_ONE:], call.context[-_MOST_OF_ONE:]
        question = _CachedQuestion(self._now(), prompt, context)
        self._kept.setdefault(tenant, OrderedDict())[call.id] = question
        self._fit(tenant, question.size)

    def found(self, tenant: str, call: ProxyCall) -> "_CachedQuestion | None":
        """The question that an answer answers, if it was seen not too long ago.

        It stays: a proxy that is set up to stream sends the parts of an answer one by one.
        """
        questions = self._kept.get(tenant)
        question = questions.get(call.id) if questions is not None and call.id else None
        return question if question and question.at >= self._now() - _KEPT_SECONDS else None

    def tell(
        self, tenant: str, call: ProxyCall, question: "_CachedQuestion | None", response: bytes
    ) -> None:
        """Remember what an answer was told, as long as its question is remembered.

        Args:
            tenant: Who asked.
            call: The call of the proxy that brought the answer.
            question: The question that the answer belongs to; None if it was not seen.
            response: What the proxy was told.
        """
        if question is None or self._kept[tenant].get(call.id) is not question:
            return
        before = question.size
        question.told[call.said] = response
        while len(question.told) > _MOST_TOLD:
            question.told.popitem(last=False)
        self._fit(tenant, question.size - before)

    def _fit(self, tenant: str, more: int) -> None:
        questions, oldest = self._kept[tenant], self._now() - _KEPT_SECONDS
        self._signs[tenant] = self._signs.get(tenant, 0) + more
        while questions and (
            next(iter(questions.values())).at < oldest
            or len(questions) > _MOST_KEPT
            or self._signs[tenant] > self._most_signs
        ):
            self._drop(tenant, next(iter(questions)))

    def _drop(self, tenant: str, key: str) -> None:
        gone = self._kept.get(tenant, OrderedDict()).pop(key, None)
        if gone is not None:
            self._signs[tenant] -= gone.size


def _asked(model: str, prompt: str, context: str) -> ClientRequest:
    return ClientRequest(model=model, stream=False, sent={}, prompt=prompt, context=context)
