"""Texts that would run something or fetch something if a page took them for more than words."""

import itertools
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from pydantic import BaseModel

from evenhand.findings.display import Remark
from evenhand.findings.scoring import ScoringSpec
from evenhand.runs.store.run_record import FieldDiff

_TEMPLATES = [
    "<script>MARK</script>",
    "<img src=x onerror=MARK>",
    "<img src=URL>",
    "<svg onload=MARK>",
    "<svg><script>MARK</script></svg>",
    "<iframe src=URL></iframe>",
    "<iframe srcdoc='<script>parent.MARK</script>'></iframe>",
    "<body onload=MARK>",
    "<details open ontoggle=MARK>",
    "<video><source onerror=MARK src=URL></video>",
    "<link rel=stylesheet href=URL>",
    "<style>@import 'URL';body{background:url(URL)}</style>",
    "<object data=URL></object>",
    "<meta http-equiv=refresh content='0;url=URL'>",
    "<base href=URL><script src=x></script>",
    "<input autofocus onfocus=MARK>",
    "<math><mtext><script>MARK</script>",
    "<a href=javascript:MARK autofocus onfocus=MARK>x</a>",
    "{{constructor.constructor('MARK')()}}<scr\u200bipt>MARK</scr\u200bipt>",
    "\u202e<form action=URL><button autofocus onfocus=MARK>\ufe0f\U000e0101",
]
_BEFORE = ["", '">', "'>", "</td>", "</p></div>", "</title>", "</style>", "--><!--", "&lt;", "]]>"]
# By these words findings are looked up; no text from outside gets there.
_OURS = {"name", "state", "undefined", "kind", "column", "currency", "code"}


def payloads(port: int) -> list[str]:
    """Two hundred of them; each marks the document or asks this port, if it can."""
    made = []
    for number, (before, template) in enumerate(itertools.product(_BEFORE, _TEMPLATES)):
        mark = f"document.documentElement.setAttribute('ran','{number}')"
        url = f"http://127.0.0.1:{port}/{number}"
        made.append(before + template.replace("MARK", mark).replace("URL", url))
    return made


def poisoned(finding: Any, texts: Iterator[str]) -> Any:
    """The same finding with every text in it replaced, also those within others: item texts, names
    of models and methods, groups, reasons, paths, notes, hashes."""
    match finding:
        case str():
            return next(texts)
        case FieldDiff():
            return finding._replace(before=next(texts), after=next(texts))
        case tuple() | list():
            return type(finding)(poisoned(one, texts) for one in finding)
        case dict():
            ours = {key: one for key, one in finding.items() if key in _OURS or key == "verdict"}
            return {key: poisoned(one, texts) for key, one in finding.items()} | ours
        case ScoringSpec():
            return finding
        case BaseModel():
            held = {"method": {"name": "", "settings": {"": ""}}, "seed": "", "prompts": {"": ""}}
            return finding.model_copy(update={**poisoned(held, texts), "created": next(texts)})
    if is_dataclass(finding) and not isinstance(finding, type):
        changed = {
            one.name: _keyed(one.name, poisoned(getattr(finding, one.name), texts), texts)
            for one in fields(finding)
            if one.name not in _OURS
        }
        return _with(finding, changed)
    return finding


def _with(finding: Any, changed: dict[str, Any]) -> Any:
    """A remark is made by its code: `replace` does not do it."""
    if isinstance(finding, Remark):
        return Remark(finding.code, **changed["values"])
    return replace(finding, **changed)


def _keyed(name: str, value: Any, texts: Iterator[str]) -> Any:
    """Names of groups and reasons are keys."""
    if name == "groups":
        return {column: {next(texts): one for one in by.values()} for column, by in value.items()}
    if name in ("by_reason", "further", "digests"):
        return {next(texts): one for one in value.values()}
    return value
