"""Prompts as files with provenance: `<paper>/<role>.md`, loaded, checked and hashed here alone.

A file is a card (YAML), a line `---`, the system message, a line `---`, the user message. The card
declares the variables by where their words come from; the text must treat them so, and a missing
one raises. New wording is a new version: the hash of the text is stored with every turn.

Where the words of a prompt's variables come from, as its card declares it, and how its text
treats them.

    variables:
      fenced: [draft, said.text]   words of a model, a page or an item: data, by `marked` alone
      ours: [persona, said.rank]   numbers, words of ours, and settings of the user
      open: [prompt]               the task that the model is to do, or what a program is given

A dot names a field of what a list holds; the entries of a list are called as the list.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import Any

import jinja2
import jinja2.meta
import yaml
from jinja2 import nodes

from evenhand.agents.prompts.fence import marked as marked
from evenhand.core import Message
from evenhand.core.errors import Unsuited, UserError

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
    """Refuse a prompt card whose declared variables differ from those that its text uses.

    Args:
        name: The prompt's name, for the error.
        declared: The card's `variables`, as read from the file.
        used: What the text does with its variables.

    Raises:
        UserError: If the two differ, or a variable from outside is not fenced.
    """
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


LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# libyaml's reader where it is there: ten times as fast, and as safe.
_YAML = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FENCES = "the prompt's fences"  # no name that a prompt can write


def lettered(choices: Sequence[str]) -> str:
    """The options of a question, one a line: "A. …". None is left out for want of a letter."""
    if len(choices) > len(LETTERS):
        raise Unsuited(f"{len(choices)} options, and there are letters for {len(LETTERS)}")
    return "\n".join(f"{letter}. {text}" for letter, text in zip(LETTERS, choices, strict=False))


@jinja2.pass_context
def _marked(context: jinja2.runtime.Context, text: Any, tag: str) -> str:
    return marked(str(text), tag, context.get(_FENCES, ()))


_ENVIRONMENT = jinja2.Environment(
    undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
)
_ENVIRONMENT.filters.update(marked=_marked, lettered=lettered)


@dataclass(frozen=True)
class Prompt:
    """What an agent is told, with the variables that it needs.

    >>> Prompt.of("Is this fair to everybody it speaks of?\n{{ draft | marked('text') }}")

    `sha256` is over the whole file, card included; of a prompt from a text, over its words.
    """

    id: str
    version: int
    source: str
    variables: frozenset[str]
    sha256: str
    system: str  # Jinja, as are the words to the user
    user: str
    uses: Uses

    @classmethod
    def of(cls, user: str, system: str = "") -> "Prompt":
        """A prompt from a text (Jinja), whose variables are those that it uses. Text from outside
        goes through `marked`, so that a judge cannot take it for an instruction."""
        try:
            used = uses(_ENVIRONMENT.parse(f"{system}\n{user}"))
            digest = hashlib.sha256(f"{system}\n---\n{user}".encode()).hexdigest()
            prompt = cls(
                id=f"own/{digest[:8]}",
                version=1,
                source="given as a text",
                variables=used.variables,
                sha256=digest,
                system=system,
                user=user,
                uses=used,
            )
            return prompt._whole()
        except (jinja2.TemplateError, RecursionError) as error:
            raise UserError(f"the prompt cannot be read: {error}") from None

    @property
    def label(self) -> str:
        return f"{self.id}@{self.version}"

    def render(self, variables: dict[str, Any]) -> tuple[Message, ...]:
        if variables.keys() != self.variables:
            missing = sorted(self.variables - variables.keys())
            unknown = sorted(variables.keys() - self.variables)
            raise UserError(f"prompt {self.label}: missing {missing}, not declared {unknown}")
        context = {**variables, _FENCES: self.uses.fences}
        system_words, user_words = self._templates
        system = self._fixed_system or Message("system", _words(system_words, context))
        user = Message("user", _words(user_words, context))
        return (system, user) if system.content else (user,)

    @cached_property
    def _fixed_system(self) -> Message | None:
        """The system message where it is the same for every item, as it mostly is."""
        try:
            return Message("system", _words(self._templates[0], {}))
        except jinja2.UndefinedError:
            return None

    @cached_property
    def _templates(self) -> tuple[jinja2.Template, jinja2.Template]:
        """Both messages, compiled when the prompt is first used: a command knows all of ours, and
        uses a few."""
        return _ENVIRONMENT.from_string(self.system), _ENVIRONMENT.from_string(self.user)

    def _whole(self) -> "Prompt":
        """The prompt, compiled now: what cannot be is refused where it is read."""
        _ = self._templates
        return self


def _words(template: jinja2.Template, variables: dict[str, Any]) -> str:
    # What `template.render` does, less its copy of the globals (`range`, `lipsum`, …), which is
    # most of its time: a card would have to declare them, so no prompt can use them.
    context = template.new_context(variables, shared=True)
    return "".join(template.root_render_func(context)).strip()


@cache
def load(name: str) -> Prompt:
    """The prompt shipped as `prompts/<name>.md`."""
    file = resources.files(__name__).joinpath(f"{name}.md")
    try:
        return _parse(file.read_text("utf-8"))
    except FileNotFoundError:
        raise UserError(f"unknown prompt {name!r}") from None


def parse(text: str) -> Prompt:
    """Read one prompt file; refuse it where card and text disagree."""
    try:
        return _parse(text)._whole()
    except (yaml.YAMLError, jinja2.TemplateError, ValueError, RecursionError) as error:
        raise UserError(f"a prompt file cannot be read: {error}") from None


def _parse(text: str) -> Prompt:
    parts = re.split(r"^---\n", text, flags=re.MULTILINE)
    if len(parts) != 4 or parts[0].strip():
        raise UserError("a prompt file is: ---, card, ---, system message, ---, user message")
    card, system, user = yaml.load(parts[1], _YAML), *parts[2:]  # noqa: S506 both are safe
    try:
        name, version, source = card["id"], card["version"], card["source"]
        variables = card["variables"]
    except (KeyError, TypeError) as error:
        raise UserError(
            f"a prompt's card needs id, version, source and variables: {error}"
        ) from None
    if card.keys() - {"id", "version", "source", "variables"}:
        raise UserError(f"prompt {name}: the card has fields nobody reads")
    used = uses(_ENVIRONMENT.parse(system + user))
    refuse_undeclared(name, variables, used)
    return Prompt(
        id=name,
        version=version,
        source=source,
        variables=used.variables,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        system=system,
        user=user,
        uses=used,
    )
