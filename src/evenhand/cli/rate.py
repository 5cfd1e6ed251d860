"""`evenhand rate …`: people rate texts, blind to where they are from."""

import secrets
from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli.codes import BELOW_FLOOR
from evenhand.cli.options import Full, Json
from evenhand.cli.screen import err, out, print_json
from evenhand.debates.dataset import require_new
from evenhand.errors import UserError
from evenhand.findings.ratings import ratings as reported
from evenhand.rating import filled, judges, sheets, texts
from evenhand.store import RunReader
from evenhand.views import terminal_of
from evenhand.views.files import plain

rate = typer.Typer(
    help="Let people rate texts: sheets out, sheets in, how far they agree.",
    no_args_is_help=True,
)


@rate.command(no_args_is_help=True)
def export(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="Run folders: paths or URLs.")
    ],
    out_: Annotated[Path, typer.Option("--out", "-o", help="The folder of the sheets; a new one.")],
    raters: Annotated[
        int, typer.Option(min=1, max=sheets.MOST_RATERS, help="How many people rate.")
    ] = 5,  # paper 002, 4.1: five labelers
    sample: Annotated[
        int, typer.Option(min=1, help="How many items of each run are rated.")
    ] = 30,  # our choice: twice what an interval needs, and an hour's work with two runs
    overlap: Annotated[
        int | None, typer.Option(min=1, help="So many raters for each text. Default: all.")
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(help="Where the key goes. Default: beside the folder, as NAME-key.json."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Draws the items, the names and the orders. Default: by chance, noted in the key. "
            "Who knows it knows which texts are from one run."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Make blinded sheets: a folder for each rater, and a key that raters never get.

    Runs that share items are rated on the same ones. Give each rater their folder, which has a
    page, a table to fill instead of it, and the rubric.

    Example: evenhand rate export runs/before runs/after --out sheets --raters 5 --sample 30
    """
    require_new(out_)
    if len(set(runs)) < len(runs):
        raise UserError("a run is given twice; name each once")
    key_path = key or out_.with_name(f"{out_.name}-key.json")
    opened = []
    for run in runs:
        err.print(f"reading {run}", style="dim", soft_wrap=True)
        opened.append(RunReader(run))
    seed = secrets.randbelow(2**32) if seed is None else seed
    selection = texts.drawn(opened, sample, seed)
    sheet_key = sheets.export(
        opened, selection, out_, key_path, raters=raters, overlap=overlap or raters, seed=seed
    )
    naming_count = texts.naming_a_model(selection.texts, opened)
    counted = {rater: len(ids) for rater, ids in sheet_key.sheets.items()}
    if json:
        left = {
            "left_out": sheet_key.left_out,
            "naming_a_model": naming_count,
            "shared": sheet_key.shared,
        }
        where = {"folder": str(out_), "key": str(key_path), "texts": len(sheet_key.texts)}
        print_json({**where, "sheets": counted, **left})
        return
    out.print(
        f"{len(sheet_key.texts):,} texts, {max(counted.values()):,} for each of {raters} raters"
    )
    for reason, n in sheet_key.left_out.items():
        out.print(f"left out: {n:,} {reason}")
    if len(runs) > 1 and not sheet_key.shared:
        out.print("the runs share no items: each is rated on its own, and none is compared")
    if naming_count:
        out.print(
            f"! {naming_count:,} texts name a model: who reads them may guess where they are from"
        )
    out.print(
        f"{out_}: a folder for each rater; {key_path}: the key, not for raters", soft_wrap=True
    )
    back = f"evenhand rate import SHEET.csv … --key {key_path} --out ratings"
    out.print(f"next  {back}", soft_wrap=True)


@rate.command("import", no_args_is_help=True)
def import_(
    files: Annotated[
        list[Path], typer.Argument(metavar="SHEET.csv...", help="Sheets that came back.")
    ],
    key: Annotated[Path, typer.Option(help="The key that `rate export` wrote.")],
    out_: Annotated[
        Path, typer.Option("--out", "-o", help="The folder of the ratings; a new one.")
    ],
    json: Json = False,
) -> None:
    """Read filled sheets. Any fault is listed by line and nothing is written.

    A mark that was left empty is missing, never 0: it is listed and counted.

    Example: evenhand rate import rater-1.csv rater-2.csv --key sheets-key.json --out ratings
    """
    require_new(out_)
    sheet_key, rows, account = filled.read(files, key)
    filled.write(out_, sheet_key, rows, account)
    if json:
        print_json(account.to_dict())
        return
    present = account.marks - len(account.missing)
    out.print(f"{present:,} of {account.marks:,} marks from {len(account.sheets)} sheets")
    for line in account.missing:
        out.print(line, style="dim", soft_wrap=True, markup=False)
    if account.not_returned:
        out.print(f"! no sheet from {', '.join(account.not_returned)}")
    out.print(f"next  evenhand rate agree {out_}", soft_wrap=True)


@rate.command(no_args_is_help=True)
def agree(
    folder: Annotated[
        Path, typer.Argument(metavar="RATINGS", help="The folder that `rate import` wrote.")
    ],
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="RUN|FILE",
            help="Hold a judge against the raters: a run that scored these texts, or a CSV with "
            "id and marks.",
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="Write the raters' marks for `judge-check --labels`: a .jsonl file."),
    ] = None,
    full: Full = False,
    json: Json = False,
) -> None:
    """Say how far raters agree, what they think of each run, and whether a judge agrees with them.

    Ends with code 2 if fewer than 95 % of the marks were given.

    Example: evenhand rate agree ratings --judge runs/after
    """
    key, rows, not_returned = filled.load(folder)
    marked = judges.judge_marks(judge, key) if judge else None
    agreement = reported(key, rows, not_returned, marked)
    if labels is not None:
        labels.write_bytes(judges.labels(key, rows))
        err.print(f"wrote {labels}", soft_wrap=True)
    if json:
        print_json(plain(agreement.to_dict()))
    else:
        out.print(terminal_of(agreement, full=full))
    if agreement.coverage.below_floor:
        raise typer.Exit(BELOW_FLOOR)
