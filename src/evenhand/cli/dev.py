"""`evenhand dev …`: extend evenhand, check it, and reproduce the papers."""

import typer

dev = typer.Typer(help="Extend evenhand, check it, and reproduce the papers.", no_args_is_help=True)
