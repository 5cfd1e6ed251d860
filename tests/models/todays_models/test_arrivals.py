"""However a toxic thought arrives, it moves no measure of the answers, and its own measure finds
it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evenhand as eh
from evenhand.models import Endpoint

from .server import MILD, TOXIC, Stub, listed, serving

# The behavior that shows its thought so, and whether by the Responses API.
FORMS: Mapping[str, tuple[str, bool]] = {
    "tags": ("r1", False),
    "a-closing-tag": ("r1prefilled", False),
    "an-open-tag": ("r1cut", False),
    "reasoning_content": ("r1sep", False),
    "blanks-before-the-answer": ("r1blanks", False),
    "reasoning": ("openrouter", False),
    "reasoning_details": ("details", False),
    "thinking_blocks": ("blocks", False),
    "anthropic-blocks": ("thinkingparts", False),
    "nothing-else-at-first": ("thinkcut", False),
    "tags-in-a-stream": ("stream", False),
    "a-tag-cut-off-in-a-stream": ("streamcut", False),
    "reasoning_content-in-a-stream": ("streamsep", False),
    "parts-in-a-stream": ("streamparts", False),
    "items-of-responses": ("r1sep", True),
    "items-of-responses-at-first-alone": ("thinkcut", True),
}
INSTRUMENTS: Mapping[str, dict[str, Any]] = {
    "bbq": {"per_category": 4, "categories": "Age"},
    "bold": {"per_group": 2, "domains": "gender"},
}
ITEMS = 4
Measured = tuple[eh.Report, pl.DataFrame]


@pytest.fixture(scope="module")
def stub() -> Stub:
    return Stub()


@pytest.fixture(scope="module")
def url(stub: Stub) -> Iterator[str]:
    with serving(stub) as address:
        yield address


@pytest.fixture(params=INSTRUMENTS)
def instrument(request: pytest.FixtureRequest, data_folder: Path) -> str:
    name = str(request.param)
    if not (data_folder / name).is_dir():
        pytest.skip(f"no data of {name}")
    return name


@pytest.fixture(scope="module")
def plain() -> dict[str, Measured]:
    """What the plain model answers, by instrument."""
    return {}


async def _measured(
    url: str, name: str, out: Path, model: str, responses: bool = False
) -> Measured:
    options = INSTRUMENTS[name] | ({} if model == "plain" else {"thinking": "offline"})
    api: Any = "responses" if responses else "chat"
    async with Endpoint(url, model=model, api=api) as asked:
        found = await eh.aio.measure(name, model=asked, out=out, options=options)
    assert isinstance(found, eh.Report)
    rows = eh.open_run(out).results().sort("item_id").select("item_id", "status", "text", "choice")
    return found, rows


def _thinking(found: eh.Report) -> dict[Any, Any]:
    section = found.section("thinking")
    assert section is not None
    return {row[0]: row[1] for row in section.rows}


def test_every_behavior_that_shows_a_thought_is_here() -> None:
    shown = {
        name for name, behavior in listed().items() if behavior.get("thinks", "hidden") != "hidden"
    }
    assert shown == {model for model, _ in FORMS.values()}


@pytest.mark.parametrize("form", FORMS)
async def test_a_toxic_thought_moves_no_measure_of_the_answers_and_is_found(
    form: str, instrument: str, stub: Stub, url: str, data_folder: Path, tmp_path: Path,
    plain: dict[str, Measured], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("EVENHAND_DATA", str(data_folder))
    monkeypatch.setattr(stub, "thought", TOXIC)
    if instrument not in plain:
        plain[instrument] = await _measured(url, instrument, tmp_path / "plain", "plain")
    report, answers = plain[instrument]
    found, rows = await _measured(url, instrument, tmp_path / "run", *FORMS[form])
    assert rows.equals(answers)
    assert answers["text"].null_count() == 0
    assert (found.estimates, found.groups) == (report.estimates, report.groups)
    assert report.section("thinking") is None
    thought = _thinking(found)
    assert thought["items with thinking"] == thought["scored"] == ITEMS
    assert thought["toxicity of the thinking"] > 0.8


async def test_a_mild_thought_is_not_called_toxic(
    instrument: str, stub: Stub, url: str, data_folder: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("EVENHAND_DATA", str(data_folder))
    monkeypatch.setattr(stub, "thought", MILD)
    found, _ = await _measured(url, instrument, tmp_path / "run", "r1")
    assert _thinking(found)["toxicity of the thinking"] < 0.2
