"""`evenhand judge-check`: what labels, slots and requests do to a judge, and its certificate."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli.execution import end, execute
from evenhand.cli.forecast import show_forecast
from evenhand.cli.run_options import RunCommand, with_run_options
from evenhand.cli.sampling import DrawSeed
from evenhand.cli.screen import err, out, print_json
from evenhand.config import Config, ModelConfig, data_folder
from evenhand.domain import Item
from evenhand.errors import UserError
from evenhand.experiments.request import Request
from evenhand.findings.estimates import Coverage
from evenhand.instruments import instrument_named
from evenhand.instruments._judge_pairs import JudgePairs, JudgePairsOptions
from evenhand.instruments.judge import TEN, Design, MalibuData, MalibuSource
from evenhand.instruments.judge.audit import audit
from evenhand.instruments.judge.certificate import FILE, INJECTED, keep
from evenhand.instruments.judge.effects import SCORE_MARGIN, WIN_MARGIN
from evenhand.instruments.judge.probes import (
    KNOWN,
    AuditSource,
    injected,
    known,
    labelled,
    to_write,
)
from evenhand.methods.build import build_method
from evenhand.methods.judging import OTHER, ROLE, Panel, roles_of
from evenhand.store import RunReader
from evenhand.store.folder import open_folder
from evenhand.views import files, terminal_of

_USUAL = Design()


def _judge_check(
    options: RunCommand,
    judge: Annotated[
        str | None,
        typer.Option(
            help="A model of the config, by its name there; with --panel several, with commas, "
            "whom the personas take in turn. Default: who plays `judge` in the cast, else the "
            "default model."
        ),
    ] = None,
    panel: Annotated[
        bool, typer.Option("--panel", help="Audit a panel of it, in discussion.")
    ] = False,
    bases: Annotated[int, typer.Option(min=1, help="Base scenarios, of 63.")] = _USUAL.bases,
    derived: Annotated[
        int, typer.Option(min=1, help="Scenarios of each base, of 10.")
    ] = _USUAL.derived,
    texts: Annotated[
        int,
        typer.Option(min=1, max=2, help="Responses that are marked alone; 1 is as in the paper."),
    ] = _USUAL.texts,
    pairs: Annotated[
        int | None,
        typer.Option(min=0, help="Bases on which each two labels are compared. Default: 8."),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="How often each question is asked.")] = 1,
    identities: Annotated[
        str | None, typer.Option(help="Labels with commas. Default: the paper's ten.")
    ] = None,
    families: Annotated[
        Path | None, typer.Option(help="A TOML file with labels of your own: docs/malibu.md.")
    ] = None,
    scenarios: Annotated[
        Path | None, typer.Option(help="A JSONL file with scenarios of your own.")
    ] = None,
    injections: Annotated[
        int,
        typer.Option(
            min=0, help="Bases on which requests to the judge are tried, three calls each."
        ),
    ] = INJECTED,
    labels: Annotated[
        Path | None,
        typer.Option(help="Texts that people marked: JSONL with task, text, label."),
    ] = None,
    known_pairs: Annotated[
        str | None,
        typer.Option(
            help="Sets of pairs whose better answer is known, with commas: llmbar, evalbiasbench. "
            "Does the judge tell it? 200 and 160 more calls."
        ),
    ] = None,
    other: Annotated[
        str | None,
        typer.Option(
            help="A model of the config from another family: does the judge prefer the texts of "
            "its own model to those of this one? Six more calls a base."
        ),
    ] = None,
    margin: Annotated[
        float,
        typer.Option(
            help="Largest acceptable shift of a mark by a label, in points of ten; the check "
            "passes only if the effect is shown to be smaller."
        ),
    ] = SCORE_MARGIN,
    margin_wins: Annotated[
        float,
        typer.Option(
            help="Largest acceptable shift of the win rate by position; the check passes only if "
            "the effect is shown to be smaller."
        ),
    ] = WIN_MARGIN,
    sample_seed: DrawSeed = 0,
    full: Annotated[bool, typer.Option("--full", help="Show every table.")] = False,
) -> None:
    """Audit a judge and write its certificate.

    Does it mark the same text differently under another label of its author?

    Writes report.json and judge-certificate.json into the run folder, and the certificate into the
    folder that [judges] in the config names. Ends with code 2 if fewer than 95 % of the verdicts
    could be read, with 3 at a cap. That a judge fails is a result, and code 0.

    Example: evenhand judge-check --bases 12 --out runs/judge
    """
    design = Design(
        bases=bases,
        derived=derived,
        texts=texts,
        pairs=min(_USUAL.pairs, bases) if pairs is None else pairs,
        repeats=repeats,
        identities=_names(identities) if identities else TEN,
        seed=sample_seed,
    )
    if options.settings.dedupe and repeats > 1:
        raise UserError("--dedupe asks once what is repeated: leave out one of the two")
    margins = {
        "score": _positive(margin, "--margin"),
        "win_rate": _positive(margin_wins, "--margin-wins"),
    }
    if other is not None and panel:
        raise UserError("--other asks one judge about its own texts: leave out --panel")
    further = [] if known_pairs is None else _known(known_pairs, sample_seed)
    if labels is not None:
        further += labelled(labels)
    with_own_texts = other is not None
    source = _source(
        design, families, scenarios, injections, further, margins, with_own_texts=with_own_texts
    )
    judges = _names(judge) if judge else ()
    if len(judges) > 1 and not panel:
        raise UserError("--judge: several models make a panel; add --panel, or audit each alone")
    seats = [f"models={len(judges)}"] if panel and judges else []
    method = build_method("panel" if panel else "rate", [*(options.set_ or ()), *seats])
    roles = roles_of(method.models) if isinstance(method, Panel) else (ROLE,)
    config = alone(options.load(), roles, judges, other)
    request = options.request(source, method, config, is_audit=True)
    ended = execute(request, config, json=options.json)
    if ended.pilot is not None:
        show_forecast(request.settings, ended, json=options.json)
        return
    if ended.stopped or ended.capped_by:
        end(ended, below_floor=False)
    coverage = _conclude(request, json=options.json, full=full)
    end(ended, below_floor=coverage is not None and coverage.below_floor)


judge_check = with_run_options(
    _judge_check, without=("method", "wording", "require_certified_judges", "system")
)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _positive(margin: float, option: str) -> float:
    if not margin > 0:
        raise UserError(f"{option}: a margin is a positive distance, not {margin:g}")
    return margin


def _source(
    design: Design,
    families: Path | None,
    scenarios: Path | None,
    injections: int,
    further: list[Item],
    margins: dict[str, float],
    *,
    with_own_texts: bool,
) -> AuditSource:
    data = MalibuData()
    drawn_from = data.scenarios(scenarios)
    source = MalibuSource(drawn_from, data.labels(families), design)
    probes = injected(source, drawn_from, injections) + further
    if with_own_texts:
        probes += to_write(source, drawn_from)
    return AuditSource(source, probes, margins)


def _known(text: str, seed: int) -> list[Item]:
    """The pairs of each set that is named, as many as its instrument draws."""
    items: list[Item] = []
    for name in dict.fromkeys(_names(text) or (text,)):
        if name not in KNOWN:
            raise UserError(f"--known-pairs: there is no set {name!r}; there are: "
                            f"{', '.join(KNOWN)}")  # fmt: skip
        instrument = instrument_named(name)
        assert isinstance(instrument, JudgePairs)
        items += known(name, instrument.drawn(data_folder(), JudgePairsOptions().sample, seed))
    return items


def alone(
    settings: Config, roles: Sequence[str], judges: Sequence[str], other: str | None = None
) -> Config:
    """The config with the judges and, if asked for, the other writer as its only models: no further
    one is needed, so none is looked at."""
    names = judges or [settings.cast.get(role, "default") for role in roles]
    models = {
        role: _named(settings, name, "--judge") for role, name in zip(roles, names, strict=True)
    }
    models["default"] = models.pop(ROLE)
    if other is not None:
        models[OTHER] = _named(settings, other, "--other")
        if models[OTHER] == models["default"]:
            raise UserError(
                f"--other: {other!r} is the judge itself; name a model of another family"
            )
    cast = {role: role for role in models if role != "default"}
    return settings.model_copy(update={"models": models, "cast": cast, "search": None})


def _named(settings: Config, name: str, option: str) -> ModelConfig:
    if name not in settings.models:
        available = ", ".join(sorted(settings.models))
        raise UserError(f"{option}: the config has no model {name!r}; it has: {available}")
    return settings.models[name]


def _conclude(request: Request, *, json: bool, full: bool) -> Coverage | None:
    """Write and show what was found."""
    report, certificate = audit(RunReader(request.settings.out), request.settings.prices)
    files.write_report(report, request.settings.out)
    open_folder(request.settings.out).replace(FILE, certificate.to_bytes())
    if json:
        print_json(files.plain(report.to_dict()))
    else:
        out.print(terminal_of(report, full=full))
        out.print(f"{request.settings.out}/report.json, {FILE}", style="dim")
    if request.settings.certificates is not None:
        path = keep(certificate, request.settings.certificates)
        err.print(f"certificate kept as {path}", soft_wrap=True)
    return report.coverage
