"""`train.json`: what was trained, from what, with what, and how it went.

What a training changed: its steps, its weights compared with the base's, and its objective.

A training that ends without an error may have trained nothing. The outcome is worked out from the
files that it wrote and the steps that it took, and stands in its record, its card and the command's
exit code.
"""

import json
import math
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import scipy  # its stats are loaded when first used

from evenhand.core.errors import UserError
from evenhand.core.package_data import Texts
from evenhand.findings.display import Displayable
from evenhand.training.data import sha256_of_rows
from evenhand.training.events import TrainingStep, read_steps
from evenhand.training.folders import RECORD, sha256_of_files, write
from evenhand.training.recipes import Recipe

_LIBRARIES = ("torch", "trl", "transformers", "accelerate", "peft", "datasets")
# What must be the same for a resumed training to be the same training.
_SAME = ("stage", "recipe", "base", "pairs", "world_size", "reward_model")


def begun(
    stage: str,
    recipe: Recipe,
    model: Path,
    pairs: Path,
    *,
    config: str,
    world_size: int,
    reward: Path | None = None,
) -> dict[str, Any]:
    return {
        "format": 1,
        "stage": stage,
        "state": "running",
        "evenhand": version("evenhand"),
        "versions": {name: version(name) for name in _LIBRARIES},
        "python": platform.python_version(),
        "machine": platform.machine(),
        "recipe": recipe.describe(),
        "seed": recipe.seed,
        "base": {"folder": str(model), "sha256": sha256_of_weights(model)},
        "pairs": {
            "folder": str(pairs),
            "config": config,
            "sha256": sha256_of_rows(pairs, config, all_low=getattr(recipe, "all_low", False)),
        },
        "reward_model": None
        if reward is None
        else {"folder": str(reward), "sha256": sha256_of_weights(reward)},
        "world_size": world_size,
        "resumed_from": [],
        "metrics": {},
    }


def load(out: Path) -> dict[str, Any] | None:
    try:
        content = dict(json.loads((out / RECORD).read_text()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):
        raise UserError(f"Could not read {out / RECORD}. Choose another --out.") from None
    return content


def save(out: Path, record: dict[str, Any]) -> None:
    write(out / RECORD, json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def require_same(out: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    changed = [name for name in _SAME if _identity(before.get(name)) != _identity(now[name])]
    if changed:
        raise UserError(
            f"{out} holds a training with another {', '.join(changed)}; give the same to go on "
            "with it, or another --out to start again"
        )


def _identity(value: Any) -> Any:
    """Folders may move; their bytes may not change."""
    if isinstance(value, dict) and "sha256" in value:
        return {name: part for name, part in value.items() if name != "folder"}
    return value


def sha256_of_weights(folder: Path) -> str:
    files = sorted(path for path in folder.glob("*.safetensors") if path.is_file())
    if not files:
        raise UserError(
            f"{folder} holds no .safetensors; .bin files are pickles, which can run code when they "
            "are opened, and are refused"
        )
    return sha256_of_files(files)


Trend = Literal["improved", "regressed", "inconclusive", "too_few_steps", "not_finite"]
Outcome = Literal[
    "trained",  # the weights differ from the base's, and the objective is shown to improve
    "no_steps",
    "zero_rate",
    "weights_equal",
    "not_finite",
    "inconclusive",  # the weights differ; that the objective improved is not shown
]
NOTHING_TRAINED: tuple[Outcome, ...] = ("no_steps", "zero_rate", "weights_equal", "not_finite")

SIGNIFICANCE = 0.05
ROUNDING = 2.0**-24  # half a unit in the last place of a 32-bit number near 1
FEWEST_STEPS = 5  # with 4 even a steady fall has p = 2/4! = 0.083
# Our choice: a tenth of the steps and at least four, as one batch alone says little.
_SHARE, _LEAST = 10, 4


def objective(name: str, values: Sequence[float]) -> dict[str, Any]:
    """Whether what a training optimizes moved beyond the noise from step to step.

    Kendall's test of a monotone trend over the steps, two-sided.

    Args:
        name: "loss", which should fall, or "reward", which should rise.
        values: One for each step, in order.

    Returns:
        The trend, its p-value, and the mean of the first and of the last steps.
    """
    summary: dict[str, Any] = {"name": name, "steps": len(values), "p": None}
    if not all(math.isfinite(value) for value in values):
        return summary | {"trend": "not_finite", "first": None, "last": None, "at_each_end": 0}
    each = steps_at_each_end(len(values)) if values else 0
    summary |= {
        "first": fmean(values[:each]) if each else None,
        "last": fmean(values[-each:]) if each else None,
        "at_each_end": each,
    }
    if len(values) < FEWEST_STEPS:
        return summary | {"trend": "too_few_steps"}
    tau, p = scipy.stats.kendalltau(range(len(values)), values)
    if not math.isfinite(p):  # the same value at every step
        return summary | {"trend": "inconclusive", "p": 1.0}
    right = tau < 0 if name == "loss" else tau > 0
    trend: Trend = "improved" if right else "regressed"
    return summary | {"trend": trend if p < SIGNIFICANCE else "inconclusive", "p": float(p)}


def steps_at_each_end(steps: int) -> int:
    """How many steps at each end are taken together; no step is at both, unless it is the only."""
    return max(1, min(max(_LEAST, steps // _SHARE), steps // 2))


def weight_change(
    base: Path, model: Path, start: Callable[[], Mapping[str, Any]] | None = None
) -> dict[str, Any]:
    """How far the written weights lie from those that the training began with.

    Tensors are read one by one. A base tensor is rounded to the type of the written one first, so
    that rounding alone does not count; of an embedding that was made longer, the common rows count.

    Args:
        base: The folder that the training began with.
        model: The folder that it wrote.
        start: Tensors that the base has none of and the training made, such as a reward model's
            head, by name.

    Returns:
        Tensors compared and changed, the norm of the change relative to that of the base, and how
        many tensors had nothing to be compared with.
    """
    before, after = _tensors(base), _tensors(model)
    created = dict(start()) if start is not None and after.keys() - before.keys() else {}
    compared = changed = 0
    moved = size = 0.0
    for name, load in after.items():
        first = before[name]() if name in before else created.get(name)
        last = load()
        if first is None or first.dim() != last.dim():
            continue
        common = tuple(slice(min(pair)) for pair in zip(first.shape, last.shape, strict=True))
        first, last = first[common].to(last.dtype).double(), last[common].double()
        difference = last - first
        compared += 1
        changed += bool((difference != 0).any())
        moved += float(difference.square().sum())
        size += float(first.square().sum())
    finite = math.isfinite(moved)
    return {
        "tensors": compared,
        "changed": changed,
        "not_compared": len(after) - compared,
        "relative_norm": math.sqrt(moved / size) if finite and size else None,
        "finite": finite,
    }


def _tensors(folder: Path) -> dict[str, Callable[[], Any]]:
    """The tensors of a folder's safetensors by name, each read when it is asked for."""
    from safetensors import safe_open  # noqa: PLC0415 part of the extra `train`

    def reader(file: Path, name: str) -> Callable[[], Any]:
        def read() -> Any:
            with safe_open(file, framework="pt") as opened:
                return opened.get_tensor(name)

        return read

    tensors: dict[str, Callable[[], Any]] = {}
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, framework="pt") as opened:
            tensors |= {name: reader(file, name) for name in opened.keys()}  # noqa: SIM118 no dict
    return tensors


def outcome(
    steps: int, rates: Sequence[float], weights: Mapping[str, Any], goal: Mapping[str, Any]
) -> Outcome:
    """One word for what became of a training.

    Args:
        steps: Steps of the optimizer.
        rates: The learning rate of each, where it is known.
        weights: Of `weight_change`.
        goal: Of `objective`.
    """
    if not steps:
        return "no_steps"
    if rates and not any(rates):
        return "zero_rate"
    if not weights["finite"]:
        return "not_finite"
    if weights["tensors"] and (not weights["changed"] or _within_rounding(weights)):
        return "weights_equal"
    return "trained" if weights["tensors"] and goal["trend"] == "improved" else "inconclusive"


_WORDS = Texts(__package__)
_TRENDS = ("inconclusive", "too_few_steps", "not_finite")


def statements(record: Mapping[str, Any]) -> list[str]:
    """The outcome in sentences, from a training's record; none if it did not end."""
    if "outcome" not in record:
        return []
    outcome = record["outcome"]
    return [
        *([_WORDS(outcome)] if outcome in NOTHING_TRAINED else []),
        _weights(record["weights"]),
        _objective(record["objective"]),
    ]


def _weights(change: Mapping[str, Any]) -> str:
    if not change["tensors"]:
        return _WORDS("no_tensors")
    counts = {name: change[name] for name in ("changed", "tensors")}
    if not change["changed"]:
        return _WORDS("equal", **counts)
    norm = change["relative_norm"]
    by = _WORDS("unknown_norm") if norm is None else _WORDS("relative_norm", norm=norm)
    by += _WORDS("within_rounding") if _within_rounding(change) else ""
    return _WORDS("differ", by=by, **counts)


def _within_rounding(weights: Mapping[str, Any]) -> bool:
    norm = weights["relative_norm"]
    return norm is not None and norm < ROUNDING


def _objective(summary: Mapping[str, Any]) -> str:
    name, trend = str(summary["name"]), summary["trend"]
    if summary["first"] is None:
        return f"{name.capitalize()}: {_trend(trend, str(trend))}."
    fell = (name == "loss") == (trend == "improved")
    wording = _trend(trend, "fell" if fell else "rose")
    p = "" if summary["p"] is None else _WORDS("trend_test", p=p_text(summary["p"]))
    numbers = ("first", "last", "at_each_end", "steps")
    ends = _WORDS("ends", **{number: summary[number] for number in numbers})
    return f"{name.capitalize()}: {ends}; {wording}{p}."


def _trend(trend: str, otherwise: str) -> str:
    return _WORDS(f"trend_{trend}", fewest=FEWEST_STEPS) if trend in _TRENDS else otherwise


def p_text(p: float) -> str:
    return f"{p:.3f}" if p >= 0.001 else "<0.001"


@dataclass(frozen=True, slots=True)
class Quantity:
    """Something that is measured at each step of a training."""

    name: str  # of the field of a step
    label: str


QUANTITIES = (
    Quantity("loss", "loss"),
    Quantity("accuracy", "accuracy"),
    Quantity("reward", "reward"),
    Quantity("kl", "KL to where it began, nats a token"),
    Quantity("length", "tokens of an answer"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantityCourse:
    """The course of a quantity: its points, and the mean of the first and of the last steps."""

    quantity: Quantity
    points: tuple[tuple[int, float], ...]  # step, value
    not_numbers: int  # steps at which it was infinite or no number
    first: float | None
    last: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRun(Displayable):
    """How one training went. Nothing is tested: one training is one draw."""

    stage: str
    done: bool
    planned: int
    steps: tuple[TrainingStep, ...]
    courses: tuple[QuantityCourse, ...]
    resumed_from: tuple[int, ...]
    stopped_at_kl: int | None  # the step at which it was stopped: too far from where it began

    @property
    def absent(self) -> int:
        """How many steps up to the last were not written down."""
        return self.steps[-1].step - len(self.steps)

    @property
    def ends(self) -> int:
        """How many steps at each end are taken together."""
        return steps_at_each_end(len(self.steps))

    def to_dict(self) -> dict[str, Any]:
        return {
            "stage": self.stage,
            "done": self.done,
            "steps": len(self.steps),
            "planned": self.planned,
            "absent": self.absent,
            "resumed_from": list(self.resumed_from),
            "stopped_at_kl": self.stopped_at_kl,
            "steps_at_each_end": self.ends,
            "courses": {
                course.quantity.name: {
                    "first": course.first,
                    "last": course.last,
                    "not_numbers": course.not_numbers,
                    "points": [list(point) for point in course.points],
                }
                for course in self.courses
            },
        }


def training_run(out: Path) -> TrainingRun:
    """Read a training's folder."""
    stored = load(out)
    if stored is None:
        raise UserError(
            f"{out} has no training. Pass the --out of `evenhand train sft` or of another stage."
        )
    steps = read_steps(out)
    if not steps:
        raise UserError(f"{out} has no step yet. Try again after the first step of the training.")
    stopped = stored.get("stopped_at_kl")
    return TrainingRun(
        stage=str(stored.get("stage", steps[-1].stage)),
        done=stored.get("state") == "done",
        planned=steps[-1].steps,
        steps=steps,
        courses=tuple(
            course for quantity in QUANTITIES if (course := _course(quantity, steps)) is not None
        ),
        resumed_from=tuple(
            step for step in stored.get("resumed_from") or () if isinstance(step, int)
        ),
        stopped_at_kl=stopped if isinstance(stopped, int) else None,
    )


def _course(quantity: Quantity, steps: Sequence[TrainingStep]) -> QuantityCourse | None:
    values = [getattr(step, quantity.name) for step in steps]
    present = [
        (step.step, value) for step, value in zip(steps, values, strict=True) if value is not None
    ]
    if not present:
        return None
    points = tuple((step, value) for step, value in present if math.isfinite(value))
    each = steps_at_each_end(len(steps))
    return QuantityCourse(
        quantity=quantity,
        points=points,
        not_numbers=len(present) - len(points),
        first=_mean(values[:each]),
        last=_mean(values[-each:]),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean; none where a value is missing or no number."""
    present = [value for value in values if value is not None and math.isfinite(value)]
    return fmean(present) if len(present) == len(values) else None
