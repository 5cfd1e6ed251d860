"""The files of a policy while a gateway serves: when to read them again, and whether that failed.

A change is seen within a second, or at once by SIGHUP. What is refused changes nothing: the policy
in force stays, and the problem is an alarm until the file is accepted.
"""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path

from evenhand.core.errors import EvenhandError

_LOOK_SECONDS = 1.0  # our choice


class PolicyFiles:
    """The policy file and the screen files that it names."""

    def __init__(self, files: Callable[[], Iterable[Path]]) -> None:
        """
        Args:
            files: Gives the files of the policy that is in force.
        """
        self._files = files
        self._asked = asyncio.Event()
        self._read: dict[Path, tuple[int, int, int] | None] = {}  # before the policy was read
        self.healthy = True
        self.problem = ""

    def reading(self) -> None:
        """Say that the policy is read now: what changes from here on is read again."""
        self._read = self._versions()

    async def changes(self, look_seconds: float = _LOOK_SECONDS) -> AsyncIterator[None]:
        """Yield each time that the policy must be read again.

        Args:
            look_seconds: The time between two looks at the files.

        Yields:
            Nothing; the caller reads the policy and then says `accepted` or `refused`.
        """
        before = {path: self._read.get(path, at) for path, at in self._versions().items()}
        with _by_hangup(self._asked.set):
            while True:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._asked.wait(), look_seconds)
                now = self._versions()
                if self._asked.is_set() or now != before:
                    self._asked.clear()
                    yield
                    # What changed while the policy was read is looked at again.
                    before = {path: now.get(path, at) for path, at in self._versions().items()}

    def accepted(self) -> None:
        """Say that the policy in force is that of the files."""
        self.healthy = True

    def refused(self, error: Exception) -> None:
        """Say why the policy in force is older than the files."""
        said = str(error) if isinstance(error, EvenhandError) else type(error).__name__
        self.healthy, self.problem = False, f"the old policy stays in force: {said}"

    def _versions(self) -> dict[Path, tuple[int, int, int] | None]:
        return {path: _version(path) for path in self._files()}


def _version(path: Path) -> tuple[int, int, int] | None:
    """What tells one version of a file from the next; None if it is not there."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


@contextlib.contextmanager
def _by_hangup(asked: Callable[[], None]) -> Iterator[None]:
    """Call it at each SIGHUP; not outside the main thread, where no signal arrives."""
    loop = asyncio.get_running_loop()
    try:
        loop.add_signal_handler(signal.SIGHUP, asked)
    except (NotImplementedError, RuntimeError, ValueError):
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)
