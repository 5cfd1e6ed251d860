"""Where the words of a prompt's variables come from, as its card declares it, and how its text
treats them.

    variables:
      fenced: [draft, said.text]   words of a model, a page or an item: data, by `marked` alone
      ours: [persona, said.rank]   numbers, words of ours, and settings of whoever runs it
      open: [prompt]               the task that the model is to do, or what a program is given

A dot names a field of what a list holds; the entries of a list are called as the list.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jinja2.meta
from jinja2 import nodes

from evenhand.errors import UserError

_KINDS = ("fenced", "ours", "open")


@dataclass(frozen=True, slots=True)
class Uses:
    """What a prompt's text does with its variables. `fences` are the tags that it fences by."""

    variables: frozenset[str]
    fenced: frozenset[str]
    bare: frozenset[str]  # written without a fence
    fences: frozenset[str]


def uses(text: nodes.Template) -> Uses:
    """Read it off the parsed text."""
    fenced, bare, fences = set[str](), set[str](), set[str]()
    for written, called in _written(text, {}):
        fence = _fence(written)
        if fence is not None:
            fences.add(fence)
        (bare if fence is None else fenced).update(_paths(written, called))
    variables = frozenset(jinja2.meta.find_undeclared_variables(text))
    return Uses(variables, frozenset(fenced), frozenset(bare), frozenset(fences))


def refuse_undeclared(name: str, declared: Any, used: Uses) -> None:
    """Refuse a card that says other things of the variables than the text does with them."""
    if not (
        isinstance(declared, dict)
        and declared.keys() <= set(_KINDS)
        and all(isinstance(paths, list) for paths in declared.values())
    ):
        raise UserError(
            f"prompt {name}: `variables` says of each where its words come from: lists called "
            f"{', '.join(_KINDS)}"
        )
    fenced, ours, open_ = ({*map(str, declared.get(kind, ()))} for kind in _KINDS)
    if twice := (fenced & ours) | (fenced & open_) | (ours & open_):
        raise UserError(f"prompt {name}: declares {sorted(twice)} twice")
    if loose := (fenced & used.bare) | (used.fenced & used.bare):
        raise UserError(
            f"prompt {name}: {sorted(loose)} comes from outside and must go through "
            '`| marked("tag")` wherever it is written'
        )
    # What is only asked for (`if`) is declared too, and written nowhere.
    declared_paths = fenced | ours | open_
    roots = {path.partition(".")[0] for path in declared_paths}
    if fenced != used.fenced or not used.bare <= declared_paths or roots != used.variables:
        uses_ = sorted(used.fenced | used.bare | used.variables)
        raise UserError(
            f"prompt {name}: declares {sorted(declared_paths)} but uses {uses_}, of them fenced "
            f"{sorted(used.fenced)}; make them equal"
        )


def _written(
    node: nodes.Node, called: dict[str, str]
) -> Iterator[tuple[nodes.Node, dict[str, str]]]:
    """Every expression that ends up in the prompt, and what the names of loops stand for in it."""
    if isinstance(node, nodes.Output):
        for part in node.nodes:
            if not isinstance(part, nodes.TemplateData):
                yield part, called
        return
    if isinstance(node, nodes.For):
        lists = _paths(node.iter, called)
        if len(lists) > 1:
            raise UserError(f"a `for` of a prompt goes over one list, not {sorted(lists)}")
        targets = getattr(node.target, "items", [node.target])  # one name, or several
        called = {**called, **{loop_name.name: "".join(lists) for loop_name in targets}, "loop": ""}
    elif not isinstance(node, nodes.Template | nodes.If):
        raise UserError("a prompt has words, variables, `for` and `if`, and no other statement")
    for child in (*node.body, *getattr(node, "elif_", ()), *getattr(node, "else_", ())):
        yield from _written(child, called)


def _fence(written: nodes.Node) -> str | None:
    if isinstance(written, nodes.Filter) and written.name == "marked" and written.args:
        tag = written.args[0]
        return str(tag.value) if isinstance(tag, nodes.Const) else None
    return None


def _paths(node: nodes.Node, called: dict[str, str]) -> set[str]:
    """The variables in an expression, `loop` left out."""
    if isinstance(node, nodes.Getattr):
        return {f"{path}.{node.attr}" for path in _paths(node.node, called)}
    if isinstance(node, nodes.Name):
        path = called.get(node.name, node.name)
        return {path} if path else set()
    return {path for child in node.iter_child_nodes() for path in _paths(child, called)}
