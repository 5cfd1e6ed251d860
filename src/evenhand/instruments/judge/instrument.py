"""The audit of a judge as a benchmark: the judgments of a design and of further probes, and their
metrics.

    evenhand.audit("judge", model=model, out="runs/judge")
    evenhand.audit("judge", method="panel", model=model, out="runs/panel")
"""

import copy
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import polars as pl

from evenhand.core.conclusions import Outcome
from evenhand.core.errors import UserError
from evenhand.findings.audit import Audit, Decided
from evenhand.findings.estimates import Section
from evenhand.findings.scoring import ALWAYS, Scoring, with_facts
from evenhand.findings.sequential import SequentialPlan
from evenhand.instruments._contract import (
    SCORED,
    DataFolder,
    Grouping,
    Instrument,
    Measure,
    option,
    why_lost,
)
from evenhand.instruments.files import names_in
from evenhand.instruments.judge.certificate import FILE, INJECTED, certificate_of, judge_of, keep
from evenhand.instruments.judge.data import MalibuData
from evenhand.instruments.judge.design import TAGS, TEN, JudgeDesign, MalibuSource, judgements_of
from evenhand.instruments.judge.effects import SCORE_MARGIN, WIN_MARGIN
from evenhand.instruments.judge.evidence import USUAL, JudgeEvidence, Margins
from evenhand.instruments.judge.measures import judged, measures
from evenhand.instruments.judge.probes import (
    KNOWN,
    AuditSource,
    injected,
    known_pairs,
    labelled,
    to_write,
)
from evenhand.instruments.judge.tables import notes, sections
from evenhand.methods import Method
from evenhand.methods.judging import OTHER, ROLE, Panel, Rate, roles_of, set_up
from evenhand.runs.store import RunReader
from evenhand.runs.store.folder import open_folder
from evenhand.statistics.metrics import malibu

if TYPE_CHECKING:
    from evenhand.findings.report import Report

_USUAL = JudgeDesign()


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeOptions:
    judge: str | None = option(
        None,
        "Judge model, by its name in the config. With --method panel: several, "
        "comma-separated, assigned to the personas in turn. Default: the model in role "
        "`judge`, or the default model.",
    )
    bases: int = option(_USUAL.bases, "Number of base scenarios, of 63.", least=1)
    derived: int = option(_USUAL.derived, "Number of scenarios per base, of 10.", least=1)
    texts: int = option(
        _USUAL.texts,
        "Number of responses per scenario that are scored individually. The paper uses 1.",
        least=1,
    )
    pairs: int | None = option(
        None, "Number of bases for pairwise comparisons of labels. Default: 8.", least=0
    )
    repeats: int = option(1, "Number of answers per question.", least=1)
    identities: str | None = option(
        None, "Identity labels, comma-separated. Default: the paper's ten."
    )
    identities_file: Path | None = option(
        None, "TOML file that defines your own identity labels (docs/judge-audit.md)."
    )
    scenarios: Path | None = option(None, "JSON-lines file with your own scenarios.")
    prompt: Path | None = option(
        None,
        "TOML file with your own judge's prompt, scale and form of answer, for one text at a time "
        "(docs/judge-audit.md).",
    )
    injections: int = option(
        INJECTED, "Number of bases for prompt-injection tests, three calls each.", least=0
    )
    labels: Path | None = option(
        None, "Texts with human labels: JSON lines with task, text and label."
    )
    known_pairs: str | None = option(
        None,
        f"Sets of pairs whose better answer is known, with commas: {', '.join(KNOWN)}. Does the "
        "judge tell it? 200 and 160 more calls.",
    )
    other: str | None = option(
        None,
        "Model of another family, by its name in the config. Tests self-preference against "
        "this model's texts. Six more calls per base.",
    )
    margin: float = option(
        SCORE_MARGIN,
        "Equivalence margin for the effect of a label on a score, in points of ten. The check"
        " passes only if larger effects are ruled out.",
    )
    margin_wins: float = option(
        WIN_MARGIN,
        "Equivalence margin for the effect of position on the win rate. The check passes only"
        " if larger effects are ruled out.",
    )
    sample_seed: int = option(0, "Random seed for sampling items.")
    label_last: bool = option(
        False,
        "State the label after the text instead of before it, so that a server with a prompt "
        "cache reads each text once.",
    )

    @property
    def design(self) -> JudgeDesign:
        return JudgeDesign(
            bases=self.bases,
            derived=self.derived,
            texts=self.texts,
            pairs=self._pairs,
            repeats=self.repeats,
            identities=tuple(names_in(self.identities)) or TEN,
            seed=self.sample_seed,
            label_last=self.label_last,
        )

    @property
    def _pairs(self) -> int:
        usual = 0 if self.prompt else min(_USUAL.pairs, self.bases)
        return usual if self.pairs is None else self.pairs


class JudgeAudit(Instrument):
    """Audits a judge: does it mark the same text differently under another label of its author, by
    its place, or because the text asks for it? A passing judge gets a certificate."""

    name = "judge"
    title = "Judge"
    clusters = "bases"
    asks_again = True  # a question may be repeated
    asked_by = "rate"
    columns = ("scores_after",)
    facts: ClassVar = dict.fromkeys(TAGS, pl.String())
    groups: ClassVar = (Grouping(column="identity", measures=("shift",)),)
    options = JudgeOptions
    answer_id = None
    measures: ClassVar[tuple[Measure, ...]] = ()  # of an audit, and of a run: `for_run`
    _run: RunReader | None = None
    _metrics: tuple[str, ...] = malibu.METRICS
    _margins: Margins = USUAL
    _identities: tuple[str, ...] = TEN
    _of_one_text: bool = False  # the judge's prompt shows one text, so no check is of pairs

    def __init__(self) -> None:
        vars(self)["measures"] = measures(self._margins, self._identities, self._metrics)

    # -- what is asked, and of whom ----------------------------------------------------------------

    def source(self, data: DataFolder, options: JudgeOptions) -> AuditSource:
        margins = Margins(score=options.margin, win_rate=options.margin_wins)
        for name, margin in asdict(margins).items():
            if not margin > 0:
                raise UserError(
                    f"The margin {name} is {margin:g}, and a margin must be above 0. Set "
                    "--margin or --margin-wins to a positive number."
                )
        if options.prompt and (options.pairs or options.known_pairs or options.other):
            raise UserError(
                "--prompt is for one text at a time. Leave out --pairs, --known-pairs and --other, "
                "which ask about two."
            )
        ours = MalibuData()
        scenarios = ours.scenarios(options.scenarios)
        design = MalibuSource(scenarios, ours.labels(options.identities_file), options.design)
        probes = injected(design, scenarios, options.injections)
        if options.known_pairs is not None:
            probes += known_pairs(options.known_pairs, data, options.sample_seed)
        if options.labels is not None:
            probes += labelled(options.labels)
        if options.other is not None:
            probes += to_write(design, scenarios)
        return AuditSource(design, probes, asdict(margins))

    def worded(self, method: Method, options: JudgeOptions) -> Method:
        """Ask one judge, where no panel was named."""
        judges = names_in(options.judge)
        if isinstance(method, Panel):
            if options.prompt is not None:
                raise UserError("--prompt is for one judge. Leave out --method panel.")
            if options.other is not None:
                raise UserError(
                    "--other compares one judge with another, and a panel has several judges. "
                    "Leave out --other, or audit each judge alone."
                )
            return replace(method, models=len(judges)) if judges else method
        if len(judges) > 1:
            raise UserError(
                "--judge names several models. Add --method panel, or audit each model alone."
            )
        rate = method if isinstance(method, Rate) else Rate()
        return rate if options.prompt is None else replace(rate, prompt=_text_of(options.prompt))

    def players(self, options: JudgeOptions, method: Method) -> Mapping[str, str | None]:
        """Name the judges, and who else writes."""
        roles = roles_of(method.models) if isinstance(method, Panel) else (ROLE,)
        names = names_in(options.judge) or (None,) * len(roles)
        other = {} if options.other is None else {OTHER: options.other}
        return {**dict(zip(roles, names, strict=True)), **other}

    # -- a run, read -------------------------------------------------------------------------------

    def for_run(self, run: RunReader) -> Self:
        """Give the audit with the margins, labels and metrics of this run."""
        source = run.record.source
        bound = copy.copy(self)
        vars(bound).update(
            _run=run,
            _metrics=malibu.SET_UPS[set_up(run.record.method["settings"])],
            _margins=Margins(**source["margins"]),
            _identities=tuple(source["sampling"]["identities"]),
            _of_one_text=bool(run.record.method["settings"].get("prompt")),
        )
        vars(bound)["measures"] = measures(
            bound._margins, bound._identities, bound._metrics, of_one_text=bound._of_one_text
        )
        return bound

    def for_pair(self, before: RunReader, after: RunReader) -> Self:
        """Give the audit of the first run; two are compared that asked for the same marks under the
        same margins."""
        first, second = (self.for_run(run) for run in (before, after))
        if (first._margins, first._metrics) != (second._margins, second._metrics):
            raise UserError(
                f"{before.path} and {after.path} differ in margins or metrics, so they cannot be "
                "compared. Audit both judges with the same options."
            )
        return first

    def outcomes(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return one row per judgment, with that of the same text without a label."""
        return judged(self._scored(rows), self._metrics)

    def scoring(self, run: RunReader) -> Scoring:
        """Join each judgment with its control, which may be in another part of the run."""
        bound = self.for_run(run)
        shifts = judged(bound._judgements(run), bound._metrics).select("item_id", "shift")
        return partial(_joined, audit=bound, shifts=shifts)

    def stops_early(self) -> bool:
        return True  # all judgements of a base are one cluster, so they are asked together

    def _scored(self, rows: pl.DataFrame) -> pl.DataFrame:
        readable = pl.col(self._metrics[0]).is_not_null() | pl.col("preferred").is_not_null()
        return judgements_of(rows, self._metrics).with_columns(
            cluster="base", state=pl.when(readable).then(pl.lit(SCORED)).otherwise(why_lost())
        )

    def _judgements(self, run: RunReader, of: str = "scores_after") -> pl.DataFrame:
        results = run.results().select(*ALWAYS, of, "tags").sort("position").collect()
        return self._scored(with_facts(results.rename({of: "scores_after"}), self))

    @cached_property
    def _evidence(self) -> JudgeEvidence:
        """All that the bound run shows, for its tables."""
        run = self._run
        assert run is not None  # `for_run` is called first
        settings = run.record.method["settings"]
        # The drafts of a panel are its rounds, the first of them without discussion.
        discussed = run.record.method["name"] == Panel.name and settings["rounds"] > 1
        return JudgeEvidence(
            self._judgements(run),
            identities=self._identities,
            margins=self._margins,
            alone=self._judgements(run, "scores_before") if discussed else None,
        )

    # -- what is said of it ------------------------------------------------------------------------

    def audited(self, report: "Report") -> str:
        assert self._run is not None
        return f"{judge_of(self._run).model} · {report.side.method['name']}"

    def concluded(self, report: "Report", run: RunReader) -> "Report":
        return replace(report, more=self._evidence.to_dict())

    def whole(self, report: "Report") -> None:
        """Return no size: its card counts scenarios, a run counts judgments."""

    def notes(self, report: "Report", run: RunReader) -> tuple[str, ...]:
        """List codes of what a reader must know in addition to the checks."""
        failed = {
            estimate.name
            for estimate in report.estimates
            if isinstance(estimate, Decided) and estimate.outcome is Outcome.DETECTED
        }
        return tuple(notes(self._evidence, failed))

    def sections(self, report: "Report", run: RunReader) -> tuple[Section, ...]:
        return sections(self._evidence)

    def keep(self, audit: Audit, options: Any, certificates: Path | None) -> None:
        """Write the certificate into the run folder, and into the folder of certificates.

        Args:
            audit: A partial audit writes nothing, and neither does one with a sequential plan.
            options: Not used.
            certificates: Directory of certificates from the config. None if it names none.
        """
        run = RunReader(audit.more["run"])
        if audit.more["not_run"] or SequentialPlan.of(run) is not None:
            return
        certificate = certificate_of(run, audit.checks)
        open_folder(run.path).replace(FILE, certificate.to_bytes())
        if certificates is not None:
            keep(certificate, certificates)


def _joined(rows: pl.DataFrame, *, audit: JudgeAudit, shifts: pl.DataFrame) -> pl.DataFrame:
    outcomes = audit.outcomes(rows).drop("shift")
    return outcomes.join(shifts, on="item_id", how="left", maintain_order="left")


def _text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"Could not read {path} ({error}). Check --prompt.") from None
