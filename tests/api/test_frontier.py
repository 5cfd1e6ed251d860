"""`evenhand.frontier`: several methods on the same items, from Python."""

from pathlib import Path
from typing import Any

import evenhand as eh
from evenhand.testing import any_reply
from tests.errors import raises_naming


def test_methods_by_name_and_by_object_are_held_against_the_references(
    data_folder: Path, tmp_path: Path
) -> None:
    model = eh.ScriptedModel(any_reply)
    found = eh.frontier(
        "bbq",
        methods=["cot", "rotated", eh.methods.StarDTox(max_iterations=1)],
        calls=3,
        model=model,
        out=tmp_path / "front",
        data=data_folder,
        options={"per_category": 4},
        concurrency=8,
    )
    names = [entry.name for entry in found.entries]
    assert {"default", "fairness", "self_consistency", "cot", "rotated", "stardtox"} <= set(names)
    rotated = found.entries[names.index("rotated")]
    assert rotated.cost["calls"].mean == 3.0  # as many as there are options
    assert rotated.equal_calls == "self_consistency"  # the vote of 3, which is the full one here
    assert (tmp_path / "front/stardtox/run.json").exists()
    assert found.frame()["method"].n_unique() == len(names)
    assert "<table>" in found._repr_html_()


def test_a_cap_that_is_reached_is_an_error_and_the_same_call_goes_on(
    data_folder: Path, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {
        "methods": ["cot"],
        "calls": 2,
        "model": eh.ScriptedModel(any_reply),
        "out": tmp_path / "front",
        "data": data_folder,
        "options": {"per_category": 4},
    }
    with raises_naming(eh.UserError, "--max-calls", "higher cap"):
        eh.frontier("bbq", max_calls=20, **settings)
    assert eh.frontier("bbq", **settings).entries


def test_an_instrument_without_a_harm_has_no_frontier(tmp_path: Path) -> None:
    with raises_naming(eh.UserError, "squad", "harm", "RUN_A RUN_B"):
        eh.frontier("squad", model=eh.ScriptedModel(any_reply), out=tmp_path / "front")
