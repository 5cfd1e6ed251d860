"""`evenhand answer`, `mitigate` and `dev judge-scenarios`: what a method answers."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from evenhand.api.configured import in_config
from evenhand.api.inputs import item_in
from evenhand.api.measuring import answer_by_config
from evenhand.cli.codes import NOT_ACCEPTED
from evenhand.cli.execution import Terminal, end, execute, show_dry_run, show_forecast
from evenhand.cli.options import DrawSeed, RunCommand, with_run_options
from evenhand.cli.screen import err, out, print_finding, print_json, waiting
from evenhand.core import Answer, Item, Turn
from evenhand.core.errors import EvenhandError, UserError
from evenhand.experiments.dossiers import summary_at
from evenhand.experiments.judge_scenarios import USUAL, scenario_tasks, write_scenarios
from evenhand.findings.remedy import MIN_ACCEPTED
from evenhand.instruments.judge.design import GeneratedScenarios
from evenhand.methods import Method
from evenhand.methods.build import build_method
from evenhand.methods.judging import TwoResponses
from evenhand.runs.runners.prompt_files import PROMPT, source_of
from evenhand.views import terminal
from evenhand.views.run_page import LABELS
from evenhand.views.timeline_page import conversation, timeline

_ENDINGS = {"single_pass": "one pass", "max_iterations": "not accepted"}
_BEGINNING = 80  # characters of a reply in the progress; the trace has more


def _answer(
    options: RunCommand,
    prompt: Annotated[str | None, typer.Argument(help="Answer this prompt or question.")] = None,
    messages: Annotated[
        Path | None,
        typer.Option(
            help="Answer the conversation in this file instead: JSON with `messages`, or a sample "
            "of Inspect."
        ),
    ] = None,
    choice: Annotated[
        list[str] | None,
        typer.Option(
            help="Add an option of a multiple-choice question. Repeat for further options."
        ),
    ] = None,
    context: Annotated[str, typer.Option(help="Add context to the question.")] = "",
    show_trace: Annotated[bool, typer.Option(help="Show the reply of each agent.")] = False,
    show_prompts: Annotated[bool, typer.Option(help="Also show the prompt of each agent.")] = False,
) -> None:
    """Answer one prompt with a mitigation method.

    The method's own evaluators choose the best draft as the answer. Exits with code 4 if they do
    not accept it.

    Example: evenhand answer "Describe a typical nurse." --method stardtox --show-trace
    """
    json = options.json
    item = _item(prompt, messages, choice or (), context)
    chosen = build_method(options.method, options.set_ or (), options.wording)
    turns: list[Turn] = []
    try:
        final = asyncio.run(_ask(item, chosen, options, turns, aloud=show_trace and not json))
    except EvenhandError as error:
        if show_trace and turns and not json:
            trace = conversation(turns, (), str(error), prompts=show_prompts)
            out.print(terminal.render(trace))
        raise
    if json:
        print_json({**_described(final), "turns": turns if show_trace else len(turns)})
    else:
        _show_answer(final, turns, chosen, traced=show_trace, prompts=show_prompts)
    if final.outcome not in (None, "accepted"):
        raise typer.Exit(NOT_ACCEPTED)


def _item(prompt: str | None, messages: Path | None, choices: Sequence[str], context: str) -> Item:
    """Make the item of the options: a prompt with what belongs to it, or a conversation."""
    if (prompt is None) == (messages is None):
        raise UserError("Give a prompt, or a conversation with --messages FILE.")
    if len(choices) == 1:
        raise UserError("A question needs at least two options. Repeat --choice.")
    if messages is not None and (choices or context):
        raise UserError("--choice and --context belong to a prompt. The file may have choices.")
    if messages is not None:
        return item_in(messages)
    return Item(id="0", prompt=prompt or "", context=context, choices=tuple(choices))


def _show_answer(
    final: Answer, turns: Sequence[Turn], method: Method, *, traced: bool, prompts: bool
) -> None:
    if traced or prompts:
        out.print(terminal.render(timeline(final, turns, prompts=prompts)))
        return
    out.print(final.text)
    err.print(Text(_closing(final, turns, method), style="dim"), soft_wrap=True)


async def _ask(
    item: Item, method: Method, options: RunCommand, turns: list[Turn], *, aloud: bool
) -> Answer:
    """Answer the item and collect the turns; `aloud` prints each turn as it arrives."""
    config = options.load()
    limits = in_config(config, options.settings).limits
    model = config.default_model()
    async with waiting(f"asking {model.model or model.address} by {method.name}") as line:

        def heard(turn: Turn) -> None:
            turns.append(turn)
            line.what = f"{len(turns)} of at most {limits.calls} calls"
            if aloud:
                err.print(_heard(turn), soft_wrap=True)

        return await answer_by_config(config, item, method, limits, heard)


def _heard(turn: Turn) -> Text:
    """Return the role of a turn and the beginning of its reply."""
    text = turn.texts[0] if turn.texts else f"FAILED: {turn.error_message}"
    begins = " ".join(text.split())[:_BEGINNING]
    return Text(f"{turn.index + 1}. {turn.role} · {turn.seconds:.1f} s · {begins}", style="dim")


def _closing(final: Answer, turns: Sequence[Turn], method: Method) -> str:
    """Describe in one line how the answer was produced."""
    revisions = len(final.drafts) - 1
    ending = _ENDINGS.get(final.stopped, final.stopped.replace("_", " "))
    if final.outcome is not None:
        ending = LABELS[final.outcome]
    if revisions:
        ending += f" after {revisions} revision{'s' if revisions > 1 else ''}"
    parts = [
        ending,
        *_harm(final, turns, method),
        _spent(turns),
        "--show-trace shows the reply of each agent",
    ]
    return " · ".join(parts)


def _harm(final: Answer, turns: Sequence[Turn], method: Method) -> list[str]:
    """Return the harm before and after, and its judge: a model may have judged itself."""
    first, last = (draft.scores.get("harm") for draft in (final.drafts[0], final.final))
    speakers = {turn.role: turn.model for turn in turns}
    agents = [agent for agent in method.agents() if agent.role in speakers]
    judge = next((speakers[agent.role] for agent in agents if agent.judges), None)
    if first is None or last is None or judge is None:
        return []
    change = f"{first:.2f} → {last:.2f}" if len(final.drafts) > 1 else f"{last:.2f}"
    self_judged = judge in {speakers[agent.role] for agent in agents if agent.kind == "writer"}
    return [f"harm {change} ({'the model’s own judgement' if self_judged else f'by {judge}'})"]


def _spent(turns: Sequence[Turn]) -> str:
    calls = sum(1 for turn in turns if turn.attempts)
    summary = f"{calls} call{'' if calls == 1 else 's'}"
    if any(turn.attempts and turn.prompt_tokens is None for turn in turns):
        return f"{summary}, tokens not counted by the endpoint"
    tokens = sum((turn.prompt_tokens or 0) + (turn.completion_tokens or 0) for turn in turns)
    return f"{summary}, {tokens:,} tokens"


def _described(final: Answer) -> dict[str, object]:
    return {
        "text": final.text,
        "choice": final.choice,
        "changed": final.changed,
        "stopped": final.stopped,
        "outcome": final.outcome,
        "tool_calls": final.tool_calls,
        "drafts": final.drafts,
    }


_SHARED = ("method", "wording", "set_", "max_tokens", "system", "base_url", "model", "config",
           "json")  # fmt: skip
answer = with_run_options(_answer, only=_SHARED, method="stardtox")


def _mitigate(
    options: RunCommand,
    prompts: Annotated[
        str,
        typer.Argument(
            help='Read lines like {"prompt": "…"} from a file, or read Parquet: a file, folder or '
            "URL."
        ),
    ],
    prompt_column: Annotated[
        str | None,
        typer.Option(help=f"Read prompts from this Parquet column. Default: {PROMPT}."),
    ] = None,
    messages_column: Annotated[
        str | None,
        typer.Option(help="Read conversations from this Parquet column instead of prompts."),
    ] = None,
    answer_column: Annotated[
        str | None, typer.Option(help="Repair the answers in this Parquet column.")
    ] = None,
    id_column: Annotated[
        str | None, typer.Option(help="Read item ids from this Parquet column.")
    ] = None,
    context_column: Annotated[
        str | None, typer.Option(help="Read the context from this Parquet column.")
    ] = None,
    min_accepted: Annotated[
        float,
        typer.Option(
            min=0, max=1, help="Set the minimum share of answers that the evaluators accept."
        ),
    ] = MIN_ACCEPTED,
) -> None:
    """Answer or repair a file of prompts.

    The method's own evaluators choose the best draft as the answer. A stored answer whose harm is
    within the method's thresholds stays unchanged. Run the command again to resume. Exits with code
    2 if fewer than 95% of the prompts have an answer, with 3 at a cap. Exits with code 4 if the
    evaluators accepted a smaller share than --min-accepted.

    Example: evenhand mitigate prompts.jsonl --method stardtox --out runs/first
    """
    columns = {
        "prompt_column": prompt_column,
        "messages_column": messages_column,
        "answer_column": answer_column,
        "id_column": id_column,
        "context_column": context_column,
    }
    config = options.load()
    request = options.request(source_of(prompts, columns), config=config)
    ended, settings = execute(request, config, json=options.json), request.settings
    if ended.pilot is not None:
        show_forecast(settings, ended, json=options.json)
        return
    result = summary_at(settings.out, settings.certificates, settings.prices)
    print_finding(result, json=options.json)
    end(ended, below_floor=result.coverage.below_floor)
    remedy = result.remedy
    if remedy is not None and remedy.accepted is not None and remedy.accepted < min_accepted:
        err.print(
            f"{remedy.accepted:.1%} of the answers were accepted, fewer than {min_accepted:.0%} "
            "(--min-accepted)"
        )
        raise typer.Exit(NOT_ACCEPTED)


mitigate = with_run_options(_mitigate, method="stardtox")


def _judge_scenarios(
    options: RunCommand,
    bases: Annotated[
        int, typer.Option(min=1, help="Use this many of the 63 base scenarios.")
    ] = USUAL.bases,
    derived: Annotated[
        int, typer.Option(min=1, help="Use this many of the 10 scenarios per base scenario.")
    ] = USUAL.derived,
    sample_seed: DrawSeed = 0,
) -> None:
    """Generate scenarios for audits of judges.

    Each scenario has two responses, and the second rephrases the content of the first. This takes
    two calls per scenario. The model with the role `writer` writes both; without such a role, the
    default model does. Writes scenarios.jsonl into the run folder, for `audit judge --scenarios`.
    Exits with code 2 if fewer than 95% of the scenarios have both responses.

    Example: evenhand dev judge-scenarios --bases 12 --out runs/written
    """
    source, config = scenario_tasks(bases, derived, sample_seed), options.load()
    request = options.request(source, TwoResponses(), config)
    if request.settings.dry_run:
        show_dry_run({request.settings.out: request}, json=options.json)
    result = asyncio.run(write_scenarios(request, Terminal(config)))
    if result.ended.pilot is not None:
        show_forecast(request.settings, result.ended, json=options.json)
        return
    if result.scenarios is not None:
        _show_scenarios(result.scenarios, result.file, json=options.json)
    end(result.ended, below_floor=result.below_floor)


def _show_scenarios(made: GeneratedScenarios, file: str, *, json: bool) -> None:
    counted = {
        "scenarios": len(made.scenarios),
        "asked": made.asked,
        "unequal_length": made.unequal_length,
        "same_words": made.same_words,
        "file": file,
    }
    if json:
        print_json(counted)
        return
    out.print(
        f"{len(made.scenarios):,} of {made.asked:,} scenarios have two responses; in "
        f"{made.unequal_length:,} the lengths differ by more than a tenth, in "
        f"{made.same_words:,} both have the same words\n{file}"
    )


judge_scenarios = with_run_options(
    _judge_scenarios, without=("method", "set_", "require_certified_judges", "system")
)
