"""`evenhand measure`: a benchmark through a method, and what may be said of the result.

Each benchmark is a command of its own, with its own options beside the shared ones.
"""

import typer

from evenhand.cli.measure_bbq import bbq
from evenhand.cli.measure_likelihood import likelihood
from evenhand.cli.measure_rtp import rtp
from evenhand.cli.measure_squad import squad
from evenhand.cli.measuring import with_run_options

measure = typer.Typer(
    help="Measure a method on a benchmark, or a model itself.\n\n"
    "Example: evenhand measure bbq --method default --per-category 8 --out runs/bbq-default",
    no_args_is_help=True,
)
for benchmark in (bbq, rtp, squad):
    measure.command(no_args_is_help=True)(with_run_options(benchmark))
measure.command(no_args_is_help=True)(likelihood)
