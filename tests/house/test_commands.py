"""A command module parses options, makes one call and shows the result."""

import ast
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

CLI = Path(__file__).parents[2] / "src/evenhand/cli"
# What makes, keeps and scores runs. A command may name its types; its functions are called by
# `experiments`, `api` and the packages with commands of their own.
BELOW = {"agents", "findings", "instruments", "interop", "methods", "models", "runs", "scorers",
         "statistics"}  # fmt: skip
PARSING = {"instrument_named", "paper_named", "build_method", "source_of"}  # a name becomes a part
OWN: dict[str, set[str]] = {  # commands that are nothing else than this
    "serving.py": {"local_models", "start"},
    "train.py": {"gguf_file"},
    "counterfactual.py": {"mark_spans", "plan_prompts", "write_versions"},
}
READERS = {"RunReader", "RunTotals"}  # types whose making reads a run
LONGEST = 18  # statements of a function, those within it among them
ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Pow)


def _is_command(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    arguments = ast.unparse(function.args)
    return "typer." in arguments or "RunCommand" in arguments or "Json" in arguments


def _statements(function: ast.AST) -> int:
    return sum(
        isinstance(node, ast.stmt)
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for node in ast.walk(function)
    ) - 1  # fmt: skip


def _is_text(node: ast.AST) -> bool:
    return any(
        isinstance(part, ast.JoinedStr) or isinstance(getattr(part, "value", None), str)
        for part in ast.walk(node)
    )


def _called_below(tree: ast.Module, own: Collection[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        path = (getattr(node, "module", "") or "").split(".")
        if isinstance(node, ast.ImportFrom) and path[0] == "evenhand" and {*path[1:2]} & BELOW:
            names = [name.name for name in node.names if name.name not in {*PARSING, *own}]
            for name in names:
                if name in READERS or not name[0].isupper():
                    yield f"calls {node.module}.{name}"


def _beyond_a_call(command: ast.AST) -> Iterator[str]:
    nodes = list(ast.walk(command))
    runs = sum(isinstance(n, ast.Call) and ast.unparse(n.func) == "asyncio.run" for n in nodes)
    if runs > 1:
        yield f"makes {runs} calls"
    for node in nodes:
        calculates = isinstance(node, ast.BinOp) and isinstance(node.op, ARITHMETIC)
        if calculates and not _is_text(node):
            yield f"calculates {ast.unparse(node)}"


def more_than_a_command(source: str, own: Collection[str] = ()) -> Iterator[str]:
    """What a command module does beyond parsing, one call and showing."""
    tree = ast.parse(source)
    yield from _called_below(tree, own)
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            if _statements(function) > LONGEST:
                yield f"{function.name} has {_statements(function)} statements"
            if _is_command(function):
                yield from (f"{function.name} {more}" for more in _beyond_a_call(function))


@pytest.mark.parametrize("module", sorted(CLI.glob("*.py")), ids=lambda module: module.stem)
def test_a_command_module_parses_makes_one_call_and_shows(module: Path) -> None:
    assert not list(more_than_a_command(module.read_text("utf-8"), OWN.get(module.name, ())))


COMMAND = "def show(run: Annotated[str, typer.Argument()]):\n    "


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("from evenhand.findings.report import report", "calls evenhand.findings.report.report"),
        ("def late():\n    from evenhand.runs.store import RunReader",
         "calls evenhand.runs.store.RunReader"),
        ("from evenhand.statistics import clusters", "calls evenhand.statistics.clusters"),
        (f"{COMMAND}asyncio.run(plan(run))\n    asyncio.run(judge(run))", "show makes 2 calls"),
        (f"{COMMAND}print(run.high - run.low)", "show calculates run.high - run.low"),
        ("def long():\n" + 19 * "    pass\n", "long has 19 statements"),
    ],
)  # fmt: skip
def test_a_command_that_does_more_is_found(source: str, problem: str) -> None:
    assert list(more_than_a_command(source)) == [problem]
