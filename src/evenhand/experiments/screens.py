"""The drift checks of a screen are stored next to its file: each run that it was used in is one,
its scores are pooled with those of all earlier checks, and it counts against the level of the next.

Each look names the checksum of the line before it, and the screen file that of the last one. So a
file of looks that was cut back, changed or put back from an earlier day is refused.
"""

import hashlib
import math
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

import orjson

from evenhand.agents import Cast
from evenhand.core.errors import UserError
from evenhand.experiments import config as configuration
from evenhand.experiments.config import Config
from evenhand.experiments.request import Request, Watch
from evenhand.experiments.running import RunEnd, execute
from evenhand.findings.checksummed import ChecksummedPart
from evenhand.findings.display import Remark
from evenhand.findings.screen_file import LastLook, ScreenedBy, ScreenFile, read_screen
from evenhand.findings.screened import ScreenCounts, ScreenedRun, ScreenLook, counted, look_at
from evenhand.instruments.scorer.screening import (
    Columns,
    LabelledTexts,
    ScreenTargets,
    calibrated,
    read_traffic,
)
from evenhand.methods import Method
from evenhand.methods.judge_text import JUDGE, SCREEN
from evenhand.methods.judge_text import ScreenedJudge as ScreenedMethod
from evenhand.runs.runners import Source
from evenhand.runs.runners.prompt_files import is_table, source_of
from evenhand.runs.runners.source import read_row
from evenhand.runs.store import RunReader
from evenhand.runs.store.folder import held
from evenhand.scorers import Scorer, ScorerModel
from evenhand.scorers.base import TOXICITY, scores_of, was_trained_on
from evenhand.views import save

# Shows a scoring by the scorer's name while a context is open: it is called with each batch's size.
ShownScoring = Callable[[str], AbstractContextManager[Callable[[int], None]]]
_BEGUN = b'{"begun"'
_PUT_BACK = "put {} back, or calibrate again with evenhand scorers screen calibrate"


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationRequest:
    """Which texts calibrate a screen, which promises it is to keep, and where its file goes."""

    labelled: Path
    out: Path
    said: str  # the scorer, as it can be opened again
    columns: Columns = field(default_factory=Columns)
    promise: ScreenTargets = field(default_factory=ScreenTargets)
    attribute: str = TOXICITY
    traffic: Path | None = None


async def calibrate(
    request: CalibrationRequest, config: Config, shown: ShownScoring | None = None
) -> ScreenFile:
    """Find the cut-offs of a screen, and write its file and its card.

    Args:
        request: The texts, the scorer, the promises and the file.
        config: The config, in which the scorer's name is looked up.
        shown: Shows how many texts are scored.

    Returns:
        The screen. `refused` lists promises for which there are too few labels.

    Raises:
        UserError: If the texts cannot be read, no scorer has the name, or the file exists.
    """
    async with configuration.opened_scorer(config, request.said) as scorer:
        with shown(scorer.name) if shown else nullcontext() as on_batch:
            return await _calibrated(request, scorer, on_batch)


async def _calibrated(
    request: CalibrationRequest, scorer: Scorer, on_batch: Callable[[int], None] | None
) -> ScreenFile:
    _refuse_taken(request.out)
    sample = LabelledTexts.read(request.labelled, request.columns)
    traffic = read_traffic(request.traffic, request.columns.text) if request.traffic else []
    _refuse_trained(scorer, sample.table["text"].to_list())
    texts = [*sample.table["text"], *traffic]
    values = await scores_of(scorer, texts, request.attribute, on_batch)
    by = ScreenedBy(
        said=request.said,
        name=scorer.name,
        described=orjson.loads(orjson.dumps(scorer.describe())),
        attribute=request.attribute,
    )
    cut = len(sample.table)
    later = (request.traffic.name, values[cut:]) if request.traffic else None
    file = calibrated(sample, values[:cut], request.promise, by, later)
    begin_looks(request.out, file)
    request.out.write_bytes(file.to_bytes())
    save(file, str(card_of(request.out)))
    return file


def _refuse_trained(scorer: Scorer, texts: list[str]) -> None:
    """A screen does better on what its scorer was trained on than on any other text."""
    seen = [text for text in texts if was_trained_on(scorer, text)]
    if seen:
        raise UserError(
            f"{scorer.name} was trained on {len(seen):,} of the {len(texts):,} labeled texts, such "
            f"as {seen[0][:60]!r}. A guarantee needs other texts: leave these out"
        )


def card_of(path: Path) -> Path:
    """The name of a screen's card."""
    return path.with_suffix(".md")


def _refuse_taken(path: Path) -> None:
    """A screen in use must not change under its name: its looks would be another's."""
    if path.suffix != ".json":
        raise UserError(f"--out {path}: a screen file ends in .json")
    for file in (path, card_of(path)):
        if file.exists():
            raise UserError(
                f"{file} already exists, and a screen is never overwritten. Choose another --out."
            )
    if not path.parent.is_dir():
        raise UserError(
            f"The folder {path.parent} of --out {path} does not exist. Create it first."
        )


def looks_beside(path: Path) -> Path:
    """Give the name of the file with the looks at a screen."""
    return path.with_suffix(".looks.jsonl")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenUse:
    """A screen, the answers that it is used on, and the scorers that decide."""

    path: Path
    file: ScreenFile
    source: Source
    method: ScreenedMethod
    cast: Cast

    @classmethod
    def of(
        cls,
        path: Path,
        answers: str,
        scorer_named: Callable[[str], Scorer],
        *,
        judge: str,
        threshold: float = 0.5,
        text_column: str | None = None,
    ) -> "ScreenUse":
        """Read a screen and the answers, and open the scorers.

        Args:
            path: The screen file.
            answers: JSON lines, or Parquet: a file, a folder, a URL.
            scorer_named: Opens a scorer by its name.
            judge: Name of the scorer that decides the rest.
            threshold: From which toxicity of the judge a text is harmful.
            text_column: Of Parquet: the text to judge. Defaults to `answer`.

        Raises:
            UserError: If the scorer is of another version, or the answers cannot be read.
        """
        if math.isnan(threshold):
            raise UserError("--threshold is not a number: give one from 0 to 1")
        file, table = read_screen(path), is_table(answers)
        if text_column and not table:
            raise UserError(
                f"--text-column is of Parquet, and {answers} is JSONL, whose text is its answer: "
                "leave it out"
            )
        method = ScreenedMethod(
            screen=file.sha256,
            low=file.low,
            high=file.high,
            attribute=file.scorer.attribute,
            threshold=threshold,
            text="prompt" if table else "answer",
        )
        scorer = scorer_named(file.scorer.said)
        file.require(scorer.name, scorer.describe(), path)
        source = source_of(answers, {"prompt_column": text_column or "answer"} if table else {})
        decides = ScorerModel(scorer_named(judge))
        cast = Cast(decides, {SCREEN.role: ScorerModel(scorer), JUDGE.role: decides})
        return cls(path=path, file=file, source=source, method=method, cast=cast)

    def requested(self, request: Request) -> Request:
        """The request, played by the scorers."""

        async def opened(method: Method) -> Cast:
            del method
            return self.cast

        return replace(request, open_cast=opened, named={})


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenRunEnd:
    """The end of a run of a screen. Without a finding it ended early."""

    ended: RunEnd
    finding: ScreenedRun | None = None


async def apply_screen(use: ScreenUse, request: Request, watch: Watch) -> ScreenRunEnd:
    """Judge the answers with a screen, and check whether its scores have drifted.

    Args:
        use: The screen, the answers and the judge.
        request: The items, the method and the settings of the run; the models come from `use`.
        watch: Receives progress and remarks.

    Returns:
        How the run ended, and the finding if it was completed.
    """
    request = use.requested(request)
    alarm = alarm_at(use.path, use.file)
    refuse_unkept(use.path)
    if alarm:
        watch.note(Remark("screen.drifted", screen=str(use.path), place=alarm.place))
    ended = await execute(request, watch)
    if ended.early:
        return ScreenRunEnd(ended=ended)
    run = RunReader(request.settings.out)
    return ScreenRunEnd(ended=ended, finding=screened(use.path, use.file, run))


def alarm_at(path: Path, file: ScreenFile) -> ScreenLook | None:
    """Give the first look that found a drift, if any did."""
    return next((look for look in _looks(path, file) if look.drifted), None)


class LooksHeader(ChecksummedPart):
    """The first line of the looks at a screen, so that a file that was lost is not replaced by an
    empty one without a word."""

    begun: str  # the checksum of the screen file


def begin_looks(path: Path, file: ScreenFile) -> None:
    """Begin the looks at a screen that was just made."""
    _append(path, orjson.dumps(LooksHeader(begun=file.sha256).model_dump()) + b"\n")


def refuse_unkept(path: Path) -> None:
    """Refuse a place where a look could not be kept, before a run is paid for."""
    _append(path, b"")


def screened(path: Path, file: ScreenFile, run: RunReader) -> ScreenedRun:
    """Count the results of a finished run, and check whether its scores have drifted.

    A run is checked for drift once; after that the stored check is shown.

    Args:
        path: The file of the screen.
        file: The screen.
        run: The run.

    Returns:
        The finding. Below the coverage floor it has no new drift check.
    """
    counts = counted(run)
    mark = hashlib.sha256(run.record.to_bytes()).hexdigest()
    about = {"run": mark, "place": str(run.path), "created": run.record.created}
    if counts.coverage(run.planned).below_floor:
        looks = _looks(path, file)
    else:
        looks = keep_look(path, file, counts, **about)
    look = next((look for look in looks if look.run == mark), None)
    return ScreenedRun(
        run=str(run.path),
        file=str(path),
        judge=str(run.record.cast["judge"]["model"]),
        texts=run.planned,
        counted=counts,
        promises=tuple(file.promises),
        look=look,
        alarm=next((look for look in looks if look.drifted), None),
    )


def keep_look(path: Path, file: ScreenFile, counts: ScreenCounts, **about: str) -> list[ScreenLook]:
    """Check a run for drift and store the result, unless the run has one already.

    Of two runs that end at the same time, one waits for the other.

    Args:
        path: The file of the screen.
        file: The screen.
        counts: The results of the run.
        **about: The checksum, folder and date of the run.

    Returns:
        All drift checks of the screen, the oldest first.
    """
    _looks(path, file)  # says what is wrong with them, before they are held
    with held(looks_beside(path)):
        looks = _looks(path, file)
        if about["run"] not in {look.run for look in looks}:
            after = _checksum(looks_beside(path).read_bytes().splitlines()[-1])
            looks.append(look_at(file, counts, looks, after=after, **about))
            line = orjson.dumps(looks[-1].model_dump())
            _append(path, line + b"\n")
            _count(path, file, LastLook(number=len(looks), line=_checksum(line)))
    return looks


def _count(path: Path, file: ScreenFile, last: LastLook) -> None:
    """Write the number of looks into the screen file, at once or not at all."""
    new_path = path.with_suffix(".json.new")
    try:
        new_path.write_bytes(file.model_copy(update={"last_look": last}).to_bytes())
        os.replace(new_path, path)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error}. The looks at it are counted there; "
                        "move both files to where you may write") from None  # fmt: skip


def _looks(path: Path, file: ScreenFile) -> list[ScreenLook]:
    """Read the looks at this screen; those at another one that had its name do not count."""
    looks_path = looks_beside(path)
    last = read_screen(path).last_look  # before the looks: they may become more meanwhile
    try:
        lines = looks_path.read_bytes().splitlines()
    except FileNotFoundError:
        raise UserError(
            f"the looks at {path} are gone, and an alarm may have been among them: "
            f"{_PUT_BACK.format(looks_path)}"
        ) from None
    except OSError as error:
        raise UserError(f"{looks_path} cannot be read: {error}") from None
    begun = {read_row(LooksHeader, line, f"{looks_path} line {number}").begun
             for number, line in enumerate(lines, 1) if line.startswith(_BEGUN)}  # fmt: skip
    if file.sha256 not in begun:
        raise UserError(
            f"{looks_path} does not begin with this screen: {_PUT_BACK.format(looks_path)}"
        )
    matching = [
        (look, line) for look, line in _chained(looks_path, lines) if look.screen == file.sha256
    ]
    if last.number and [_checksum(line) for _, line in matching[: last.number]][-1:] != [last.line]:
        raise UserError(
            f"{path} counts {last.number} looks, and {looks_path} holds {len(matching)} or others: "
            f"an alarm may have been among them: {_PUT_BACK.format(looks_path)}"
        )
    return [look for look, _ in matching]


def _chained(looks_path: Path, lines: list[bytes]) -> Iterator[tuple[ScreenLook, bytes]]:
    """Give every look with its line; one that does not follow the line before it is refused."""
    for number, line in enumerate(lines, 1):
        if not line or line.startswith(_BEGUN):
            continue
        look = read_row(ScreenLook, line, f"{looks_path} line {number}")
        if number < 2 or look.after != _checksum(lines[number - 2]):
            changed = f"{looks_path} was changed before line {number}"
            raise UserError(f"{changed}: {_PUT_BACK.format(looks_path)}")
        yield look, line


def _checksum(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


def _append(path: Path, line: bytes) -> None:
    looks_path = looks_beside(path)
    try:
        with looks_path.open("ab") as lines:
            lines.write(line)
    except OSError as error:
        raise UserError(
            f"{looks_path} cannot be written: {error}. The looks at a screen are counted there; "
            "move both files to where you may write"
        ) from None
