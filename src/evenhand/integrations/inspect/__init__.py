"""A plug-in of Inspect, which finds it by itself where both are installed.

    inspect eval evenhand/bbq --model openai/gpt-4o
    inspect eval inspect_evals/bbq --solver evenhand/stardtox --model openai/gpt-4o
    inspect score logs/bbq.eval --scorer evenhand/bias --action append

Here is what Inspect knows by name. Nothing large is imported before one of these is used: Inspect
loads this at the start of each of its commands.
"""

from collections.abc import Callable, Mapping
from typing import Any

from evenhand.core import environment, registry

try:
    from inspect_ai import Task, task
    from inspect_ai.hooks import Hooks, TaskStart, hooks
    from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, metric, scorer
    from inspect_ai.solver import Generate, Solver, TaskState, solver
    from inspect_ai.util import LimitExceededError
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "inspect_ai":
        raise
    raise ImportError(
        "evenhand.integrations.inspect needs Inspect: pip install 'evenhand[inspect]'"
    ) from None


def _solver(name: str) -> Callable[..., Solver]:
    @solver(name=name)
    def method(limits: Mapping[str, Any] | None = None, **settings: Any) -> Solver:
        """Answer the sample with a method. `settings` are the method's own (`evenhand methods
        NAME` lists them); `limits` is what a sample may cost: calls, tokens, max_tokens,
        seconds."""
        from evenhand.integrations.inspect import answering  # noqa: PLC0415 - see above

        chosen = answering.MethodSolver.of(name, limits, settings)

        async def solve(state: TaskState, generate: Generate) -> TaskState:
            del generate  # Inspect's own way to ask; a method asks the same model in its own order
            await chosen.answer(state)
            return state

        return solve

    factory: Callable[..., Solver] = method
    return factory


# Every method, also one of another package: evenhand/default, evenhand/stardtox, …
SOLVERS = {name: _solver(name) for name in registry.names("methods")}


@task
def bbq(**options: Any) -> Task:
    """BBQ as `evenhand measure bbq` asks it: the same sample, order of options and prompt, by the
    same options, such as `-T per_category=16` or `-T language=ko`."""
    from evenhand.integrations.inspect import scoring  # noqa: PLC0415

    dataset, language = scoring.bbq(options)
    worded = {} if language == "en" else {"language": language}
    return Task(
        dataset=dataset,
        solver=SOLVERS["default"](**worded),
        scorer=bias(language=language),
        score_on_error=True,  # a sample that fails counts as missing, and is not left out
    )


@metric(scores="unreduced")
def measures() -> Metric:
    """Evenhand's measures of BBQ, each with its interval over templates (`_low`, `_high`), and
    where answers are missing with the values that they could make of it (`_worst_low`,
    `_worst_high`). Of several epochs the first counts."""

    def compute(scores: list[SampleScore]) -> dict[str, float]:
        from evenhand.integrations.inspect import scoring  # noqa: PLC0415

        return scoring.measured(scores)

    return compute


@scorer(metrics=[measures()])
def bias(language: str = "en") -> Scorer:
    """Score an answer to a question of BBQ as unknown, biased, counter or untargeted, or as
    "missing" without an answer. It reads samples of evenhand/bbq and inspect_evals/bbq."""

    async def score(state: TaskState, target: Target) -> Score:
        from evenhand.integrations.inspect import scoring  # noqa: PLC0415

        del target  # the records say more: some have a wrong one
        return scoring.score(state, language)

    return score


@hooks(
    name="certified_graders",
    description="refuses a model as a grader that has no certificate of evenhand",
)
class CertifiedGraders(Hooks):
    """It ends a task before its first sample where a model grades that no certificate holds for.

    Inspect goes on after any error of a hook but one, that of a limit, so that is what is raised.
    """

    def enabled(self) -> bool:
        return not environment.any_inspect_grader()

    async def on_task_start(self, data: TaskStart) -> None:
        try:
            from evenhand.integrations.inspect import scoring  # noqa: PLC0415

            uncertified = scoring.uncertified(data.spec)
        except Exception as error:  # what cannot be looked up is not certified
            uncertified = [f"it could not be looked up who grades: {error}"]
        if uncertified:
            reasons = "; ".join(uncertified)
            raise LimitExceededError(
                "custom", value=len(uncertified), limit=0, message=f"{reasons}. {_NEXT}"
            )


_NEXT = (
    "Audit the grader (evenhand audit judge --model NAME --out runs/judge, with [judges] "
    "certificates in evenhand.toml), or let any grader through: EVENHAND_INSPECT_GRADERS=any"
)
