"""What Inspect says of a task that it is about to run, and of its samples."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_BBQ = re.compile(r"Context: (.*)\n\nQuestion: (.*)", re.DOTALL)
_GRADED = "model_graded"  # how the names of Inspect's own graders begin
_GRADER = "grader"  # the role that plays them, where none is named
_WITH_SERVICE = ("openai-api", "openai-api-completions")  # provider/service/model


def bbq_input(context: str, question: str) -> str:
    """Write a question as inspect_evals' BBQ does."""
    return f"Context: {context}\n\nQuestion: {question}"


def context_and_question(text: str) -> tuple[str, str]:
    """Take apart what `bbq_input` writes; any other text is a question without a context."""
    matched = _BBQ.fullmatch(text)
    return (matched[1], matched[2]) if matched else ("", text)


def served_name(model: str) -> str:
    """Give the name by which a model is known where it is served: Inspect's without the provider,
    such as "gpt-4o" of "openai/gpt-4o"."""
    provider, _, rest = model.partition("/")
    if provider in _WITH_SERVICE:
        rest = rest.partition("/")[2]
    return rest or model


def graders_of(
    scorers: Sequence[tuple[str, Mapping[str, Any]]], roles: Mapping[str, list[str]], model: str
) -> list[str]:
    """List the models that grade answers, each once: those of scorers called `model_graded_…`, also
    within a panel of scorers, and those with the role "grader".

    Args:
        scorers: The name and the options of each scorer.
        roles: The models of each role.
        model: The model under test, which grades where a scorer names no other.

    Returns:
        The names of the models, in the order in which they are found.
    """
    graders = list(roles.get(_GRADER, ()))
    for name, options in scorers:
        if name.rpartition("/")[2].startswith(_GRADED):
            graders += _grading(options, roles, model)
        graders += graders_of(list(_panel(options)), roles, model)
    return list(dict.fromkeys(graders))


def _panel(options: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The scorers whose verdicts another one puts together, as `multi_scorer` does."""
    scorers = options.get("scorers")
    for scorer in scorers if isinstance(scorers, list) else ():
        if isinstance(scorer, Mapping) and "name" in scorer:
            yield str(scorer["name"]), scorer.get("params") or {}


def _grading(
    options: Mapping[str, Any], roles: Mapping[str, list[str]], model: str
) -> Iterator[str]:
    """A scorer's own model goes before its role, and the model under test grades where neither is
    there."""
    own_model = options.get("model")
    if own_model is not None:
        for grader in own_model if isinstance(own_model, list) else [own_model]:
            yield str(grader["model"] if isinstance(grader, Mapping) else grader)
        return
    role = options.get("model_role", _GRADER)
    name = role["name"] if isinstance(role, Mapping) else role
    yield from roles.get(str(name), [model])
