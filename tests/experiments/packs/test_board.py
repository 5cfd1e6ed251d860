"""A board ranks what is told apart and nothing else, and takes no bundle that is forged."""

import zipfile
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from evenhand.core.errors import UserError
from evenhand.experiments.boards import make_board
from evenhand.experiments.packs import PackOptions, make
from evenhand.findings.board import BoardPack, Standing, ranked
from evenhand.findings.estimates import Bounds, Estimate
from evenhand.instruments import instrument_named
from evenhand.runs.store import RunReader
from evenhand.views import charts
from tests.errors import raises_naming

KEPT = Path(__file__).parents[2] / "same_numbers/kept"
PACK = BoardPack(title="p", sha256="0" * 64, page="p.html")


@pytest.fixture(scope="module", autouse=True)
def _undrawn() -> Iterator[None]:
    """Charts have tests of their own, and take long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(charts, "installed", lambda: False)
        yield


@pytest.fixture(scope="module")
def packs(_undrawn: None, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("packs")
    files = []
    for name in ("default", "fairness"):
        files.append(folder / f"{name}.zip")
        make([RunReader(KEPT / "bbq" / name)], files[-1], PackOptions(title=f"Bot <{name}>"))
    return files


def _standing(system: str, value: float, low: float, high: float) -> Standing:
    estimate = Estimate(name="m", value=value, low=low, high=high, n=100, clusters=50)
    return Standing(system=system, pack=PACK, estimate=estimate)


def _ranks(measure: str, *standings: Standing) -> list[tuple[str, int | None]]:
    found = ranked(instrument_named("bbq").measure(measure), standings)
    return [(standing.system, standing.rank) for standing in found]


def test_a_rank_is_given_only_where_widened_intervals_do_not_overlap() -> None:
    """By hand: for three systems Bonferroni widens by z(1-.05/6)/z(.975) = 2.394/1.960 = 1.2215."""
    best = _standing("a", 0.10, 0.05, 0.15)  # widened: 0.039 to 0.161
    near = _standing("b", 0.30, 0.17, 0.43)  # widened: 0.141 to 0.459, and so it meets a
    far = _standing("c", 0.90, 0.85, 0.95)
    harm = "unsupported_attribution"
    assert _ranks(harm, far, near, best) == [("a", None), ("b", None), ("c", 3)]
    apart = _standing("b", 0.30, 0.22, 0.38)  # widened: 0.202 to 0.398
    assert _ranks(harm, far, apart, best) == [("a", 1), ("b", 2), ("c", 3)]


def test_missing_answers_and_single_clusters_take_a_rank_away() -> None:
    best, far = _standing("a", 0.10, 0.05, 0.15), _standing("c", 0.90, 0.85, 0.95)
    lost = replace(
        best, estimate=replace(best.estimate, bounds=Bounds(missing=90, low=0, high=0.9))
    )
    alone = replace(best, estimate=replace(best.estimate, clusters=1))
    for unsure in (lost, alone):
        assert _ranks("unsupported_attribution", unsure, far) == [("a", None), ("c", None)]


def test_more_is_better_of_accuracy_and_nearer_to_zero_of_a_bias_score() -> None:
    low, high = _standing("low", 0.2, 0.15, 0.25), _standing("high", 0.8, 0.75, 0.85)
    assert _ranks("accuracy_disambiguated", low, high) == [("high", 1), ("low", 2)]
    negative = _standing("negative", -0.9, -0.95, -0.85)
    assert _ranks("s_amb", negative, low) == [("low", 1), ("negative", 2)]


class _Addresses(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if tag == "a" and name == "href"]


def test_the_site_has_every_system_linked_to_the_report_of_its_bundle(
    packs: list[Path], tmp_path: Path
) -> None:
    site = tmp_path / "site"
    board = make_board(packs, site, title="Bots")
    assert {table.measure.name for table in board.tables} >= {"s_amb"}
    assert all(len(table.standings) == 2 for table in board.tables)
    index = (site / "index.html").read_text()
    assert "Bot &lt;default&gt;" in index
    reader = _Addresses()
    reader.feed(index)
    pages = {address for address in reader.found if not address.startswith("#")}
    assert pages == {pack.page for pack in board.packs}
    assert all((site / page).is_file() for page in pages)
    with raises_naming(UserError, "site", "--out"):
        make_board(packs, site, title="Bots")


def test_a_forged_bundle_is_refused_by_name_and_nothing_is_written(
    packs: list[Path], tmp_path: Path
) -> None:
    forged = tmp_path / "forged.zip"
    with zipfile.ZipFile(packs[0]) as old, zipfile.ZipFile(forged, "w") as new:
        for entry in old.infolist():
            data = old.read(entry)
            if entry.filename == "figures.json":
                data = data.replace(b"0.", b"9.", 1)
            new.writestr(entry, data)
    with raises_naming(UserError, "forged.zip"):
        make_board([packs[1], forged], tmp_path / "site", title="Bots")
    assert not (tmp_path / "site").exists()


def test_a_bundle_without_its_runs_cannot_be_verified(tmp_path: Path) -> None:
    light = tmp_path / "light.zip"
    make([RunReader(KEPT / "bbq/default")], light, PackOptions(light=True))
    with raises_naming(UserError, "light.zip"):
        make_board([light], tmp_path / "site", title="Bots")
