"""The pages of the viewer as HTML. Every text goes through the one place that escapes; what blocks
can say is said with blocks, as on the pages of the report."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from evenhand.core.package_data import read_text
from evenhand.findings.combined_report import CombinedReport
from evenhand.findings.examples import chosen
from evenhand.views import html, numbers, page_of
from evenhand.views.blocks import GAP, Block, Box, Details, Grid, Heading, Line, Page, Tone, diff
from evenhand.views.dossier_evidence import answered
from evenhand.views.timeline_page import clipped, conversation
from evenhand.views.viewer.browsing import PAGE, ItemDetail, ListPage, RunBrowser, ViewerRow
from evenhand.views.viewer.filters import LONGEST, Facets, ListQuery, Move
from evenhand.views.viewer.run_index import (
    COMPARED,
    SORTS,
    ListedRun,
    RunIndex,
    RunsPage,
    RunsQuery,
)

_IN_LIST = 300  # our choice, in characters of a text in the list
_ROWS = 200  # our choice: scores and tags of an item, of each the first
_WHOLE = 100_000  # our choice, in characters of a text on the page of its item
_SO_FAR = (
    "The run is large: what it can be filtered by is still being gathered. Load this page again to "
    "see more of it."
)
MOVED: dict[str, str] = {
    "lost": "answer lost",
    "gained": "answer gained",
    "other": "another answer",
    "same": "the same answer, or none in both",
    "alone": "not in the other run",
}
_TONES: dict[Move | None, Tone] = {"lost": "bad", "gained": "good", "other": "open"}


class SelectField(NamedTuple):
    """A list to choose one value from, each with the words for it."""

    label: str
    name: str
    values: Sequence[tuple[str, str]]
    chosen: str


class ListItem(NamedTuple):
    """An item as it stands in the list."""

    position: int
    name: str
    facts: str
    asked: str
    answer: Markup
    tone: Tone


def list_page(browsed: RunBrowser, query: ListQuery, listing: ListPage) -> str:
    """Make the page with the list of items.

    Args:
        browsed: The run, and the one to compare it with.
        query: The filters of this request.
        listing: The rows of this page.

    Returns:
        The page as HTML.
    """
    facets = browsed.facets
    note = _SO_FAR if not facets.ended() else facets.problem
    first, further = _tags(facets, query)
    names = [(name, name) for name in facets.scores]
    inner = _filled(
        "list.html",
        title=_title(browsed),
        summary=_blocks(_summary(browsed, listing)),
        wanted=query,
        longest=LONGEST,
        choices=[*_choices(browsed, facets, query, listing), *first],
        scores=SelectField("score", "score", names, query.score) if names else None,
        further=further,
        further_set=any(choice.chosen for choice in further),
        note=_blocks([Line(note, "bad" if facets.problem else "dim")] if note else []),
        nav=_run_links(browsed),
        base=browsed.base,
        above=_pager("Pages", f"{browsed.base}/", query, listing.found, listing.pages),
        below=_pager("Pages, again", f"{browsed.base}/", query, listing.found, listing.pages),
        address=query.address(),
        items=[_item(row) for row in listing.rows],
    )
    return html.framed(inner, _title(browsed), _style())


def item_page(browsed: RunBrowser, query: ListQuery, entry: ItemDetail) -> str:
    """Make the page of one item.

    Args:
        browsed: The run, and the one to compare it with.
        query: The filters of the list, for the links.
        entry: The item with its neighbors.

    Returns:
        The page as HTML.
    """
    row = entry.row.row
    links = {"the list": f"{browsed.base}/{query.at(entry.page).address()}"}
    around = {"previous": entry.previous, "next": entry.following}
    links |= {
        word: f"{browsed.base}/item/{position}{query.address()}"
        for word, position in around.items()
        if position is not None
    }
    nav = _filled("links.html", label="Items", said="", links=links)
    inner = nav + _blocks(_item_blocks(browsed, entry))
    name = clipped(row["item_id"], _IN_LIST)
    return html.framed(inner, f"{name}: {_title(browsed)}", _style())


def said_page(title: str, text: str) -> str:
    """Make a page of a few words."""
    return html.document([Heading(title, 1), Line(text)], title)


def _item_blocks(browsed: RunBrowser, entry: ItemDetail) -> Page:
    row = entry.row.row
    item = chosen(row, entry.turns)
    where = ["evenhand", "runs", "show", str(browsed.run.path), "--item", row["item_id"]]
    name = clipped(row["item_id"], _IN_LIST)
    blocks: list[Block] = [Heading(name, 1), _facts(entry.row), GAP]
    blocks.append(Box(tuple(answered(item, _WHOLE)), _tone(entry.row)))
    blocks += _since(browsed, entry.row)
    dialogue = conversation(item.turns, item.drafts, item.ended, prompts=True, longest=_WHOLE)
    blocks += [Heading("Conversation"), *(dialogue if item.turns else [_stored()])]
    if entry.row.before is not None and entry.turns_before:
        other = chosen(entry.row.before, entry.turns_before)
        dialogue = conversation(
            other.turns, other.drafts, other.ended, prompts=True, longest=_WHOLE
        )
        assert browsed.against is not None
        blocks.append(Details(f"the conversation in {browsed.against.path}", tuple(dialogue)))
    command = shlex.join([*where, "--position", str(row["position"])])
    # Half a command would be of no use.
    return [*blocks, GAP, Line(command, "dim")] if name == row["item_id"] else blocks


def _stored() -> Line:
    return Line("nobody was asked: the answer was stored", "dim")


def _since(browsed: RunBrowser, row: ViewerRow) -> list[Block]:
    """What became of the answer since the other run."""
    if browsed.against is None or row.move is None:
        return []
    blocks: list[Block] = [Heading(f"Since {browsed.against.path}"), Line(MOVED[row.move])]
    if row.before is not None:
        blocks.append(_changed(row.before, row.row, _WHOLE))
    return blocks


def _changed(before: Mapping[str, Any], after: Mapping[str, Any], longest: int) -> Block:
    return diff(clipped(_answer(before), longest), clipped(_answer(after), longest))


def _answer(row: Mapping[str, Any]) -> str:
    if row["text"] is not None:
        return str(row["text"])
    return f"(no answer: {row['reason']})"


def _facts(row: ViewerRow) -> Grid:
    result = row.row
    scores = {score["name"]: score["value"] for score in result["scores_after"] or ()}
    before = {score["name"]: score["value"] for score in result["scores_before"] or ()}
    rows = [
        ("position in the plan", f"{result['position']:,}"),
        ("ended", _ended(result)),
        ("changed by the method", {True: "yes", False: "no"}.get(result["changed"], "-")),
        ("calls", str(result["calls"])),
    ]
    names = list(dict.fromkeys([*before, *scores]))
    for name in names[:_ROWS]:
        values = [f"{side[name]:.3f}" if name in side else "-" for side in (before, scores)]
        text = values[1] if before == scores else " → ".join(values)
        rows.append((f"score {clipped(name, _IN_LIST)}", text))
    tags = result["tags"] or ()
    rows += [
        (clipped(tag["name"], _IN_LIST), clipped(tag["value"], _IN_LIST)) for tag in tags[:_ROWS]
    ]
    more = sum(max(0, len(all_) - _ROWS) for all_ in (names, tags))
    rows += [("more scores and tags", f"{more:,}")] if more else []
    return Grid(("", ""), tuple(rows))


def _ended(row: Mapping[str, Any]) -> str:
    return clipped(row["stopped"] or f"no answer: {row['reason']}", _IN_LIST)


def _tone(row: ViewerRow) -> Tone:
    if row.move is not None:
        return _TONES.get(row.move, "plain")
    return "bad" if row.row["status"] == "failed" else "plain"


def _item(row: ViewerRow) -> ListItem:
    result = row.row
    facts = [MOVED[row.move]] if row.move else []
    facts.append(_ended(result))
    facts += [f"{score['name']} {score['value']:.2f}" for score in result["scores_after"] or ()]
    block: Block = Line(_short(_answer(result)), "bad" if result["text"] is None else "plain")
    if row.before is not None and row.move != "same":
        block = _changed(row.before, result, _IN_LIST)
    return ListItem(
        position=result["position"],
        name=clipped(result["item_id"], _IN_LIST),
        facts=clipped(" · ".join(facts), _IN_LIST),
        asked=_short(result["prompt"] or ""),
        answer=_blocks([block]),
        tone=_tone(row),
    )


def _short(text: str) -> str:
    return clipped(" ".join(text.split()), _IN_LIST)


def _title(browsed: RunBrowser) -> str:
    other = f" since {browsed.against.path}" if browsed.against else ""
    return f"{browsed.run.path}{other}"


def _summary(browsed: RunBrowser, listing: ListPage) -> Page:
    totals, record = listing.totals, browsed.run.record
    planned = browsed.run.planned
    model = record.cast["default"]["model"]
    blocks: list[Block] = [Line(f"{model} · {record.method['name']}", "dim")]
    blocks.append(
        Line(f"{totals.items:,} of {planned:,} items are done, {totals.answered:,} answered")
    )
    if browsed.run.open:
        blocks.append(Line("The run is open: more items may come", "bad"))
    if totals.failed:
        reasons = ", ".join(f"{n:,} {reason}" for reason, n in totals.failed.items())
        blocks.append(Line(clipped(f"Without an answer: {reasons}", _IN_LIST), "bad"))
    if listing.moved:
        moved = (f"{MOVED[move]}: {n:,}" for move, n in listing.moved.items() if n)
        blocks.append(Line(" · ".join(moved), "strong"))
    return blocks


def _choices(
    browsed: RunBrowser, facets: Facets, query: ListQuery, listing: ListPage
) -> list[SelectField]:
    ends = [("answered", "answered"), ("failed", "no answer")]
    reasons = [reason for reason in listing.totals.failed if len(reason) <= LONGEST]
    ends += [(reason, f"no answer: {reason}") for reason in reasons[:_ROWS]]
    ends += [(reason, f"stopped: {reason}") for reason in facets.stopped]
    choices = [SelectField("ended", "ended", ends, query.ended)]
    yes_no = [("yes", "yes"), ("no", "no")]
    choices.append(SelectField("changed by the method", "changed", yes_no, query.changed))
    if browsed.against is not None:
        moves = SelectField("since the other run", "move", [*MOVED.items()], query.move)
        choices.insert(0, moves)
    return choices


def _tags(facets: Facets, query: ListQuery) -> tuple[list[SelectField], list[SelectField]]:
    """The tags that the instrument reports by, and the others."""
    chosen_ones = dict(query.tags)
    first: list[SelectField] = []
    further: list[SelectField] = []
    for name, values in facets.tags.items():
        options = [(value, clipped(value, 60)) for value in values]
        choice = SelectField(name, f"tag.{name}", options, chosen_ones.get(name, ""))
        (first if facets.is_first(name) else further).append(choice)
    return first, further


def _pager(
    label: str, home: str, query: ListQuery | RunsQuery, matching: int, pages: int
) -> Markup:
    first = (query.page - 1) * PAGE + 1
    last = min(first + PAGE - 1, matching)
    range_ = f"{first:,} to {last:,} of {matching:,}" if first <= last else "nothing here"
    places = {"first": 1, "previous": query.page - 1, "next": query.page + 1, "last": pages}
    links = {
        word: f"{home}{query.at(page).address()}"
        for word, page in places.items()
        if 1 <= page <= pages and page != query.page
    }
    return _filled("links.html", label=label, said=range_, links=links)


def _run_links(browsed: RunBrowser) -> Markup | str:
    """Link a run of several to the list of runs, and to its report."""
    if not browsed.base:
        return ""
    key = browsed.base.rpartition("/")[2]
    links = {"all runs": "/", "report": f"/compare?run={key}"}
    return _filled("links.html", label="Run", said="", links=links)


# -- several runs ----------------------------------------------------------------------------------

_COLUMNS = ("run", "benchmark", "model", "method", "outcome", "items", "calls", "cost", "created",
            "state")  # fmt: skip
_OUTCOME_TONES: dict[str, Tone] = {
    "detected": "bad", "fail": "bad", "inconclusive": "open", "ruled_out": "good", "pass": "good",
}  # fmt: skip


class RunRow(NamedTuple):
    """A run as it stands in the list."""

    key: str
    name: str
    cells: tuple[str, ...]
    state: str
    progress: float | None
    tone: Tone


def runs_page(index: RunIndex, query: RunsQuery, listing: RunsPage) -> str:
    """Make the page with the list of runs.

    Args:
        index: The folder of runs.
        query: The filters of this request.
        listing: The rows of this page.

    Returns:
        The page as HTML.
    """
    choices = [
        SelectField(
            "benchmark" if name == "instrument" else name,
            name,
            [(value, value.replace("_", " ")) for value in values[:_ROWS]],
            str(getattr(query, name)),
        )
        for name, values in listing.values.items()
    ]
    running = sum(row.state == "running" for row in listing.rows)
    summary = f"{listing.matching:,} of {listing.total:,} runs"
    inner = _filled(
        "runs.html",
        title=f"Runs in {index.root}",
        summary=f"{summary}, {running} running on this page" if running else summary,
        wanted=query,
        longest=LONGEST,
        choices=choices,
        sorts=SORTS,
        above=_pager("Pages", "/", query, listing.matching, listing.pages),
        below=_pager("Pages, again", "/", query, listing.matching, listing.pages),
        columns=_COLUMNS,
        rows=[_run_row(row) for row in listing.rows],
        most=COMPARED,
    )
    return html.framed(inner, f"Runs in {index.root}", _style())


def _run_row(run: ListedRun) -> RunRow:
    items = "" if run.planned is None else f"{run.planned:,}"
    progress = None
    if run.state != "finished" and run.done is not None and run.planned:
        items = f"{run.done:,} of {run.planned:,}"
        progress = min(1.0, run.done / run.planned)
    cost = "" if run.cost is None else numbers.money(run.cost, run.currency)
    calls = "" if run.calls is None else f"{run.calls:,}"
    outcome = run.outcome.replace("_", " ")
    cells = (run.instrument, run.model, run.method, outcome, items, calls, cost, run.created)
    return RunRow(
        key=run.key,
        name=run.name,
        cells=tuple(clipped(cell, _IN_LIST) for cell in cells),
        state=run.problem or run.state,
        progress=progress if run.state == "running" else None,
        tone="bad" if run.problem else _OUTCOME_TONES.get(run.outcome, "plain"),
    )


def report_of_runs(dossier: CombinedReport) -> str:
    """Make the report page of selected runs, with a link to the list."""
    nav = _filled("links.html", label="Runs", said="", links={"all runs": "/"})
    inner = nav + _blocks(page_of(dossier, full=True))
    return html.framed(inner, dossier.title, _style())


def _style() -> str:
    return read_text(__package__, "viewer.css")


def _filled(template: str, **values: Any) -> Markup:
    return Markup(_TEMPLATES.get_template(template).render(values))  # noqa: S704 - escaped in there


def _blocks(page: Page) -> Markup:
    return Markup(html.body(page))  # noqa: S704 - escaped in there


def _escaped(value: object) -> Markup:
    if isinstance(value, Markup):
        return value
    return Markup(html.escape(str(value)))  # noqa: S704 - escaped here


_TEMPLATES = Environment(
    loader=PackageLoader("evenhand.views", "viewer"),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=_escaped,
    trim_blocks=True,
    lstrip_blocks=True,
)
