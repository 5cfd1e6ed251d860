"""`evenhand doctor --probe`: what a model is good for, each part said when it is known."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from evenhand import config as configuration
from evenhand.cli.screen import waiting
from evenhand.experiments import probe
from evenhand.models.base import ChatModel

_AGAIN = "mend the endpoint, then run again: evenhand doctor --probe"


def folder() -> Path:
    """The folder in the user's cache for what probes found."""
    return configuration.data_folder().cache / "probes"


@dataclass(slots=True)
class Prober:
    """A probe that says its parts in words, and keeps its result if every call was answered: else
    it tells of the endpoint and not of the model."""

    result: probe.Probed | None = None

    async def lines(self, model: ChatModel) -> AsyncIterator[tuple[str, bool | None, str]]:
        """Give what each part is about, whether all is well (None: a result, which is neither) and
        what it shows."""
        probing = probe.Probing(model)
        async with waiting("probing: reading …") as line:

            def told(done: int, total: int) -> None:
                line.what = f"probing: {done} of {total} calls"

            probing.told = told
            reads, abstains = await probing.reading()
        yield "reads", None, reads.says
        yield "says: not told", None, abstains.says
        async with waiting("probing: judging …") as line:
            schema, judge = await probing.judging()
        yield "schema", None, schema.says
        yield "judge", None, judge.says
        yield "speed", None, probing.speed.says
        self.result = probing.result
        if probing.lost is None:
            where = probe.keep(folder(), self.result)
            yield "kept", None, f"{where}: a run whose judge is this model says so before it starts"
        else:
            counted = "What was not answered counts as wrong above, and nothing of it is kept"
            failed = f"{probing.speed.unanswered} calls failed, the first by: {probing.lost}"
            if probing.broke_off:
                failed = f"broke off: {probing.broke_off}"
            yield "probe", False, f"{failed}. {counted}; {_AGAIN}"
