"""`evenhand runs pack`: a file with everything that is needed to verify the results of runs;
`evenhand runs export`: a run in the format of another tool."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from evenhand.cli.codes import ERROR, UNFINISHED
from evenhand.cli.options import CertificateFolder, ConfigFile, Json, PriceFile, group_for
from evenhand.cli.screen import err, print_finding, print_json
from evenhand.experiments import config as configuration
from evenhand.experiments.boards import make_board
from evenhand.experiments.dossiers import runs_in
from evenhand.experiments.exchange import export as exported
from evenhand.experiments.pack_checks import verify as verified
from evenhand.experiments.packs import FRAMEWORKS, PackOptions
from evenhand.experiments.packs import make as made
from evenhand.views.export import FORMS

pack = typer.Typer(
    cls=group_for("make"),  # the usual use of the command
    help="Create or verify a signed evidence bundle.",
    no_args_is_help=True,
)


@pack.command()
def make(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN…",
            help="Pack these local run folders, and compare the others with the first where they "
            "share items.",
        ),
    ],
    to: Annotated[Path, typer.Option("--out", "-o", help="Write the pack to this .zip file.")],
    title: Annotated[
        str | None, typer.Option(help="Set the title of the pack and its page.")
    ] = None,
    light: Annotated[
        bool,
        typer.Option(
            "--light", help="Include only the hashes of the run folders, not the folders."
        ),
    ] = False,
    framework: Annotated[
        list[str] | None,
        typer.Option(
            help="Write a page for this framework. May be repeated. Default: all of "
            f"{', '.join(FRAMEWORKS)}."
        ),
    ] = None,
    sign: Annotated[
        Path | None,
        typer.Option(help="Sign the pack with the private Ed25519 key in this PEM file."),
    ] = None,
    previous: Annotated[
        Path | None, typer.Option(help="Link the new pack to this previous pack.")
    ] = None,
    certificates: CertificateFolder = None,
    prices: PriceFile = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Pack runs with their report, hashes, model card and a script that repeats every figure.

    You can omit the word "make". The pack contains prompts and answers; with --light, it contains
    only the examples of its page. The same runs give the same bytes. Exits with code 2 if a run is
    not finished.

    Example: evenhand runs pack make runs/now runs/after --out evidence.zip
    """
    settings = configuration.load(config, None, None, prices=prices)
    wishes = PackOptions(
        title=title,
        light=light,
        frameworks=tuple(framework) if framework else FRAMEWORKS,
        key=sign,
        previous=previous,
        prices=settings.price_table,
        certificates=certificates or settings.certificates,
    )
    evidence = made([run for location in runs for run in runs_in(location)], to, wishes)
    summary = f"wrote {to}: {len(evidence.runs)} runs, {evidence.figures:,} figures"
    err.print(Text(f"{summary}, {len(evidence.files):,} files"))
    if json:
        print_json(evidence.model_dump())
    if evidence.unfinished:
        raise typer.Exit(UNFINISHED)


def board(
    packs: Annotated[
        list[Path], typer.Argument(metavar="FILE…", help="Read these evidence bundles.")
    ],
    to: Annotated[Path, typer.Option("--out", "-o", help="Write the site into this empty folder.")],
    title: Annotated[str, typer.Option(help="Set the title of the index.")] = "Verified results",
    json: Json = False,
) -> None:
    """Make a static site from verified evidence bundles.

    Systems that answered the same items stand side by side, with intervals and a link to their
    bundle's report. A rank is printed only where a system is told apart from all others. A bundle
    that does not hold what it claims is refused.

    Example: evenhand runs board a.zip b.zip --out site
    """
    result = make_board(packs, to, title=title)
    err.print(Text(f"wrote {to}: {len(result.packs)} bundles, {len(result.tables)} tables"))
    if json:
        print_json(result.to_dict())


@pack.command()
def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Check this pack.")],
    key: Annotated[
        Path | None,
        typer.Option(help="Require a signature by the owner of this public key, a PEM file."),
    ] = None,
    previous: Annotated[
        Path | None, typer.Option(help="Require this pack as the previous pack.")
    ] = None,
    json: Json = False,
) -> None:
    """Check every byte of a pack, and repeat its figures from its runs.

    The command checks each file, the signature, the chain and the run folders. It also recomputes
    everything that follows from the runs, and executes nothing from the pack. Exits with code 1 if
    anything differs, and with code 2 if nothing differs but some checks were impossible.

    Example: evenhand runs pack verify evidence.zip --key public.pem
    """
    result = verified(file, key=key, previous=previous)
    print_finding(result, json=json)
    if result.state != "holds":
        raise typer.Exit(ERROR if result.state == "differs" else UNFINISHED)


def export(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="Export this run folder: a path or a URL.")
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", help="Write to this file. eee, hf and lm-eval write a folder instead."
        ),
    ],
    to: Annotated[
        str | None,
        typer.Option(
            help=f"Choose the format: {', '.join(FORMS)}. Default: the file extension of --out."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Write a run as a file that other tools open.

    jsonl, parquet, csv: the results, one row per item. inspect: a log of Inspect (.eval). eee: a
    record of Every Eval Ever. hf: results for a model page of the Hugging Face Hub. lm-eval:
    samples of lm-evaluation-harness, for bbq. A missing answer never counts as incorrect. The
    command overwrites no files. Exits with code 2 if the run is not finished.

    Example: evenhand runs export runs/now --out now.eval
    """
    with err.status(Text(f"reading {run}")):
        written = exported(run, out, configuration.data_folder(), to)
    for path, size in written.files.items():
        err.print(Text(f"wrote {path}: {written.is_}, {written.items:,} items, {size:,} bytes"))
    if written.not_run:
        err.print(Text(f"NOT FINISHED: {written.not_run:,} items of this run are still missing"))
    if json:
        print_json(asdict(written))
    if written.not_run:
        raise typer.Exit(UNFINISHED)
