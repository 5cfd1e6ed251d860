"""Draw the rooms of the source tree from its imports: docs/images/architecture.svg.

A room is a folder or a file directly under src/evenhand. Its floor is one above the highest room
that it imports, so every arrow goes down. An arrow that follows from two others is left out.

    python scripts/architecture_drawing.py            # writes the drawing
    python scripts/architecture_drawing.py --check    # ends with 1 if the drawing is out of date
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "evenhand"
DRAWING = ROOT / "docs" / "images" / "architecture.svg"
PURPOSES = {
    "__init__": "the promised names, imported at first use",
    "agents": "roles, prompts, tools; the conversation",
    "aio": "the functions, to be awaited",
    "api": "one Python function per command",
    "cli": "parse, call, show",
    "core": "types, errors, registry",
    "experiments": "what it takes to run; the config",
    "findings": "statistics, estimates, comparisons, gates",
    "gateway": "answers of live traffic, checked",
    "instruments": "one folder per measurement; audits too",
    "integrations": "Inspect, LangChain, pytest",
    "interop": "logs of other tools",
    "methods": "one file per paper's method",
    "models": "the one way to a model",
    "runs": "items through a method; run folders",
    "scorers": "text to score",
    "statistics": "formulas and tests",
    "templates": "packages that `new` copies",
    "testing": "helpers for tests of parts",
    "training": "debates, pairs, ratings; weights",
    "validation": "self-test, conformance, controls",
    "views": "findings to terminal, HTML, files",
}
WIDTH, BOX, HEIGHT, ROW, MARGIN = 1120, 250, 48, 92, 24
STYLE = """
text{font-family:system-ui,sans-serif;fill:#1c1f24}.room{fill:#eef2f7;stroke:#7a8699}
.name{font-size:15px;font-weight:600}.purpose{font-size:11px;opacity:.8}
.arrow{fill:none;stroke:#5b6b82;stroke-opacity:.45}svg{background:#fff}
@media(prefers-color-scheme:dark){text{fill:#e4e7eb}.room{fill:#222a35;stroke:#6d7a8d}
.arrow{stroke:#9fb0c8}svg{background:#15181c}}
"""


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_rooms(path: Path, rooms: frozenset[str]) -> Iterator[str]:
    """Yield the rooms that a module imports when it runs, not those of its type hints alone."""
    tree = ast.parse(path.read_text("utf-8"))
    typing_only = {
        id(node)
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and ast.unparse(branch.test) == "TYPE_CHECKING"
        for node in ast.walk(branch)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("evenhand"):
            parts = (node.module or "").split(".")
            names = [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [a.name.split(".")[1] for a in node.names if a.name.startswith("evenhand.")]
        else:
            continue
        yield from (name if name in rooms else "__init__" for name in names)


def read_graph() -> dict[str, set[str]]:
    """Return the rooms that each room imports."""
    files = sorted(SOURCE.rglob("*.py"))
    rooms = frozenset(room_of(path) for path in files)
    graph: dict[str, set[str]] = {room: set() for room in rooms}
    for path in files:
        room = room_of(path)
        graph[room] |= {name for name in imported_rooms(path, rooms) if name != room}
    return graph


def floors_of(graph: dict[str, set[str]]) -> dict[str, int]:
    """Return the floor of each room. Raises ValueError where the imports form a circle."""
    path: list[str] = []

    @cache
    def floor(room: str) -> int:
        if room in path:
            raise ValueError(f"a circle of imports: {' -> '.join([*path, room])}")
        path.append(room)
        result = 1 + max((floor(lower) for lower in graph[room]), default=0)
        path.pop()
        return result

    return {room: floor(room) for room in sorted(graph)}


def direct_arrows(graph: dict[str, set[str]]) -> Iterator[tuple[str, str]]:
    """Yield the arrows that do not follow from others."""

    @cache
    def below(room: str) -> frozenset[str]:
        return frozenset(graph[room]).union(*(below(lower) for lower in graph[room]))

    for room, lower in sorted(graph.items()):
        for target in sorted(lower):
            if not any(target in below(other) for other in lower - {target}):
                yield room, target


def svg(graph: dict[str, set[str]]) -> str:
    floors = floors_of(graph)
    rows: dict[int, list[str]] = defaultdict(list)
    for room, floor in floors.items():
        rows[floor].append(room)
    top = max(rows)
    height = 2 * MARGIN + (top - 1) * ROW + HEIGHT
    places: dict[str, tuple[float, float]] = {}
    for floor, names in rows.items():
        step = WIDTH / len(names)
        for index, name in enumerate(names):
            shift = (floor % 2) * 70 - 35 if len(names) == 1 else 0  # arrows pass beside the box
            places[name] = (step * (index + 0.5) + shift, MARGIN + (top - floor) * ROW)
    arrows = "".join(
        f'<path class="arrow" marker-end="url(#head)" d="M{x1:.0f},{y1 + HEIGHT} '
        f'C{x1:.0f},{y1 + HEIGHT + 30} {x2:.0f},{y2 - 34} {x2:.0f},{y2 - 3}"/>'
        for room, target in direct_arrows(graph)
        for (x1, y1), (x2, y2) in [(places[room], places[target])]
    )
    boxes = "".join(
        f'<rect class="room" x="{x - BOX / 2:.0f}" y="{y}" width="{BOX}" height="{HEIGHT}" rx="6"/>'
        f'<text class="name" x="{x:.0f}" y="{y + 20}" text-anchor="middle">{escape(name)}</text>'
        f'<text class="purpose" x="{x:.0f}" y="{y + 37}" text-anchor="middle">'
        f"{escape(PURPOSES[name])}</text>"
        for name, (x, y) in sorted(places.items())
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="The rooms of evenhand on {top} floors; imports go down only">'
        f'<style>{STYLE.strip()}</style><defs><marker id="head" markerWidth="7" '
        'markerHeight="7" refX="6" refY="3" orient="auto"><path class="arrow" d="M0,0 L6,3 L0,6"/>'
        f"</marker></defs>{arrows}{boxes}</svg>\n"
    )


def main() -> int:
    drawing = svg(read_graph())
    if "--check" in sys.argv[1:]:
        return int(not DRAWING.is_file() or DRAWING.read_text("utf-8") != drawing)
    DRAWING.write_text(drawing, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
