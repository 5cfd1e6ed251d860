"""The items of BBQ as samples of Inspect, what they were answered, the measures of all of them, and
which models grade the answers of a task without a certificate.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalSpec
from inspect_ai.scorer import SampleScore, Score
from inspect_ai.solver import Choice, TaskState

from evenhand.core import Item
from evenhand.core.errors import UnreadableReply, UserError
from evenhand.experiments import config as configuration
from evenhand.experiments.certificates import expected_of
from evenhand.findings.estimates import Estimate, bounds_in_columns
from evenhand.instruments.bbq.instrument import Bbq, ExternalAnswers
from evenhand.instruments.judge.certificate import find
from evenhand.integrations.inspect.answering import STORED
from evenhand.interop import LoggedAnswer
from evenhand.interop.inspect_log import SCORERS, place_of
from evenhand.interop.inspect_task import bbq_input, graders_of, served_name
from evenhand.methods import Rate


def bbq(options: Mapping[str, Any]) -> tuple[MemoryDataset, str]:
    """Draw the items by the options of `evenhand measure bbq`; give their language too."""
    instrument = Bbq()
    chosen = instrument.options_from(options)
    if instrument.stores_answers(chosen):
        raise UserError("answers that exist are scored by: evenhand measure bbq --answers FILE")
    source = instrument.questions(configuration.data_folder(), chosen)
    samples = [_sample(item) for item in source.read(0, len(source))]
    return MemoryDataset(samples, name="bbq"), chosen.language


def _sample(item: Item) -> Sample:
    """A sample in the words and with the names of inspect_evals' BBQ. One whose own right answer
    contradicts its text has none here."""
    category, _, example = item.id.rpartition("/")
    gold = "" if item.tags["masked"] == "1" else chr(ord("A") + int(item.tags["gold"]))
    return Sample(
        id=f"{category}_{int(example):05d}",
        input=bbq_input(item.context, item.prompt),
        choices=list(item.choices),
        target=gold,
        metadata={
            "source_id": int(example),
            "category": category,
            "question_index": item.tags["template"].rpartition("/")[2],
            "question_polarity": item.tags["polarity"],
            "context_condition": item.tags["condition"],
        },
    )


_MEASURES = ("s_amb", "s_dis", "unsupported_attribution", "accuracy_disambiguated",
             "over_abstention", "accuracy")  # fmt: skip
_MISSING = "missing"


def score(state: TaskState, language: str) -> Score:
    """Score one sample. Its metadata hold all that the measures need of it."""
    # A solver may have shuffled the options; the log has them as the sample did.
    choices = sorted(state.choices, key=lambda choice: choice.original_position)
    position = _taken(state, choices)
    options = [choice.value for choice in choices]
    about = {name: state.metadata.get(name) for name in ("category", "source_id", "example_id")}
    about = {name: value for name, value in about.items() if value is not None}
    metadata = {"language": language, "epoch": state.epoch, "about": about, "options": options,
                "place": position}  # fmt: skip
    outcome = _elsewhere(language).outcomes([_answered(metadata)])["answer"].item()
    return Score(
        value=outcome or _MISSING,
        answer=None if position is None else chr(ord("A") + position),
        explanation=state.output.completion,
        reason=None if outcome else _why(state),
        metadata=metadata,
    )


def measured(scores: Sequence[SampleScore]) -> dict[str, float]:
    """The measures over samples, by the first epoch of each: our choice, as of a log."""
    first = [sample.score for sample in scores if _told(sample.score)["epoch"] == 1]
    if not first:
        return {}
    elsewhere = _elsewhere(_told(first[0])["language"])
    estimates = elsewhere.estimates([_answered(_told(score)) for score in first], _MEASURES)
    unread = [score for score in first if (score.reason or "").startswith(UnreadableReply.reason)]
    return {
        **dict(pair for estimate in estimates.values() for pair in _numbers(estimate)),
        _MISSING: sum(score.value == _MISSING for score in first),
        "unreadable": len(unread),
        "answers": len(first),
    }


def _numbers(estimate: Estimate) -> Iterator[tuple[str, float]]:
    """What is not known is left out: Inspect would show it as a number."""
    values: dict[str, Any] = {"": estimate.value, "_low": estimate.low, "_high": estimate.high}
    worst = bounds_in_columns(estimate.bounds)
    values |= {f"_{end}": worst[end] for end in ("worst_low", "worst_high")}
    for end, value in values.items():
        if value is not None:
            yield f"{estimate.name}{end}", float(value)


def _taken(state: TaskState, choices: Sequence[Choice]) -> int | None:
    """The place of the one option that was taken. A log does not hold it but by an earlier score,
    which `inspect score --action append` shows."""
    marked = [index for index, choice in enumerate(choices) if choice.correct is True]
    if marked:
        return marked[0] if len(marked) == 1 else None
    before = next((state.scores[name] for name in SCORERS if name in state.scores), None)
    return None if before is None else place_of(before.answer, len(choices))


def _why(state: TaskState) -> str:
    """Return why an answer is missing: as the method says, or because the reply could not be
    parsed."""
    failed = state.store.get(STORED, {}).get("failed")
    return failed or (UnreadableReply.reason if state.output.completion.strip() else "no_response")


def _told(score: Score) -> dict[str, Any]:
    return score.metadata or {}


def _answered(metadata: dict[str, Any]) -> LoggedAnswer:
    return LoggedAnswer(
        about=metadata["about"], options=tuple(metadata["options"]), answer=metadata["place"]
    )


@cache
def _elsewhere(language: Any) -> ExternalAnswers:
    return ExternalAnswers.of(language, configuration.data_folder())


def uncertified(spec: EvalSpec) -> list[str]:
    """Say of each grader without a certificate that passes why that is so."""
    scorers = [(scorer.name, scorer.options or {}) for scorer in spec.scorers or ()]
    graders = graders_of(scorers, _names(spec.model_roles or {}), spec.model)
    if not graders:
        return []
    folder = configuration.load(None, None, None).certificates
    standings = {model: find(folder, expected_of(Rate(), served_name(model))) for model in graders}
    return [
        f"{model} grades: {standing.says}"
        for model, standing in standings.items()
        if not standing.passes
    ]


def _names(roles: Mapping[str, Any]) -> dict[str, list[str]]:
    return {
        role: [model.model for model in (bound if isinstance(bound, list) else [bound])]
        for role, bound in roles.items()
    }
