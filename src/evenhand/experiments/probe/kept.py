"""The result of a probe is kept by endpoint and model, so that a run can say what is known of its
judge."""

import hashlib
from pathlib import Path
from typing import Literal

import orjson
from pydantic import ValidationError

from evenhand.core.errors import UserError
from evenhand.experiments.probe.asked import questions
from evenhand.experiments.probe.verdicts import Accuracy, Judging, ProbePart
from evenhand.findings.display import Remark
from evenhand.runs.store.folder import as_file_name


class Schema(ProbePart):
    """How many verdicts came in the form that was asked for, at the first asking."""

    held: int
    of: int

    @property
    def says(self) -> Remark:
        return Remark("probe.schema", held=self.held, of=self.of)


class Speed(ProbePart):
    """How fast answers came, one call at a time."""

    calls: int  # that were answered
    seconds: float
    unanswered: int  # calls that failed
    not_made: int  # after several failures in a row no more are made

    @property
    def calls_per_second(self) -> float | None:
        return self.calls / self.seconds if self.calls and self.seconds else None

    @property
    def says(self) -> Remark:
        lost = self.unanswered + self.not_made
        rate = self.calls_per_second
        return Remark("probe.speed", per_second=rate, lost=lost, total=self.calls + lost)


class ProbeResult(ProbePart):
    """The whole result."""

    format: Literal[1] = 1
    url: str
    model: str
    made: str  # when, in UTC
    questions: str  # the checksum of the questions and of the prompts they are put in
    reads: Accuracy
    abstains: Accuracy
    in_schema: Schema
    judge: Judging
    speed: Speed
    broke_off: str | None = None  # the error after which no more calls were made


def keep(folder: Path, probed: ProbeResult) -> Path:
    """Keep a result in the place of an earlier one of the same endpoint and model."""
    path = _place(folder, probed.url, probed.model)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(orjson.dumps(probed.model_dump(), option=orjson.OPT_INDENT_2) + b"\n")
    except OSError as error:
        raise UserError(f"the result of the probe cannot be kept in {path}: {error}") from None
    return path


def find(folder: Path, url: str, model: str) -> ProbeResult | None:
    """Give what is known of a model; None also where the file cannot be read, or where other
    questions were asked or in other words, as by an earlier evenhand: then nothing is known."""
    try:
        probed = ProbeResult.model_validate(orjson.loads(_place(folder, url, model).read_bytes()))
    except (OSError, orjson.JSONDecodeError, ValidationError):
        return None
    key = (url, model, questions().sha256)
    return probed if (probed.url, probed.model, probed.questions) == key else None


def _place(folder: Path, url: str, model: str) -> Path:
    digest = hashlib.sha256(f"{url} {model}".encode("utf-8", "surrogatepass")).hexdigest()
    return folder / f"{as_file_name(model)[:60]}-{digest[:16]}.json"
