"""`evenhand annotate …`: people rate texts without knowing their source."""

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
        list[str],
        typer.Argument(
            metavar="RUN...", help="Sample items from these run folders: paths or URLs."
        ),
    ],
    out_: Annotated[
        Path, typer.Option("--out", "-o", help="Write the sheets into this new folder.")
    ],
    raters: Annotated[
        int, typer.Option(min=1, max=sheets.MOST_RATERS, help="Set the number of raters.")
    ] = 5,  # paper 002, 4.1: five labelers
    sample: Annotated[
        int, typer.Option(min=1, help="Set the sample size per run.")
    ] = 30,  # our choice: twice what an interval needs, and an hour's work with two runs
    overlap: Annotated[
        int | None, typer.Option(min=1, help="Assign this many raters to each text. Default: all.")
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(
            help="Write the key to this file. Default: NAME-key.json, next to the folder."
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Set the seed for items, names and orders. Anyone who knows it can tell which "
            "texts come from the same run. Default: random, stored in the key."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Make blinded sheets: a folder for each rater, and a key that raters never get.

    Of runs that share items, raters see the same items. Give each rater their own folder. It
    contains a rating page, a table that raters can fill in instead, and the rubric.

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
        out.print("the runs share no items: raters rate each run separately, without a comparison")
    if written.naming_a_model:
        out.print(
            f"! {written.naming_a_model:,} texts name a model: raters may guess where they "
            "come from"
        )
    out.print(
        f"{written.folder}: a folder for each rater; {written.key_file}: the key, hide it from "
        f"raters",
        soft_wrap=True,
    )
    back = f"evenhand annotate import SHEET.csv … --key {written.key_file} --out ratings"
    out.print(f"next  {back}", soft_wrap=True)


@annotate.command("import", no_args_is_help=True)
def import_(
    files: Annotated[
        list[Path], typer.Argument(metavar="SHEET.csv...", help="Read these filled-in sheets.")
    ],
    key: Annotated[Path, typer.Option(help="Use the key that `annotate export` wrote.")],
    out_: Annotated[
        Path, typer.Option("--out", "-o", help="Write the ratings into this new folder.")
    ],
    json: Json = False,
) -> None:
    """Read filled sheets. Any fault is listed by line and nothing is written.

    An empty rating counts as missing, never as 0. The command lists and counts missing ratings.

    Example: evenhand annotate import rater-1.csv rater-2.csv --key sheets-key.json --out ratings
    """
    account = asyncio.run(annotate_import(files, key, out_))
    if json:
        print_json(account.to_dict())
        return
    out.print(f"{account.present:,} of {account.marks:,} ratings from {len(account.sheets)} sheets")
    for line in account.missing:
        out.print(line, style="dim", soft_wrap=True, markup=False)
    if account.not_returned:
        out.print(f"! no sheet from {', '.join(account.not_returned)}")
    out.print(f"next  evenhand annotate agree {out_}", soft_wrap=True)


@annotate.command(no_args_is_help=True)
def agree(
    folder: Annotated[
        Path,
        typer.Argument(metavar="RATINGS", help="Read the folder that `annotate import` wrote."),
    ],
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="RUN|FILE",
            help="Compare a judge with the raters: a run that scored these texts, or a CSV file "
            "with ids and scores.",
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="Write the ratings to a .jsonl file, for `audit judge --labels`."),
    ] = None,
    full: Full = False,
    json: Json = False,
) -> None:
    """Say how far raters agree, what they think of each run, and whether a judge agrees with them.

    Exits with code 2 if fewer than 95% of the ratings are present.

    Example: evenhand annotate agree ratings --judge runs/after
    """
    agreement = asyncio.run(annotate_agree(folder, judge=judge, labels=labels))
    if labels is not None:
        err.print(f"wrote {labels}", soft_wrap=True)
    print_finding(agreement, json=json, full=full)
    if agreement.coverage.below_floor:
        raise typer.Exit(BELOW_FLOOR)
