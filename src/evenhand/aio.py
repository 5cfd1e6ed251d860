"""The Python functions for code that awaits: those of `evenhand` itself, each a coroutine.

    report = await evenhand.aio.measure("bbq", model=model, out="runs/now")

A script says all that it uses: no config file is read. From the environment come only EVENHAND_DATA
(the folder of data sets) and the keys of services that are named on the spot as KIND=URL.
Whoever makes a model closes it, so that several calls can share its connections:

    async with evenhand.Endpoint(url, model="gpt-4o") as model: ...
"""

from evenhand.api.findings import compare, open_run, reliability, report
from evenhand.api.measuring import answer, audit, forecast, frontier, measure, mitigate
from evenhand.experiments.watch import Watch

__all__ = [
    "Watch", "answer", "audit", "compare", "forecast", "frontier", "measure", "mitigate",
    "open_run", "reliability", "report",
]  # fmt: skip
