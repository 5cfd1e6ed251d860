"""What the import contracts leave open: imports for types alone, and how many packages there are;
and that a statistic is asked what it can do, not which kind it is."""

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/evenhand"
TEXTS = {path: path.read_text("utf-8") for path in sorted(SOURCE.rglob("*.py"))}


def _floors() -> dict[str, int]:
    """The floor of each package, as the contract lists them; the top one is 1."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = contracts["contracts"][0]["layers"]
    return {
        package.strip().removeprefix("evenhand."): floor
        for floor, packages in enumerate(layers, 1)
        for package in packages.split("|")
    }


def type_only_imports_up(package: str, source: str) -> Iterator[str]:
    """Each import under TYPE_CHECKING from a package on the same floor or above."""
    floors = _floors()
    for block in ast.walk(ast.parse(source)):
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test):
            for node in ast.walk(block):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("evenhand."):
                    other = str(node.module).split(".")[1]
                    if other != package and floors[other] <= floors[package]:
                        yield str(node.module)


def test_an_import_for_types_alone_goes_down_too() -> None:
    for path, text in TEXTS.items():
        package = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if "TYPE_CHECKING" in text and package not in ("__init__", "templates"):
            assert not list(type_only_imports_up(package, text)), path


def test_an_import_for_types_alone_that_goes_up_is_found() -> None:
    planted = (
        "if TYPE_CHECKING:\n    from evenhand.views import save\n    from evenhand.core import Item"
    )
    assert list(type_only_imports_up("findings", planted)) == ["evenhand.views"]


def test_all_packages_can_be_drawn() -> None:
    packages = {path.relative_to(SOURCE).parts[0] for path in TEXTS}
    assert len(packages) <= 24
    assert max(_floors().values()) <= 12
    assert packages - {"__init__.py"} == {
        name if (SOURCE / name).is_dir() else f"{name}.py" for name in _floors()
    }


def _kinds(texts: Mapping[Path, str]) -> set[str]:
    """Every class that derives from `Statistic`."""
    bases = dict(re.findall(r"^class (\w+)\((\w+)\)", "\n".join(texts.values()), re.MULTILINE))
    kinds = {"Statistic"}
    while more := {name for name, base in bases.items() if base in kinds} - kinds:
        kinds |= more
    return kinds - {"Statistic"}


def places_that_ask_the_kind(texts: Mapping[Path, str], kinds: set[str]) -> list[str]:
    names = "|".join(sorted(kinds))
    asks = re.compile(
        rf"isinstance\([^()]*,[^()]*\b(?:{names})\b[^()]*\)|^\s*case (?:{names})\(", re.M
    )
    return [hit for text in texts.values() for hit in asks.findall(text)]


def test_at_most_five_places_ask_which_kind_a_statistic_is() -> None:
    kinds = _kinds(TEXTS)
    assert {"Mean", "Ratio", "OfRows", "OfTotals", "MeanOfClusters"} <= kinds
    assert len(places_that_ask_the_kind(TEXTS, kinds)) <= 5


def test_a_place_that_asks_the_kind_is_found() -> None:
    asking = {Path("a"): "isinstance(s, Mean | Ratio)", Path("b"): "match s:\n    case Ratio(x):"}
    assert len(places_that_ask_the_kind(asking, {"Mean", "Ratio"})) == 2
