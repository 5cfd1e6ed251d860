"""The last parts of a dossier's page let a reader check it: what is known of the judges, chosen
answers with their conversations, and what everything rests on."""

import shlex

import orjson

from evenhand.findings.combined_report import CombinedReport, SourceFolder
from evenhand.findings.examples import ExampleAnswer
from evenhand.views import audit_page, catalog
from evenhand.views.blocks import GAP, Block, Box, Details, Grid, Heading, Line, Tone, diff
from evenhand.views.charts import Pictures
from evenhand.views.dossier_summary import RunNames
from evenhand.views.timeline_page import clipped, conversation, transcript
from evenhand.views.visible import hidden

_LONGEST = 1_200  # our choice, in characters of a text; the run folder has the whole
_MOST = 200_000  # our choice, in characters of conversations: a page of ten runs stays small
_METHOD = (
    "Every interval is a 95% confidence interval. It is clustered: computed over groups of similar "
    "items, such as the variants of one template, not over single items.",
    "“Detected”, “improved” and “regressed” mean an adjusted p-value of at most 0.05, by a "
    "clustered "
    "sign-flip permutation test for means: Holm-adjusted over the primary changes of all "
    "comparisons on this page and over the groups of one run or comparison, and Benjamini–Hochberg-"
    "adjusted over further metrics. Guardrails are Holm-adjusted within their comparison.",
    "A missing answer counts at its worst. A result that missing answers could overturn is not "
    "called significant.",
)
_SELECTED = (
    "Each group that is selected or ranked first is tested against all others by an exact test. "
    "p-values and intervals are adjusted for all groups and tests of the run, by the smallest "
    "p-value of simulations without bias. An interval is the inverted test.",
    "Missing outcomes count at their worst: a result for a group is detected or ruled out only if "
    "it holds for every possible value of them.",
)
_STOPPED = (
    "If a run could stop early ({}), its intervals are confidence sequences over clusters: they "
    "are "
    "valid whenever it stopped. It has no p-values."
)
_LIMITS = (
    "A benchmark measures the groups, languages and kinds of harm of its items, and no others.",
    "Statistics cannot tell whether a difference matters to the people concerned.",
)


def judges(dossier: CombinedReport, names: RunNames, pictures: Pictures) -> list[Block]:
    """Give the part that says what is known of the judges."""
    blocks: list[Block] = [Heading("Judges")]
    if dossier.judges:
        rows = tuple(
            (names.of(judge.run), judge.role, judge.model, catalog.text(judge.says))
            for judge in dossier.judges
        )
        tones: tuple[Tone, ...] = tuple(
            "good" if judge.passes else "open" for judge in dossier.judges
        )
        blocks.append(Grid(("run", "judge", "model", "what is known of it"), rows, tones))
        if not any(judge.passes for judge in dossier.judges):
            text = "No judge here is certified: none was audited, or the audit did not pass."
            blocks += [
                Line(text, "bad"),
                Line("next  evenhand audit judge --out runs/judge", "dim"),
            ]
    elif not dossier.audits:
        blocks.append(Line("No method here asked a language model to judge."))
    for audit in dossier.audits:
        blocks += [Heading(f"{audit.kind} · {audit.title}", 3), *audit_page.opening(audit)]
        blocks += [*pictures.of(audit, audit.title), *audit_page.checks(audit)]
        blocks.append(Details("the whole audit", tuple(audit_page.page(audit, full=True))))
    return blocks


def examples(dossier: CombinedReport, names: RunNames) -> list[Block]:
    """Give the part in which a reader sees answers, chosen by a stated rule."""
    blocks: list[Block] = [Heading("Examples")]
    left = _MOST
    for choice in dossier.choices:
        if not choice.answers:
            continue
        blocks += [Heading(names.of(choice.run), 3), Line(catalog.text(choice.rule), "dim")]
        for item in choice.answers:
            block, left = _conversation(item, choice.run, left)
            head = Line(f"{item.item_id}: {catalog.text(item.why)}", "strong")
            blocks.append(Box((head, *answered(item), block)))
    if len(blocks) == 1:
        blocks.append(Line("No answer of these runs is an example of what the rule asks for."))
    return blocks


def answered(item: ExampleAnswer, longest: int = _LONGEST) -> list[Block]:
    """Give what was asked and what was answered, with the words that changed; a text is cut after
    `longest` characters."""
    asked = transcript(item.conversation, item.tools, longest)
    blocks: list[Block] = [*(asked or [Line(clipped(item.asked, longest))]), GAP]
    first = item.drafts[0].text if item.drafts else None
    if item.answer is None:
        blocks.append(Line(f"no answer ({clipped(item.ended, longest)})", "bad"))
    elif first is not None and first != item.answer:
        blocks += [Line("from the first draft to the answer", "dim"), diff(first, item.answer)]
    elif item.baseline is not None:
        blocks += [Line("from the baseline's answer to this one", "dim")]
        blocks.append(diff(item.baseline, item.answer))
    else:
        blocks += [Line("the answer", "dim"), Line(clipped(item.answer, longest))]
    before = (message.text for message in item.conversation)
    texts = (item.asked, item.answer or "", first or "", *before)
    unseen = sum(map(hidden, texts))
    if unseen:
        blocks.append(Line(f"{unseen:,} invisible characters are left out here.", "bad"))
    return blocks


def _conversation(item: ExampleAnswer, run: str, left: int) -> tuple[Block, int]:
    """The whole conversation behind a line, as long as there is room on the page."""
    where = shlex.join(["evenhand", "runs", "show", run, "--item", item.item_id])
    if not item.turns:
        return Line("nobody was asked: the answer was stored", "dim"), left
    blocks = conversation(item.turns, item.drafts, item.ended, prompts=True, longest=_LONGEST)
    length = sum(len(block.text) for block in blocks if isinstance(block, Line))
    if length > left:
        return Line(f"the conversation: {where}", "dim"), left
    count = f"{len(item.turns)} turns" if len(item.turns) > 1 else "1 turn"
    return Details(f"the whole conversation, {count}", (*blocks, Line(where, "dim"))), left - length


def method(dossier: CombinedReport, names: RunNames) -> list[Block]:
    """Give the part that says how the numbers were made, their limits, and how to repeat them."""
    blocks: list[Block] = [Heading("Method and limits")]
    selects = [report.instrument.selects is not None for report in dossier.reports]
    usual = dossier.comparisons or not selects or not all(selects)
    blocks += [Line(line) for line in (*(_METHOD * bool(usual)), *(_SELECTED * any(selects)))]
    if early := [names.of(report.side.run) for report in dossier.reports if report.stopped]:
        blocks.append(Line(_STOPPED.format(", ".join(early))))
    for report in dossier.reports:
        for measure in report.instrument.measures:
            if measure.source:
                blocks.append(Line(f"{measure.label}: {measure.source}", "dim", indent=2))
    blocks += [Heading("Limits", 3), *(Line(line) for line in _LIMITS)]
    blocks += [Heading("Runs and checksums", 3), *(_record(folder) for folder in dossier.folders)]
    runs = [folder.run for folder in dossier.folders]
    commands = [
        shlex.join(["evenhand", "report", *runs, "--out", "report.html"]),
        *(shlex.join(["evenhand", "runs", "verify", run]) for run in runs),
    ]
    blocks += [Heading("How to repeat it, without a model", 3)]
    return [*blocks, *(Line(command) for command in commands)]


def _record(folder: SourceFolder) -> Block:
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
