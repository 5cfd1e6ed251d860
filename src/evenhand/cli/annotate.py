"""`evenhand annotate …`: people rate texts, blind to where they are from."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from evenhand.api.preference_data import annotate_agree, annotate_export, annotate_import
from evenhand.cli.codes import BELOW_FLOOR
from evenhand.cli.options import Full, Json
from evenhand.cli.screen import err, out, print_finding, print_json
from evenhand.experiments.human_ratings import SheetsWritten
from evenhand.training.rating import sheets

annotate = typer.Typer(
    help="Collect blinded human ratings and measure agreement.",
    no_args_is_help=True,
)


@annotate.command(no_args_is_help=True)
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

    Example: evenhand annotate export runs/before runs/after --out sheets --raters 5 --sample 30
    """
    written = asyncio.run(
        annotate_export(
            runs, out_, raters=raters, sample=sample, overlap=overlap, key=key, seed=seed,
            note=lambda text: err.print(text, style="dim", soft_wrap=True),
        )
    )  # fmt: skip
    if json:
        print_json(
            {
                "folder": str(written.folder),
                "key": str(written.key_file),
                "texts": len(written.key.texts),
                "sheets": written.sheets,
                "left_out": written.key.left_out,
                "naming_a_model": written.naming_a_model,
                "shared": written.key.shared,
            }
        )
    else:
        _show_sheets(written, runs=len(runs))


def _show_sheets(written: SheetsWritten, *, runs: int) -> None:
    key, sizes = written.key, written.sheets
    out.print(f"{len(key.texts):,} texts, {max(sizes.values()):,} for each of {len(sizes)} raters")
    for reason, n in key.left_out.items():
        out.print(f"left out: {n:,} {reason}")
    if runs > 1 and not key.shared:
        out.print("the runs share no items: each is rated on its own, and none is compared")
    if written.naming_a_model:
        out.print(
            f"! {written.naming_a_model:,} texts name a model: who reads them may guess where they "
            "are from"
        )
    out.print(
        f"{written.folder}: a folder for each rater; {written.key_file}: the key, not for raters",
        soft_wrap=True,
    )
    back = f"evenhand annotate import SHEET.csv … --key {written.key_file} --out ratings"
    out.print(f"next  {back}", soft_wrap=True)


@annotate.command("import", no_args_is_help=True)
def import_(
    files: Annotated[
        list[Path], typer.Argument(metavar="SHEET.csv...", help="Sheets that came back.")
    ],
    key: Annotated[Path, typer.Option(help="The key that `annotate export` wrote.")],
    out_: Annotated[
        Path, typer.Option("--out", "-o", help="The folder of the ratings; a new one.")
    ],
    json: Json = False,
) -> None:
    """Read filled sheets. Any fault is listed by line and nothing is written.

    A mark that was left empty is missing, never 0: it is listed and counted.

    Example: evenhand annotate import rater-1.csv rater-2.csv --key sheets-key.json --out ratings
    """
    account = asyncio.run(annotate_import(files, key, out_))
    if json:
        print_json(account.to_dict())
        return
    present = account.marks - len(account.missing)
    out.print(f"{present:,} of {account.marks:,} marks from {len(account.sheets)} sheets")
    for line in account.missing:
        out.print(line, style="dim", soft_wrap=True, markup=False)
    if account.not_returned:
        out.print(f"! no sheet from {', '.join(account.not_returned)}")
    out.print(f"next  evenhand annotate agree {out_}", soft_wrap=True)


@annotate.command(no_args_is_help=True)
def agree(
    folder: Annotated[
        Path, typer.Argument(metavar="RATINGS", help="The folder that `annotate import` wrote.")
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
        typer.Option(help="Write the raters' marks for `audit judge --labels`: a .jsonl file."),
    ] = None,
    full: Full = False,
    json: Json = False,
) -> None:
    """Say how far raters agree, what they think of each run, and whether a judge agrees with them.

    Ends with code 2 if fewer than 95 % of the marks were given.

    Example: evenhand annotate agree ratings --judge runs/after
    """
    agreement = asyncio.run(annotate_agree(folder, judge=judge, labels=labels))
    if labels is not None:
        err.print(f"wrote {labels}", soft_wrap=True)
    print_finding(agreement, json=json, full=full)
    if agreement.coverage.below_floor:
        raise typer.Exit(BELOW_FLOOR)
