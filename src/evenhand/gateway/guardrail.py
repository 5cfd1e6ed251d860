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
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from starlette.types import Receive

from evenhand.gateway.admission import Admission, Permit
from evenhand.gateway.checking import Checker
from evenhand.gateway.errors import Refused
from evenhand.gateway.exchanges import ExchangeAnswerer, ExchangeState
from evenhand.gateway.policy import LITELLM, LITELLM_ALONE, CheckPolicy, Policy
from evenhand.gateway.sending import PLAIN, Sender, unless_gone
from evenhand.gateway.verdicts import Action
from evenhand.gateway.wire import ClientRequest
from evenhand.gateway.wire.litellm import UNCHANGED, ProxyCall, answer, blocked, canary, read

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
        receive: Receive,
        sender: Sender,
    ) -> None:
        """Answer one question. In `observe` the answer comes before the check."""
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
                        response = await self._judged(talk, call, check, receive, sender)
                    if not sender.started:
                        await _send(sender, response)
                finally:
                    if talk.tokens is not None:  # else all that was reserved
                        permit.spend(talk.tokens)
        except Refused as refusal:
            self._refused(refusal.code)
            observes = check.mode == "observe"
            if not judging:  # else it is on record
                action = Action.NOT_RUN if observes else Action.BLOCKED
                self._answering.record_anyway(talk, action, refusal.code)
            await _send(sender, UNCHANGED if observes else blocked(refusal))

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
        receive: Receive,
        sender: Sender,
    ) -> bytes:
        """Say what the proxy may do with an answer. Raises `Refused`, and then it is on record."""
        question = self._prompts.found(talk.tenant, call)
        talk.asked = _asked(call.model, "", "")
        if question is not None:
            talk.route, talk.asked = LITELLM, _asked(call.model, question.prompt, question.context)
        checker = self._checkers[check]
        if check.mode == "observe":
            self._prompts.tell(talk.tenant, call, question, UNCHANGED)
            await _send(sender, UNCHANGED)
            await self._answering.judged_afterwards(talk, checker, call)
            return UNCHANGED
        judging = self._answering.judged(talk, checker, call)
        _, texts = await unless_gone(judging, receive)
        response = answer(call, texts)
        if all(verdict.ran for verdict in talk.verdicts):
            self._prompts.tell(talk.tenant, call, question, response)
        return response


async def _send(sender: Sender, response: bytes) -> None:
    await sender.start(200, PLAIN, {})
    await sender.end(response)


@dataclass(slots=True)
class _CachedQuestion:
    """A question, and what was told of its answer."""

    at: float
    prompt: str
    context: str
    told: OrderedDict[bytes, bytes] = field(default_factory=OrderedDict)

    @property
    def signs(self) -> int:
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
        self._fit(tenant, question.signs)

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
        """Keep what was told of an answer, as long as this question is kept."""
        if question is None or self._kept[tenant].get(call.id) is not question:
            return
        before = question.signs
        question.told[call.said] = response
        while len(question.told) > _MOST_TOLD:
            question.told.popitem(last=False)
        self._fit(tenant, question.signs - before)

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
            self._signs[tenant] -= gone.signs


def _asked(model: str, prompt: str, context: str) -> ClientRequest:
    return ClientRequest(model=model, stream=False, sent={}, prompt=prompt, context=context)
