"""Reproduce the tables of papers, their numbers next to ours."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from evenhand.agents import Cast
from evenhand.agents.tools.search.base import ROLE as SEARCH
from evenhand.api import inputs
from evenhand.api.inputs import Model
from evenhand.core.errors import UserError, choices_for
from evenhand.experiments.reproducing import Reproducing, planned, run_jobs, tables_of
from evenhand.experiments.request import Request, Watch
from evenhand.experiments.settings import OptionalRunOptions, RunSettings
from evenhand.findings.papers import Size, paper_named
from evenhand.findings.reproduction import Catalogue, Reproduction, catalogue
from evenhand.methods import Method
from evenhand.methods.shared_settings import Wording
from evenhand.runs.runners import Source
from evenhand.scorers import Scorer
from evenhand.views.paper_pages import paper_page, papers_page

_OF_RECIPES = ("actors", "dedupe", "engine", "require_certified_judges", "reuse", "system")


class ReproduceOptions(OptionalRunOptions, total=False):
    """The keyword arguments that every paper takes, with the settings of `RunOptions`.

    Attributes:
        out: Folder of all runs and tables. Runs that were interrupted are resumed. Defaults to
            `"runs/papers"`.
        model: Model to evaluate, or several by the names that the table gives them. Not needed
            with `show` or `replay`.
        trained: The models of trained weights by their names in the paper's recipes. For one
            model at a time. With `repeats`, a list of one per repeat.
        size: `"small"`: some minutes with a small model. `"paper"`: as published.
        repeats: Repeat each run with the next seed, and give mean and standard deviation.
        wording: `"paper"`: mabrf and stardtox with the intent of the papers' prompts.
        only: The runs to make. The others are shown if they are in `out`.
        sample: Options of instruments in place of the recipe's, such as `per_category`. Choose
            another `out` for them.
        show: Ask nobody, and lay out what is in `out`.
        scorers: Additional scorers by name.
        data: Dataset directory. Default: `EVENHAND_DATA`.
        watch: Receives progress events.
    """

    out: str | Path
    model: Model | Mapping[str, Model] | None
    trained: Mapping[str, Model | list[Model]] | None
    size: Size
    repeats: int
    wording: Wording
    only: Sequence[str] | None
    sample: Mapping[str, str | int] | None
    show: bool
    scorers: Mapping[str, Scorer] | None
    data: str | Path | None
    watch: Watch | None


async def reproduce_stardtox(
    table: str | None = None, **options: Unpack[ReproduceOptions]
) -> tuple[Reproduction, ...]:
    """Reproduce a table of the StarDTox paper, or all that have a recipe.

    Args:
        table: Such as `"table3"`. Defaults to all.
        **options: As `ReproduceOptions` lists them.

    Returns:
        Each table, also written to `out` as JSON and Markdown.

    Raises:
        UserError: If no recipe has the name, or a cap stopped the runs.

    Example:
        >>> (table,) = evenhand.reproduce_stardtox("table3", model=model)
        >>> table.frame()
    """
    return await _reproduced("stardtox", table, options)


async def reproduce_mabrf(
    table: str | None = None, **options: Unpack[ReproduceOptions]
) -> tuple[Reproduction, ...]:
    """Reproduce a table of the MABRF paper, or all of them, like `reproduce_stardtox`.

    Args:
        table: Such as `"table5"`. Defaults to all.
        **options: As `ReproduceOptions` lists them.

    Returns:
        Each table.
    """
    return await _reproduced("mabrf", table, options)


async def reproduce_malibu(
    table: str | None = None, **options: Unpack[ReproduceOptions]
) -> tuple[Reproduction, ...]:
    """Reproduce a table or figure of the MALIBU paper, or all of them, like `reproduce_stardtox`.

    Args:
        table: Such as `"figure5"`. Defaults to all.
        **options: As `ReproduceOptions` lists them.

    Returns:
        Each table.
    """
    return await _reproduced("malibu", table, options)


async def reproduce_rldf(
    table: str | None = None, **options: Unpack[ReproduceOptions]
) -> tuple[Reproduction, ...]:
    """Reproduce a table or figure of the RLDF paper, or all of them, like `reproduce_stardtox`.

    Args:
        table: Such as `"table3"`. Defaults to all.
        **options: As `ReproduceOptions` lists them.

    Returns:
        Each table.
    """
    return await _reproduced("rldf", table, options)


async def reproduce_list() -> Catalogue:
    """List every table and figure of the papers: whether it can be run, and what it needs.

    Returns:
        The tables and figures. `share` is the share of results that can be run.

    Example:
        >>> evenhand.reproduce_list().frame()
    """
    return await asyncio.to_thread(catalogue)


async def reproduce_page(
    paper: str | None = None, *, tables: str | Path = "docs/reproduced"
) -> str:
    """Write the tables of a paper as Markdown, with our numbers where they were run.

    Args:
        paper: Name of the paper. Defaults to an overview of all.
        tables: Folder of tables that were run, as PAPER-TABLE.json.

    Returns:
        The page.

    Raises:
        UserError: If no paper has the name.

    Example:
        >>> Path("stardtox.md").write_text(evenhand.reproduce_page("stardtox"))
    """
    folder = Path(tables)
    if paper is None:
        return await asyncio.to_thread(papers_page, folder)
    return await asyncio.to_thread(paper_page, paper_named(paper), folder)


async def _reproduced(
    paper: str, table: str | None, options: ReproduceOptions
) -> tuple[Reproduction, ...]:
    own = ReproduceOptions.__annotations__.keys() - OptionalRunOptions.__annotations__.keys()
    values = {name: value for name, value in options.items() if name not in own}
    if refused := [name for name in _OF_RECIPES if name in values]:
        raise UserError(
            f"The paper's recipes decide {refused[0]!r}, so it cannot be set. Leave it out."
        )
    out = str(options.get("out", "runs/papers")).rstrip("/")
    settings = inputs.settings_of({**values, "out": out})
    models, recipe = _GivenModels(options), paper_named(paper)
    if unknown := [name for name in models.trained if name not in recipe.trained]:
        raise UserError(
            f"the paper has no trained weights {unknown[0]!r}. "
            f"{choices_for(unknown[0], recipe.trained)}"
        )
    arguments = Reproducing(
        paper=recipe,
        tables=tables_of(recipe, table),
        models=models,
        settings=replace(settings, replay=settings.replay and settings.replay.rstrip("/")),
        data=inputs.folder_of(options.get("data")),
        size=options.get("size", "small"),
        named=models.named,
        trained=models.trained,
        only=options.get("only"),
        show=options.get("show", False),
        repeats=options.get("repeats", 1),
        wording=options.get("wording", "ours"),
        sample={name: str(value) for name, value in (options.get("sample") or {}).items()},
    )
    plan = await asyncio.to_thread(planned, arguments)
    result = await run_jobs(arguments, plan, options.get("watch") or Watch())
    inputs.whole(result.ended, "every run was made")
    return result.tables


class _GivenModels:
    """The models that Python gives a recipe, by name."""

    def __init__(self, options: ReproduceOptions) -> None:
        given = options.get("model")
        models: Mapping[str, Model] = {}
        if isinstance(given, Mapping):
            models = given
        elif given is not None:
            models = {_name_of(given): given}
        weights = options.get("trained") or {}
        if weights and len(models) > 1:
            raise UserError(
                "Trained weights belong to one model, and several models are named. Call this "
                "once for each model."
            )
        self.named = tuple(models)
        self.trained = {name: f"{name} weights {{repeat}}" for name in weights}
        self._models = {**models, **_by_repeat(weights, options.get("repeats", 1))}
        self._scorers = options.get("scorers")
        self.searches = any(
            isinstance(model, Cast) and SEARCH in model.roles for model in models.values()
        )

    def usual(self) -> Sequence[str]:
        """Name the models: without any, nobody can be asked."""
        if not self.named:
            inputs.cast_of(None)
        return self.named

    def services(self, model: str) -> inputs.Scorers:
        """Return the scorers, which are the same for all models."""
        del model
        return inputs.Scorers(self._scorers)

    def request(
        self, model: str, source: Source, method: Method, settings: RunSettings, *, is_audit: bool
    ) -> Request:
        """Make the request of a run with one of the models. An audit asks the judge alone.

        Args:
            model: The model's name. A replay has models that were not given.
            source: The items.
            method: The method.
            settings: The settings of the run.
            is_audit: Whether the run audits the model as a judge.

        Returns:
            The request.
        """
        player = self._models.get(model)
        if is_audit and isinstance(player, Cast):
            player = player.default
        request = inputs.request_of(source, method, settings, model=player)
        return replace(request, is_audit=is_audit)


def _by_repeat(weights: Mapping[str, Model | list[Model]], repeats: int) -> dict[str, Model]:
    """The models of trained weights, by name and number of the repeat."""
    models: dict[str, Model] = {}
    for name, served in weights.items():
        each = [*served] if isinstance(served, list) else [served] * repeats
        if len(each) != repeats:
            raise UserError(f"trained[{name!r}] has {len(each)} models for {repeats} repeats")
        models |= {f"{name} weights {number}": model for number, model in enumerate(each, 1)}
    return models


def _name_of(model: Model) -> str:
    """The name of a model, or of the default model of a cast."""
    return model if isinstance(model, str) else inputs.cast_of(model).default.name
