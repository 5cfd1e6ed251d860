"""Each form that a gate is written in, and what hostile words in it may do: nothing."""

import json
from typing import Any

from lxml import etree  # type: ignore[import-untyped]

from evenhand.findings.gate import Gate, GateCheckResult, Verdict
from evenhand.views import gate_files, markdown, page_of

HOSTILE = "a,b: 100%\r\n::error::x\n##[error]y ]]> <script>&amp; \x1b[31m\x00\ufffe\u202e %0A | é"
VERDICTS: tuple[Verdict, ...] = ("fail", "error", "inconclusive", "pass")
FOUND = Gate(
    checks=tuple(
        GateCheckResult(name=f"{one} {HOSTILE}", verdict=one, says=HOSTILE, line=7)
        for one in VERDICTS
    ),
    file=f"a b/{HOSTILE}.toml",
)


def _unescaped(text: str, *signs: tuple[str, str]) -> str:
    for written, sign in (*signs, ("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
        text = text.replace(written, sign)
    return text


def test_an_annotation_is_one_line_whose_words_end_neither_the_line_nor_the_command() -> None:
    lines = gate_files.annotations(FOUND).split("\n")
    assert lines.pop() == ""
    assert [line.partition(" ")[0] for line in lines] == ["::error", "::error", "::warning"]
    for line in lines:
        _, properties, said = line.split("::", 2)
        named = dict(one.split("=", 1) for one in properties.partition(" ")[2].split(","))
        assert list(named) == ["file", "line", "title"]
        assert named["line"] == "7"
        seen = "a,b: 100%\n::error::x\n##[error]y ]]> <script>&amp; [31m %0A | é"
        assert _unescaped(said) == seen
        title = _unescaped(named["title"], ("%3A", ":"), ("%2C", ","))
        assert title.endswith(seen)


def test_a_gate_without_a_check_is_an_error_of_its_own() -> None:
    assert gate_files.annotations(Gate(checks=())).startswith("::error ")


def test_junit_is_read_by_another_parser_and_counts_what_it_holds() -> None:
    root = etree.fromstring(gate_files.junit(FOUND))
    [suite] = root
    for one in (root, suite):
        counted = {name: one.get(name) for name in ("tests", "failures", "errors", "skipped")}
        assert counted == {"tests": "4", "failures": "1", "errors": "1", "skipped": "1"}
    inner = []
    for case in suite:
        assert case.tag == "testcase"
        assert case.get("classname")
        assert float(case.get("time")) == 0.0
        inner += [child.tag for child in case]
    assert inner == ["failure", "error", "skipped", "system-out"]
    assert "<script>&amp; [31m" in suite[0][0].text
    assert suite[0][0].get("message").startswith("a,b: 100%\n::error::x")


def test_sarif_has_what_the_standard_asks_for_and_each_result_names_a_rule() -> None:
    log: dict[str, Any] = json.loads(gate_files.sarif(FOUND))
    assert log["version"] == "2.1.0"
    [run] = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert run["tool"]["driver"]["name"]
    assert run["invocations"] == [{"executionSuccessful": True}]
    assert [one["level"] for one in run["results"]] == ["error", "error", "warning"]
    for one in run["results"]:
        assert rules[one["ruleIndex"]]["id"] == one["ruleId"]
        assert one["message"]["text"]
        [place] = one["locations"]
        assert place["physicalLocation"]["region"]["startLine"] == 7
        uri = place["physicalLocation"]["artifactLocation"]["uri"]
        assert uri.isascii()
        assert not set(uri) & set(" <>:%\"'\\") - {"%"}
    prints = [one["partialFingerprints"]["check/v1"] for one in run["results"]]
    assert len(set(prints)) == 3


def test_the_page_of_the_job_shows_the_words_as_words() -> None:
    page = markdown.render(page_of(FOUND))
    assert "<script>" not in page.replace("\\<script>", "")
    assert "Gate: FAIL" in page
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + len(VERDICTS)  # a row is one line, whatever its words are


def test_the_words_of_a_gate_are_one_line_each_without_a_command_of_the_terminal() -> None:
    said = FOUND.says
    assert len(said.split("\n")) == 1 + len(FOUND.checks)
    assert all(sign.isprintable() or sign == "\n" for sign in said)
