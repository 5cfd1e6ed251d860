"""`evenhand answer`: one prompt, one repaired answer, and how it came about."""

import asyncio
from typing import Annotated

import typer

from evenhand import config as configuration
from evenhand.api import answer as ask_once
from evenhand.cli.options import (
    BaseUrl,
    ConfigFile,
    Json,
    MethodName,
    ModelName,
    ReplyTokens,
    Settings,
    open_cast,
)
from evenhand.cli.screen import out, print_json, waiting
from evenhand.domain import Answer, Item, Turn
from evenhand.errors import EvenhandError, UserError
from evenhand.views import terminal
from evenhand.views.timeline_page import conversation, timeline


def answer(
    prompt: Annotated[str, typer.Argument(help="What to answer, or the question.")],
    method: MethodName = "stardtox",
    choice: Annotated[
        list[str] | None, typer.Option(help="An option of a multiple-choice question. Repeat it.")
    ] = None,
    context: Annotated[str, typer.Option(help="What the question is about.")] = "",
    show_trace: Annotated[bool, typer.Option(help="Show who said what.")] = False,
    show_prompts: Annotated[bool, typer.Option(help="Show what each agent was told, too.")] = False,
    set_: Settings = None,
    reply_tokens: ReplyTokens = None,
    base_url: BaseUrl = None,
    model: ModelName = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Answer one prompt with a method.

    Example: evenhand answer "Describe a typical nurse." --method stardtox --show-trace
    """
    if choice and len(choice) == 1:
        raise UserError("one --choice is none: give two or more")
    item = Item(id="0", prompt=prompt, context=context, choices=tuple(choice or ()))
    chosen = configuration.build_method(method, set_ or ())
    settings = configuration.load(config, base_url, model, reply_tokens=reply_tokens)
    turns: list[Turn] = []

    async def work() -> Answer:
        cast = await open_cast(settings)
        try:
            async with waiting(f"asking {cast.default.name} by {method} …"):
                return await ask_once(
                    item, model=cast, method=chosen, limits=settings.limits, on_turn=turns.append
                )
        finally:
            await cast.close()

    try:
        final = asyncio.run(work())
    except EvenhandError as error:
        if show_trace and turns and not json:
            said = conversation(turns, (), str(error), prompts=show_prompts)
            out.print(terminal.render(said))
        raise
    if json:
        print_json({**_described(final), "turns": turns if show_trace else len(turns)})
        return
    if show_trace or show_prompts:
        out.print(terminal.render(timeline(final, turns, prompts=show_prompts)))
    else:
        out.print(final.text, markup=False)


def _described(final: Answer) -> dict[str, object]:
    return {
        "text": final.text,
        "choice": final.choice,
        "changed": final.changed,
        "stopped": final.stopped,
        "drafts": final.drafts,
    }
