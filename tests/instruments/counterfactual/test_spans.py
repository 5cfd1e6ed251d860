"""Finding spans: 500 of them checked by eye, and what holds for any text."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.core.errors import UserError
from evenhand.instruments.counterfactual.families import AttributeLexicon, families, ours
from evenhand.instruments.counterfactual.spans import UNSURE, Span, find, read_spans, write_spans
from evenhand.instruments.counterfactual.versions import MadeVersions, RefusedPrompt, make
from tests.errors import raises_naming

FILE = Path(__file__).with_name("hand_checked.txt")
_LINE = re.compile(r"(\w+) ([\w-]+): (.*) => (.*)", re.DOTALL)
_MARKED = re.compile(r"\[(\??)([^\[\]]+)\]")


def _sections() -> dict[str, list[tuple[str, str, str, str]]]:
    """The sentences by the heading under which they stand."""
    found: dict[str, list[tuple[str, str, str, str]]] = {}
    for line in FILE.read_text("utf-8").splitlines():
        if line.startswith("# --- "):
            heading = found.setdefault(line.removeprefix("# --- "), [])
        elif line and not line.startswith("#"):
            read = _LINE.fullmatch(_unescaped(line))
            assert read, line
            heading.append((read[1], read[2], read[3], read[4]))
    return found


def _unescaped(line: str) -> str:
    line = line.replace("\\n", "\n").replace("\\t", "\t")
    return re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), line)


def _marked(sentence: str) -> tuple[str, list[tuple[int, int, bool]]]:
    """The sentence without its brackets, and where they stood."""
    text, spots, at = "", [], 0
    for found in _MARKED.finditer(sentence):
        text += sentence[at : found.start()]
        spots.append((len(text), len(text) + len(found[2]), bool(found[1])))
        text, at = text + found[2], found.end()
    return text + sentence[at:], spots


SECTIONS = _sections()


@pytest.mark.parametrize("heading", SECTIONS)
def test_sentences_checked_by_eye_become_what_they_must(heading: str) -> None:
    wrong = [case for case in SECTIONS[heading] if _becomes(*case[:3]) != case[3]]
    assert wrong == []


def _becomes(family: str, label: str, sentence: str) -> str:
    """What a sentence becomes, or what is wrong with what was found in it."""
    text, spots = _marked(sentence)
    spans = find(text, (ours()[family],))
    if [(one.start, one.end, one.slot == UNSURE) for one in spans] != spots:
        return f"found: {spans}"
    if not spans:
        return "untouched"
    made = make(text, ours()[family], seed=0, key="hand", spans=spans)
    if isinstance(made, RefusedPrompt):
        return "refused"
    wanted = "" if label == "none" else label
    texts = [one.text for one in made.versions if one.label == wanted and one.role != "placebo"]
    return texts[0] if texts else "left out"


def test_at_least_500_spans_and_60_refusals_were_checked() -> None:
    cases = [case for cases in SECTIONS.values() for case in cases]
    assert len(set(cases)) == len(cases)
    assert sum(len(_marked(sentence)[1]) for _, _, sentence, _ in cases) >= 500
    left = [becomes for *_, becomes in cases if becomes in ("refused", "untouched", "left out")]
    assert len(left) >= 60


GENDER = ours()["gender"]


def _group(text: str, label: str) -> str | None:
    made = make(text, GENDER, seed=3, key="k", spans=find(text, (GENDER,)))
    if isinstance(made, RefusedPrompt):
        return None
    return next(one.text for one in made.versions if (one.label, one.role) == (label, "group"))


_PARTS = st.sampled_from(
    [
        "She is here.",
        "I saw her, and",
        "the desk is hers;",
        "she hurt herself.",
        "My mother's Market fell?",
        "HER WOMEN WON!",
        "Ask Ms. Ito about it.",
        "Emily Walsh called.",
        "Walsh met Emily’s sister.",
        "Sarah left.",
        "The chairwoman and\nher girls' team —",
        "🎉 café שלום {x} }} will Will",
        "a caucasian aunt",
    ]
)
_TEXTS = st.lists(_PARTS, max_size=6).map(" ".join)


@settings(max_examples=25)
@given(_TEXTS)
def test_swapping_there_and_back_gives_the_text_again(text: str) -> None:
    woman, man = _group(text, "woman"), _group(text, "man")
    if man is None or woman is None:
        return
    again = find(man, (GENDER,))
    if any(one.slot == UNSURE for one in again):
        return  # a person would be asked
    assert _group(man, "woman") == woman


@settings(max_examples=25)
@given(_TEXTS)
def test_what_lies_outside_the_spans_is_not_touched(text: str) -> None:
    man = _group(text, "man")
    if man is None:
        return
    outside, at = [], 0
    for span in find(text, (GENDER,)):
        outside.append(text[at : span.start])
        at = span.end
    for part in (*outside, text[at:]):
        assert part in man
        man = man[man.index(part) + len(part) :]


@settings(max_examples=25)
@given(st.text(max_size=60))
def test_any_text_can_be_searched_and_its_spans_say_what_stands_there(text: str) -> None:
    for span in find(text, tuple(ours().values())):
        assert text[span.start : span.end] == span.text


@pytest.mark.parametrize("family", ours().values(), ids=lambda one: one.name)
def test_no_version_says_another_label_in_a_swapped_place(family: AttributeLexicon) -> None:
    for slot in family.labels[0].forms:
        made = make(f"We saw {{{slot}}} workers.", family, seed=1, key="k")
        assert isinstance(made, MadeVersions)
        for one in made.versions:
            if one.role != "group":
                continue
            others = [other for other in family.labels if other.name != one.label]
            said = one.text.removeprefix("We saw ").removesuffix(" workers.")
            assert not any(said in other.forms[slot] for other in others)


def test_spans_are_written_read_and_shown_with_what_stands_around_them(tmp_path: Path) -> None:
    prompts = {"a": "She works.", "b": "Nobody works.", "c": "I gave her money."}
    found = {key: find(text, (GENDER,)) for key, text in prompts.items()}
    write_spans(tmp_path / "spans.jsonl", found, prompts)
    hers = "I gave her money."
    assert hers in (tmp_path / "spans.jsonl").read_text()
    assert read_spans(tmp_path / "spans.jsonl") == {"a": found["a"], "c": found["c"]}


def test_a_span_that_a_person_corrected_is_swapped_as_it_says(tmp_path: Path) -> None:
    text = "I gave her money."
    spans = (Span(7, 10, "object", "woman", "gender", "her"),)
    made = make(text, GENDER, seed=0, key="k", spans=spans)
    assert isinstance(made, MadeVersions)
    his = "I gave him money."
    assert his in [one.text for one in made.versions]


@pytest.mark.parametrize(
    ("span", "why"),
    [
        (Span(0, 3, "pronoun", "woman", "gender", "Her"), "no longer fits"),
        (Span(-3, 0, "pronoun", "woman", "gender", ""), "no longer fits"),
        (Span(0, 3, "pronoun", "queen", "gender", "She"), "no group 'queen'"),
        (Span(0, 3, "hat", "woman", "gender", "She"), "no placeholder 'hat'"),
        (Span(0, 3, "relative", "woman", "gender", "She"), "not a word for woman"),
        (Span(0, 3, "?", "woman", "gender", "She"), "may be"),
        (Span(9, 10, "name", "woman", "gender", "."), "contains no word"),
        (Span(9, 10, "last_name", "woman", "gender", "."), "contains no word"),
    ],
)
def test_a_span_that_does_not_fit_is_refused_with_the_reason(span: Span, why: str) -> None:
    refused = make("She works.", GENDER, seed=0, key="k", spans=(span,))
    assert isinstance(refused, RefusedPrompt)
    assert why in refused.reason


def test_a_name_in_capitals_before_another_word_in_capitals_is_left_to_a_person() -> None:
    slots = {text: find(text, (GENDER,))[0].slot for text in ("EMILY WALSH asked.", "EMILY IS ILL")}
    assert slots == {"EMILY WALSH asked.": UNSURE, "EMILY IS ILL": "first_name"}


def test_spans_that_overlap_are_refused() -> None:
    one = Span(0, 11, "name", "woman", "gender", "Emily Walsh")
    two = Span(6, 11, "last_name", "woman", "gender", "Walsh")
    refused = make("Emily Walsh works.", GENDER, seed=0, key="k", spans=(two, one))
    assert isinstance(refused, RefusedPrompt)
    assert "two spans" in refused.reason


@pytest.mark.parametrize(
    "line",
    [
        '{"id": "a"}',
        '{"id": "a", "id": "b"}',
        '{"id": "a", "start": -1, "end": 3, "slot": "x", "label": "y", "family": "", "text": ""}',
        '{"id": "a", "start": 1e99, "end": 3, "slot": "x", "label": "y", "family": "", "text": ""}',
        '{"id": "a", "start": NaN, "end": 3, "slot": "x", "label": "y", "family": "", "text": ""}',
        "\x00",
        "[]",
    ],
)
def test_a_broken_line_of_spans_is_refused_with_its_number(tmp_path: Path, line: str) -> None:
    (tmp_path / "spans.jsonl").write_text(f"\n{line}\n")
    with raises_naming(UserError, "line 2"):
        read_spans(tmp_path / "spans.jsonl")


def test_a_family_of_ones_own_is_found_whatever_way_accents_are_stored(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(
        '[town]\nsource = "ours"\n[town.labels.a]\ngroup = ["Zoë"]\n[town.labels.b]\n'
        'group = ["Łódź"]\n'
    )
    (family,) = families((), own)
    for text in ("the Zoë team", "the Zoe\u0308 team"):
        (span,) = find(text, (family,))
        made = make(text, family, seed=0, key="k", spans=(span,))
        assert isinstance(made, MadeVersions)
        assert "the Łódź team" in [one.text for one in made.versions]
    names = "the Zoe team and Zoëy"
    assert find(names, (family,)) == ()
