"""A watch is told what happens while an experiment runs, and says when it should stop."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from evenhand.core.errors import UserError
from evenhand.experiments.certificates import Certified
from evenhand.findings.display import RemarkOrText
from evenhand.runs.runners import Progress, StopSignal


class Watch:
    """A watch that tells nobody anything. A command line tells a person; see
    `evenhand.cli.execution`."""

    def note(self, text: RemarkOrText) -> None:
        """Tell something that a person should know, such as which of several methods is under
        way."""
        del text

    def judges(self, found: Sequence[Certified]) -> None:
        """Tell the judges that a run would ask, each with its certificate or why it has none."""
        del found

    def refuse(self, uncertified: Certified) -> UserError:
        """Make the error that ends a request whose judge must have a certificate and has none."""
        judge, standing = uncertified
        return UserError(
            f"{judge.role} is played by {judge.model!r}: {standing.says}. Nothing was asked. "
            "Audit it with `evenhand audit judge`"
        )

    @asynccontextmanager
    async def progress(self, progress: Progress) -> AsyncIterator[None]:
        """Surround the run, with the counters that it updates."""
        del progress
        yield

    def stop(self) -> StopSignal:
        """Give the signal that stops the run when somebody sets it."""
        return StopSignal()
