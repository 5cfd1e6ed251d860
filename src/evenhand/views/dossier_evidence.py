"""The last parts of a dossier's page let a reader check it: what is known of the judges, chosen
answers with their conversations, and what everything rests on."""

import shlex

import orjson

from evenhand.findings.combined_report import Dossier, Folder
from evenhand.findings.examples import Chosen
from evenhand.views import audit_page
from evenhand.views.blocks import GAP, Block, Box, Details, Grid, Heading, Line, Tone
from evenhand.views.diffs import diff
from evenhand.views.pictures import Pictures
from evenhand.views.timeline_page import clipped, conversation
from evenhand.views.visible import hidden

_LONGEST = 1_200  # our choice, in characters of a text; the run folder has the whole
_MOST = 200_000  # our choice, in characters of conversations: a page of ten runs stays small
_METHOD = (
    "Every interval is one of 95 %. It is computed over clusters of items that are alike, such as "
    "the variants of one template, and not over single items.",
    "“Shown” is a p-value of at most 0.05, by clustered sign flips where a number is a mean: after "
    "Holm over the main changes of all comparisons here, after Holm over the groups of one run or "
    "comparison, and after Benjamini and Hochberg over its further numbers. A red line is crossed "
    "by its own p-value, uncorrected: an alarm, not a discovery.",
    "A missing answer is evidence neither of better nor of worse: it is reported, and what it "
    "could overturn is not called shown.",
)
_SELECTED = (
    "Of groups that are selected or ranked first, each is tested against all others by an exact "
    "test. p-values and intervals are adjusted for all groups and tests of the run, by the "
    "smallest p-value of draws without bias; an interval is the inverted test.",
    "A missing outcome counts against every claim: a group is called shown, or not shown, only if "
    "it would be however the missing ones came out.",
)
_STOPPED = (
    "Of a run that was allowed to stop early ({}) every interval holds at any moment it may have "
    "stopped, by a confidence sequence over clusters; it has no p-values."
)
_LIMITS = (
    "An instrument sees the groups, the languages and the kinds of harm that its items are about, "
    "and no others.",
    "Whether a difference matters to the people concerned is not a question of statistics.",
)


def judges(found: Dossier, drawn: Pictures) -> list[Block]:
    """Give the part that says what is known of the judges."""
    blocks: list[Block] = [Heading("Can the judge be trusted?")]
    if found.judges:
        rows = tuple((one.run, one.role, one.model, one.says) for one in found.judges)
        tones: tuple[Tone, ...] = tuple("good" if one.passes else "open" for one in found.judges)
        blocks.append(Grid(("run", "judge", "model", "what is known of it"), rows, tones))
        if not any(one.passes for one in found.judges):
            said = "No judge here is certified: nobody checked them, or the check did not pass."
            blocks += [
                Line(said, "bad"),
                Line("next  evenhand judge-check --out runs/judge", "dim"),
            ]
    elif not found.audits:
        blocks.append(
            Line("No method here asked a language model to judge, so nobody checked one.")
        )
    for audit in found.audits:
        blocks += [Heading(f"{audit.kind} · {audit.title}", 3), *audit_page.opening(audit)]
        blocks += [*drawn.of(audit, audit.title), *audit_page.checks(audit)]
        blocks.append(Details("the whole audit", tuple(audit_page.page(audit, full=True))))
    return blocks


def look(found: Dossier) -> list[Block]:
    """Give the part in which a reader sees answers, chosen by a stated rule."""
    blocks: list[Block] = [Heading("Look for yourself")]
    left = _MOST
    for choice in found.choices:
        if not choice.answers:
            continue
        blocks += [Heading(choice.run, 3), Line(choice.rule, "dim")]
        for one in choice.answers:
            said, left = _conversation(one, choice.run, left)
            head = Line(f"{one.item_id}: {one.why}", "strong")
            blocks.append(Box((head, *answered(one), said)))
    if len(blocks) == 1:
        blocks.append(Line("No answer of these runs is an example of what the rule asks for."))
    return blocks


def answered(one: Chosen, longest: int = _LONGEST) -> list[Block]:
    """Give what was asked and what was answered, with the words that changed; a text is cut after
    `longest` characters."""
    blocks: list[Block] = [Line(clipped(one.asked, longest)), GAP]
    first = one.drafts[0].text if one.drafts else None
    if one.answer is None:
        blocks.append(Line(f"no answer ({clipped(one.ended, longest)})", "bad"))
    elif first is not None and first != one.answer:
        blocks += [Line("from the first draft to the answer", "dim"), diff(first, one.answer)]
    elif one.baseline is not None:
        blocks += [Line("from the baseline's answer to this one", "dim")]
        blocks.append(diff(one.baseline, one.answer))
    else:
        blocks += [Line("the answer", "dim"), Line(clipped(one.answer, longest))]
    unseen = sum(hidden(text) for text in (one.asked, one.answer or "", first or ""))
    if unseen:
        blocks.append(Line(f"{unseen:,} signs that cannot be seen are left out here.", "bad"))
    return blocks


def _conversation(one: Chosen, run: str, left: int) -> tuple[Block, int]:
    """The whole conversation behind a line, as long as there is room on the page."""
    where = shlex.join(["evenhand", "runs", "show", run, "--item", one.item_id])
    if not one.turns:
        return Line("nobody was asked: the answer was stored", "dim"), left
    said = conversation(one.turns, one.drafts, one.ended, prompts=True, longest=_LONGEST)
    length = sum(len(block.text) for block in said if isinstance(block, Line))
    if length > left:
        return Line(f"the conversation: {where}", "dim"), left
    count = f"{len(one.turns)} turns" if len(one.turns) > 1 else "1 turn"
    return Details(f"the whole conversation, {count}", (*said, Line(where, "dim"))), left - length


def method(found: Dossier) -> list[Block]:
    """Give the part that says how the numbers were made, their limits, and how to repeat them."""
    blocks: list[Block] = [Heading("Method, limits, and how to repeat it")]
    selects = [report.instrument.selects is not None for report in found.reports]
    usual = found.comparisons or not selects or not all(selects)
    blocks += [Line(line) for line in (*(_METHOD * bool(usual)), *(_SELECTED * any(selects)))]
    if early := [report.side.run for report in found.reports if report.stopped]:
        blocks.append(Line(_STOPPED.format(", ".join(early))))
    for report in found.reports:
        for measure in report.instrument.measures:
            if measure.source:
                blocks.append(Line(f"{measure.label}: {measure.source}", "dim", indent=2))
    blocks += [Heading("Limits", 3), *(Line(line) for line in _LIMITS)]
    blocks += [Heading("What it rests on", 3), *(_record(one) for one in found.folders)]
    runs = [one.run for one in found.folders]
    commands = [
        shlex.join(["evenhand", "report", *runs, "--out", "report.html"]),
        *(shlex.join(["evenhand", "runs", "verify", run]) for run in runs),
    ]
    blocks += [Heading("To repeat it, without a call", 3)]
    return [*blocks, *(Line(command) for command in commands)]


def _record(folder: Folder) -> Block:
    record = folder.record
    rows = [(f"SHA-256 of {name}", digest) for name, digest in folder.digests.items()]
    rows += [("made", record.created), ("seed", str(record.seed))]
    for name in ("method", "source", "limits", "cast", "versions"):
        for key, value in getattr(record, name).items():
            rows.append((f"{name}: {key}", _written(value)))
    rows += [(f"prompt {label}", digest) for label, digest in record.prompts.items()]
    return Details(folder.run, (Grid(("", ""), tuple(rows)),))


def _written(value: object) -> str:
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return clipped(text, _LONGEST)
