"""`evenhand` in a process of its own that has loaded the package before it starts.

Loading takes two seconds, a hundred times over. Here one process loads it once and forks for each
command; what a fork shares with the command a user runs is all but the loading.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn


class Warm:
    """The handle of the process that forks."""

    def __init__(self, environment: Mapping[str, str], python: str = sys.executable) -> None:
        self._child = subprocess.Popen(
            [python, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=dict(environment),  # a console looks at it when the package is loaded
        )

    def close(self) -> None:
        self._child.communicate()  # the end of its input is its end

    def run(
        self, arguments: tuple[str, ...], folder: Path, environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        outputs = [folder / f".{name}" for name in ("stdout", "stderr")]
        order = {
            "arguments": arguments,
            "folder": str(folder),
            "environment": dict(environment),
            "outputs": [str(path) for path in outputs],
        }
        self._child.stdin.write(json.dumps(order) + "\n")
        self._child.stdin.flush()
        code = int(self._child.stdout.readline())
        said, told = (path.read_text() for path in outputs)
        for path in outputs:
            path.unlink()
        return subprocess.CompletedProcess(["evenhand", *arguments], code, said, told)


def _serve() -> None:
    # What commands load late: two seconds of each that reads a run.
    for late in ("scipy.stats", "pandas"):
        with contextlib.suppress(ImportError):
            importlib.import_module(late)
    from evenhand.cli.app import COMMANDS, load, main  # noqa: PLC0415 - only here, in the child

    for name in COMMANDS:
        load(name)
    gc.freeze()  # a fork that collects would copy all that was loaded
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _become(json.loads(line))
            _end_after(main)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _become(order: dict[str, Any]) -> None:
    """Take over all that a command finds when it starts."""
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.argv = ["evenhand", *order["arguments"]]
    for descriptor, path in enumerate((os.devnull, *order["outputs"])):
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC if descriptor else os.O_RDONLY
        os.dup2(os.open(path, flags, 0o600), descriptor)
    sys.stdin = open(os.devnull)  # noqa: SIM115 - the old one holds orders to come


def _end_after(command: Callable[[], None]) -> NoReturn:
    """End as a program does, but leave its memory to the system: to give back all that was loaded
    takes more than most commands do."""
    code: object = None
    try:
        command()
    except SystemExit as end:
        code = end.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    if not isinstance(code, int | None):
        print(code, file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit((code or 0) if isinstance(code, int | None) else 1)


if __name__ == "__main__":
    _serve()
