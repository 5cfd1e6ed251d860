"""The pages of the viewer can be read by everybody: on every screen, light and dark, and with what
reads a page aloud."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.views.opened import looked_at, needs_axe, needs_browser
from tests.views.viewer.asking import Asking, viewing

pytestmark = needs_browser

KEPT = Path(__file__).parents[2] / "same_numbers/kept/bbq"


@pytest.fixture(scope="module")
def compared() -> Iterator[Asking]:
    with viewing(KEPT / "self_debias_reprompting", KEPT / "default") as asking:
        yield asking


@pytest.fixture(scope="module", params=["light", "dark"])
def seen(
    request: pytest.FixtureRequest,
    asked: Asking,
    compared: Asking,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, dict[str, Any]]:
    """What a browser and axe-core say of every kind of page."""
    lost = compared(move="lost").items[0]
    pages = {
        "list": asked(),
        "nothing left": asked(text="no item says this"),
        "item": asked("/item/0"),
        "compared": compared(),
        "compared item": compared(f"/item/{lost}"),
        "no such page": asked("/nowhere"),
    }
    assert [said.status for said in pages.values()] == [200] * 5 + [404]
    return {
        name: looked_at(said.page, tmp_path_factory.mktemp("seen"), dark=request.param == "dark")
        for name, said in pages.items()
    }


def test_no_page_of_the_viewer_is_wider_than_the_screen(seen: dict[str, dict[str, Any]]) -> None:
    beyond = {name: found["beyond"] for name, found in seen.items()}
    assert beyond == {name: [0, 0] for name in seen}


@needs_axe
def test_axe_core_finds_nothing_serious_on_any_page_of_the_viewer(
    seen: dict[str, dict[str, Any]],
) -> None:
    assert {name: found["serious"] for name, found in seen.items()} == {name: [] for name in seen}
    # It looked at what such pages have.
    for name in ("list", "compared"):
        assert {"color-contrast", "label", "select-name", "link-name", "document-title"} <= {
            *seen[name]["checked"]
        }
