"""Training, gateway and integrations use the rest of evenhand by its public names alone."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
ROOMS = ("training", "gateway", "integrations")


def _file_of(module: str) -> Path | None:
    place = SOURCE.joinpath(*module.split("."))
    files = (place.with_suffix(".py"), place / "__init__.py")
    return next((file for file in files if file.is_file()), None)


@cache
def _public_names(module: str) -> frozenset[str]:
    """What a module defines without an underscore, and what it hands on by `__all__`."""
    file = _file_of(module)
    assert file is not None, module
    names: set[str] = set()
    for node in ast.parse(file.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            assigned = {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
            if "__all__" in assigned and node.value is not None:
                names |= set(ast.literal_eval(node.value))
            names |= assigned
    return frozenset(name for name in names if not _private(name))


def _imports(tree: ast.AST) -> Iterator[tuple[str, str, str]]:
    """Module, name within it (empty for the module itself) and the name that it gets here."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((name.name, "", name.asname or name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", n.name, n.asname or n.name) for n in node.names)


def _private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def private_imports(source: str, room: str) -> Iterator[str]:
    """Each import from another room, and each use of a module of it, that is not public."""
    tree = ast.parse(source)
    modules: dict[str, str] = {}
    for module, name, known_as in _imports(tree):
        path = f"{module}.{name}".rstrip(".")
        if not path.startswith("evenhand.") or path.startswith(f"evenhand.{room}."):
            continue
        is_module = _file_of(path) is not None
        if is_module:
            modules[known_as] = path
        if any(map(_private, path.split("."))) or not (is_module or name in _public_names(module)):
            yield path
    attributes = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    for node in attributes:
        module = modules.get(ast.unparse(node.value), "")
        if module and _private(node.attr):
            yield f"{module}.{node.attr}"


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_the_others_by_public_names_alone(room: str) -> None:
    found = [
        f"{file.relative_to(SOURCE)}: {name}"
        for file in sorted((SOURCE / "evenhand" / room).rglob("*.py"))
        for name in private_imports(file.read_text("utf-8"), room)
    ]
    assert not found


@pytest.mark.parametrize(
    ("planted", "private"),
    [
        ("from evenhand.findings.estimates import _bounds", "evenhand.findings.estimates._bounds"),
        ("from evenhand.instruments._judged import Judged", "evenhand.instruments._judged.Judged"),
        ("from evenhand.instruments import _judged", "evenhand.instruments._judged"),
        ("import evenhand.instruments._judged", "evenhand.instruments._judged"),
        ("from evenhand.findings.estimates import dataclass",
         "evenhand.findings.estimates.dataclass"),
        ("def late():\n    from evenhand.runs.store import _x", "evenhand.runs.store._x"),
        ("from evenhand.experiments import config\nconfig._read()",
         "evenhand.experiments.config._read"),
    ],
)  # fmt: skip
def test_a_private_import_is_found_wherever_it_is_planted(planted: str, private: str) -> None:
    assert list(private_imports(planted, "gateway")) == [private]


def test_a_public_import_is_left_alone() -> None:
    source = (
        "from evenhand.runs.store import RunReader\nfrom evenhand.gateway.audit import _columns"
    )
    assert not list(private_imports(source, "gateway"))
