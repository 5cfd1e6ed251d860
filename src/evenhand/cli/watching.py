"""A person at a terminal watches a run: progress, the state of its judges, and Ctrl-C."""

import asyncio
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from rich.text import Text

from evenhand.cli.screen import err, run_progress
from evenhand.core.errors import UserError
from evenhand.experiments import probe
from evenhand.experiments.certificates import Certified, JudgeInCast
from evenhand.experiments.config import Config, probe_folder
from evenhand.experiments.request import Watch
from evenhand.findings.remarks import RemarkOrText
from evenhand.runs.runners import Progress, StopSignal
from evenhand.views import catalog

_KEPT = ("--config", "--base-url")  # of what was typed: where the judge is
_NO_JUDGE = {  # what a verdict of the probe means for a run
    "at chance": "its verdicts mean nothing",
    "constant": "its verdicts mean nothing",
    "reversed": "its verdicts point the wrong way",
}


class Terminal(Watch):
    """Tells a person on stderr what an experiment does, and stops it on Ctrl-C."""

    def __init__(self, settings: Config, base_url: str | None = None) -> None:
        """Under this config; `base_url` is where the default model is if nobody typed it."""
        self._settings = settings
        self._base_url = base_url

    def note(self, text: RemarkOrText) -> None:
        err.print(Text(catalog.text(text), style="bold"), soft_wrap=True)

    def judges(self, found: Sequence[Certified]) -> None:
        """One line for each judge: its certificate, what a probe showed of it, and what to do."""
        for judge, state in found:
            probed, warns = self._probed(judge, certified=state.passes)
            style = "bold yellow" if warns else "dim" if state.passes else "yellow"
            line = f"judge {judge.role} = {judge.model}: {state.says}{probed}"
            err.print(Text(line, style=style), soft_wrap=True)

    def _probed(self, judge: JudgeInCast, *, certified: bool) -> tuple[str, bool]:
        """What is known of a judge from a probe, and whether that is a warning. Who has a
        certificate needs none; the probe reads JSON, as the audit does."""
        if judge.by_logprob or not judge.url:
            return "", False
        record = probe.find(probe_folder(), judge.url, judge.model)
        inside = ["--base-url", judge.url, "--model", judge.model]  # of a scorer's own endpoint
        where = inside if judge.within_scorer else self._where(judge)
        command = shlex.join(["evenhand", "doctor", "--probe", *where])
        if record is None:
            return "" if certified else f"; not probed: {command}", False
        summary = f"; the probe of {record.made[:10]} says {record.judge.says}"
        problem = _NO_JUDGE.get(record.judge.verdict)
        if problem is None:
            return summary, False
        advice = f"{problem}. Give the role to a model that judges, or probe again"
        return f"{summary}: {advice}: {command}", True

    def refuse(self, uncertified: Certified) -> UserError:
        judge, state = uncertified
        run = "Run:"
        if state.certificate is not None:
            run = (
                "Give the role to another model under [cast] in the config, or audit this one "
                "again:"
            )
        if self._settings.judges is None:
            run = 'Write certificates = "certificates" under [judges] in the config, then run:'
        # The command has a line of its own, to be copied whole.
        message = f"{judge.role} is played by {judge.model!r}: {state.says}. Nothing was asked."
        again = "-again" if state.certificate is not None else ""
        return UserError(f"{message} {run}\n{self._command(judge)}{again}")

    def _command(self, judge: JudgeInCast) -> str:
        words = ["evenhand", "audit", "judge", *self._where(judge)]
        slug = "".join(c if c.isalnum() or c in "._-" else "-" for c in judge.model)
        return shlex.join([*words, "--out", f"runs/judge-{slug}"])

    def _where(self, judge: JudgeInCast) -> list[str]:
        """The options by which a command finds the judge."""
        words = [word for option in _KEPT for word in _typed(option)]
        name = self._settings.cast.get(judge.role, "default")  # in [models] of the config
        if judge.within_scorer or name == "default":
            if self._base_url and not judge.within_scorer:
                words += ["--base-url", self._base_url]
            return [*words, "--model", judge.model]
        return [*words, "--judge", name]

    @asynccontextmanager
    async def progress(self, progress: Progress) -> AsyncIterator[None]:
        async with run_progress(progress):
            yield

    def stop(self) -> StopSignal:
        """Ctrl-C once finishes what is at work; twice stops at once."""
        stop = StopSignal()

        def heard() -> None:
            if not stop.soft:
                err.print("stopping: finishing the items at work (again to stop at once) …")
            stop()

        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, heard)
        return stop


def _typed(option: str) -> list[str]:
    for index, word in enumerate(sys.argv):
        if word == option and index + 1 < len(sys.argv):
            return [option, sys.argv[index + 1]]
        if word.startswith(f"{option}="):
            return [word]
    return []
