"""The pages of a board: an index of tables and charts, and the report of each bundle."""

from evenhand.findings.board import Board, BoardTable
from evenhand.views import charts, numbers
from evenhand.views.blocks import Block, Figure, Grid, Heading, Line

_RANKS = (
    "A rank is printed only if the system is told apart from all others in the table: the 95% CIs, "
    "widened for the number of systems (Bonferroni), do not overlap. Missing answers count at "
    "their worst."
)


def page(board: Board) -> list[Block]:
    """Return the blocks of the index."""
    blocks: list[Block] = [Heading(board.title, 1)]
    blocks.append(Line("Every number was recomputed from the runs in a verified bundle."))
    drawn = charts.charts_of(board) if charts.installed() else ()
    by_name = {chart.name: chart for chart in drawn}
    for number, table in enumerate(board.tables):
        blocks.append(Heading(f"{table.instrument.title}: {table.measure.label}"))
        about = f"{table.instrument.title} {table.version}, {table.items:,} items"
        blocks += [Line(about, "dim"), _grid(table)]
        if chart := by_name.get(f"board_{number}"):
            blocks.append(Figure(chart.title, chart.alt, chart.svg))
    if not board.tables:
        blocks.append(Line("No bundle holds a finished run with a primary metric.", "open"))
    bundles = Grid(
        ("SHA-256 of evidence.json", "bundle"),
        tuple((pack.sha256, pack.title) for pack in board.packs),
        links=tuple(pack.page for pack in board.packs),
    )
    return [*blocks, Heading("Bundles"), bundles, Line(_RANKS, "dim")]


def _grid(table: BoardTable) -> Grid:
    rows = tuple(
        (
            "not told apart" if standing.rank is None else str(standing.rank),
            standing.system,
            numbers.value(standing.estimate.value, table.measure),
            numbers.interval(standing.estimate, table.measure),
            f"{standing.estimate.n:,}",
            standing.pack.title,
        )
        for standing in table.standings
    )
    pages = tuple(standing.pack.page for standing in table.standings)
    return Grid(("rank", "system", "score", "95% CI", "n", "bundle"), rows, links=pages)
