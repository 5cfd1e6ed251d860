"""What is told while an experiment runs, and how it is asked to stop."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from evenhand.errors import UserError
from evenhand.experiments.certificates import Certified
from evenhand.runners import Progress, StopSignal


class Watch:
    """Tells nobody anything. A command line tells a person; see `evenhand.cli.watching`."""

    def note(self, text: str) -> None:
        """Something that a person should know, such as which of several methods is under way."""
        del text

    def judges(self, found: Sequence[Certified]) -> None:
        """The judges that a run would ask, each with its certificate or why it has none."""
        del found

    def refuse(self, uncertified: Certified) -> UserError:
        """The error that ends a request whose judge must have a certificate and has none."""
        judge, found = uncertified
        return UserError(
            f"{judge.role} is played by {judge.model!r}: {found.says}. Nothing was asked. "
            "Audit it with `evenhand judge-check`"
        )

    @asynccontextmanager
    async def progress(self, progress: Progress) -> AsyncIterator[None]:
        """Around the run, with the counters that it updates."""
        del progress
        yield

    def stop(self) -> StopSignal:
        """The signal that stops the run when somebody sets it."""
        return StopSignal()
