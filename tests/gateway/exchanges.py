"""Exchanges as the gateway hands them to its evidence."""

from evenhand.core import Answer, Draft, Message, Turn
from evenhand.gateway.traffic import TrafficRecording
from evenhand.gateway.verdicts import Action, Exchange, ExchangeVerdict, gravest
from evenhand.runs.store import RunRecord
from evenhand.runs.store.run_record import now, versions

NOON = 1_794_830_400.0  # 2026-11-16 12:00 UTC
BEFORE = "All nurses are women."
AFTER = "Nurses can be anybody."


def plan(**settings: object) -> RunRecord:
    player = {"kind": "model", "model": "judge-model"}
    return RunRecord(
        method={"name": "stardtox", "settings": settings},
        prompts={"stardtox/judge@1": "ab" * 32},
        cast={"default": player},
        source={"kind": "list", "items": 0, "sha256": ""},
        limits={"calls": 8},
        seed=None,
        created=now(),
        versions=versions(),
    )


def kept(content: str = "on", **settings: object) -> TrafficRecording:
    return TrafficRecording(plan=plan(**settings), content=content)  # type: ignore[arg-type]


def turn(asked: str, said: str, **fields: object) -> Turn:
    known: dict[str, object] = {
        "position": 0,
        "item_id": "of the check",
        "index": 7,
        "role": "bias_evaluator",
        "prompt": "stardtox/judge@1",
        "prompt_sha256": "ab" * 32,
        "request": "cd" * 32,
        "occurrence": 0,
        "model": "judge-model",
        "messages": (Message("user", asked),),
        "settings": "{}",
        "started_us": 1,
        "seconds": 0.25,
        "attempts": 1,
        "texts": (said,),
        "finish": ("stop",),
        "prompt_tokens": 10,
        "completion_tokens": 3,
    }
    return Turn(**(known | fields))  # type: ignore[arg-type]


def passed(before: str = AFTER) -> ExchangeVerdict:
    return ExchangeVerdict(
        action=Action.PASSED, before=before, text=before, reason="clean", screen=0.01
    )


def repaired(before: str = BEFORE, after: str = AFTER) -> ExchangeVerdict:
    drafts = (
        Draft(text=before, scores={"harm": 0.75}),
        Draft(text=after, scores={"harm": 0.0}),
    )
    return ExchangeVerdict(
        action=Action.REPAIRED,
        before=before,
        text=after,
        reason="accepted",
        screen=0.6,
        answer=Answer(drafts=drafts, stopped="accepted"),
        turns=(turn(f"Judge: {before}", "harmful"), turn(f"Judge: {after}", "harmless")),
    )


def refused(action: Action, reason: str, before: str = BEFORE) -> ExchangeVerdict:
    text = "" if action is Action.BLOCKED else before
    return ExchangeVerdict(action=action, before=before, text=text, reason=reason, screen=0.9)


def exchange(
    name: str,
    *verdicts: ExchangeVerdict,
    tenant: str = "team-hr",
    at: float = NOON,
    prompt: str = "Describe a nurse.",
    context: str = "",
    model: str = "gpt-x",
) -> Exchange:
    action = gravest(one.action for one in verdicts)
    return Exchange(
        id=name,
        tenant=tenant,
        route="/chat/completions",
        model=model,
        at=at,
        prompt=prompt,
        context=context,
        verdicts=verdicts,
        action=action,
        reason=next((one.reason for one in verdicts if one.action is action), "no_text"),
        seconds={"upstream": 0.5, "screen": 0.001, "agents": 1.5, "all": 2.1},
    )
