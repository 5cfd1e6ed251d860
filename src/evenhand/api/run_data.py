"""Read run folders, write them in other forms, pack them as evidence, and plan the next one."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from evenhand.api import inputs
from evenhand.api.inputs import Given
from evenhand.api.measuring import measure
from evenhand.core.prices import Prices
from evenhand.experiments import exchange, pack_checks, packs, planning, run_folders
from evenhand.experiments.boards import make_board
from evenhand.experiments.dossiers import runs_in
from evenhand.experiments.exchange import ExportResult, instrument_for
from evenhand.experiments.planning import DesignQuestion, PlanRequest, RatioQuestion
from evenhand.experiments.run_folders import ItemRecord, RunLine, RunStatus
from evenhand.findings.board import Board
from evenhand.findings.designs import Designs
from evenhand.findings.pack_manifest import PackCheck, PackManifest
from evenhand.findings.plan import ItemPrice, Plan, RatioPlan
from evenhand.findings.repeats import Repeats
from evenhand.findings.report import Report
from evenhand.findings.summary import Summary
from evenhand.instruments import Instrument
from evenhand.runs.store import RunReader

_PriceTable = Prices | str | Path | None


async def runs_list(
    folder: str | Path | None = None, *, prices: _PriceTable = None
) -> tuple[RunLine, ...]:
    """List the runs at or below a folder, the newest first.

    Args:
        folder: Where to look. Defaults to `runs` if that is a folder, else the current folder.
        prices: Price table or a TOML file of one, to add what each run cost.

    Returns:
        One line per run. `problem` says why a run cannot be read.

    Raises:
        UserError: If `folder` is not a folder.
    """
    root = inputs.path_of(folder)
    table = inputs.prices_of(prices)
    return tuple(await asyncio.to_thread(run_folders.list_runs, root, table))


async def runs_show(run: str | Path, *, prices: _PriceTable = None) -> Summary:
    """Summarize a run: failures first, then what changed, then what it cost.

    Args:
        run: A run folder, as path or URL.
        prices: Price table or a TOML file of one.

    Returns:
        The counts of the run.
    """
    table = inputs.prices_of(prices)
    return await asyncio.to_thread(run_folders.summary_at, str(run), table)


async def runs_items(
    run: str | Path, item: str, *, position: int | None = None
) -> tuple[ItemRecord, ...]:
    """Read an item of a run with every call, as `evenhand runs show --item` shows it.

    Args:
        run: A run folder, as path or URL.
        item: The id of the item.
        position: The position of the item, where its id is repeated.

    Returns:
        The item; of an exchange of a gateway, each of its texts.

    Raises:
        UserError: If no finished item has this id, or several have it.
    """
    return tuple(await asyncio.to_thread(run_folders.items_called, str(run), item, position))


async def runs_repeats(*settings: Sequence[Given]) -> Repeats:
    """Compute mean and standard deviation over the runs of each setting.

    Args:
        *settings: The runs of each setting, as paths, URLs, runs or reports.

    Returns:
        Each measure of each setting.

    Raises:
        UserError: If a setting is empty, or the runs are of different instruments.
    """
    return await asyncio.to_thread(
        lambda: run_folders.repeated_settings(
            [[inputs.reader_of(run) for run in runs] for runs in settings]
        )
    )


async def runs_status(run: str | Path) -> RunStatus:
    """Read how far a run is that another process runs, and whether that process still writes.

    Args:
        run: A run folder, as path or URL.

    Returns:
        The counters, their age, and whether the process may be gone.

    Raises:
        UserError: If the run has no status that can be read.
    """
    return await asyncio.to_thread(run_folders.run_status, str(run))


async def runs_verify(run: str | Path) -> int:
    """Check every committed byte of a run against its checksum.

    Args:
        run: A run folder, as path or URL.

    Returns:
        The number of parts, all of them intact.

    Raises:
        CorruptRun: If a byte differs.
    """
    return await asyncio.to_thread(lambda: RunReader(run).verify())


async def runs_import(log: str | Path, *, out: str | Path, instrument: str | None = None) -> Report:
    """Score the log of another tool, without a call.

    Args:
        log: A log of Inspect (.eval), or samples of lm-evaluation-harness (samples_*.jsonl).
        out: Run folder, as path or URL.
        instrument: Benchmark that scores it. Defaults to what the log's task is called.

    Returns:
        The report. An item without an answer counts as missing.

    Raises:
        UserError: If the log cannot be read, or nothing scores its task.
    """
    chosen = await asyncio.to_thread(instrument_for, Path(log), instrument)
    return await measure(chosen, options={"answers": Path(log)}, out=out)


async def runs_export(
    run: str | Path,
    out: str | Path,
    *,
    to: str | None = None,
    data: str | Path | None = None,
) -> ExportResult:
    """Write a run as a file that other tools open. Nothing is overwritten.

    Args:
        run: A run folder, as path or URL.
        out: The file to write, or the folder of a format of several files.
        to: The format: `"jsonl"`, `"parquet"`, `"csv"`, `"inspect"`, `"eee"`, `"hf"`,
            `"lm-eval"` or `"messages"`. Defaults to the format that the ending of `out` names.
        data: Dataset directory. Defaults to `EVENHAND_DATA`.

    Returns:
        The files with their sizes, and the number of items not run yet.

    Raises:
        UserError: If the run lacks what the format needs, or a file exists.
    """
    folder = inputs.folder_of(data)
    return await asyncio.to_thread(exchange.export, str(run), Path(out), folder, to)


async def runs_pack_make(
    *runs: str | Path,
    out: str | Path,
    title: str | None = None,
    light: bool = False,
    frameworks: Sequence[str] = packs.FRAMEWORKS,
    sign: str | Path | None = None,
    previous: str | Path | None = None,
    certificates: str | Path | None = None,
    prices: _PriceTable = None,
) -> PackManifest:
    """Pack runs with their report, hashes, model card and a script that repeats every figure.

    Args:
        *runs: Run folders on this disk; the first is what the others are compared with.
        out: The pack, a name.zip.
        title: Title of the pack and its page.
        light: Keep the hashes of the run folders instead of the folders.
        frameworks: Frameworks to write a page for. Defaults to all.
        sign: A PEM file with the private Ed25519 key to sign the pack with.
        previous: The pack before this one.
        certificates: Folder to look for judges' certificates in.
        prices: Price table or a TOML file of one.

    Returns:
        The manifest of the pack.

    Raises:
        UserError: If a run cannot be packed, or the name does not end in .zip.
    """
    wishes = packs.PackOptions(
        title=title,
        light=light,
        frameworks=tuple(frameworks),
        key=inputs.path_of(sign),
        previous=inputs.path_of(previous),
        prices=inputs.prices_of(prices),
        certificates=inputs.path_of(certificates),
    )
    return await asyncio.to_thread(
        lambda: packs.make(
            [run for location in runs for run in runs_in(str(location))], Path(out), wishes
        )
    )


async def runs_pack_verify(
    file: str | Path,
    *,
    key: str | Path | None = None,
    previous: str | Path | None = None,
) -> PackCheck:
    """Check every byte of a pack, and repeat its figures from its runs. Nothing of it is run.

    Args:
        file: The pack.
        key: A PEM file with the public key that the pack should be signed with.
        previous: The pack that should be the one before this one.

    Returns:
        What holds, what differs, and what could not be checked.
    """
    return await asyncio.to_thread(
        lambda: pack_checks.verify(
            Path(file), key=inputs.path_of(key), previous=inputs.path_of(previous)
        )
    )


async def runs_board(*packs: str | Path, out: str | Path, title: str = "Verified results") -> Board:
    """Make a static site from verified evidence bundles.

    Args:
        *packs: The bundles. One that does not hold what it claims is refused.
        out: The folder of the site: a new or an empty one.
        title: The title of the index.

    Returns:
        The board: systems on the same items, each with its interval, and a rank where it is told
        apart from all others.

    Raises:
        UserError: If a bundle cannot be verified, or the folder is not empty.
    """
    paths = [Path(pack) for pack in packs]
    return await asyncio.to_thread(lambda: make_board(paths, Path(out), title=title))


async def plan(
    instrument: Instrument | str,
    *,
    detect: float | None = None,
    power: float = 0.8,
    family: int | None = None,
    pilot: tuple[Sequence[str | Path], Sequence[str | Path]] | None = None,
    measure: str | None = None,
    ratios: RatioQuestion | None = None,
    price: ItemPrice | None = None,
    designs: DesignQuestion | None = None,
) -> Plan | RatioPlan | Designs:
    """Plan a paired comparison before anything is spent.

    Args:
        instrument: Benchmark name or an `Instrument`.
        detect: The smallest change to detect. Defaults to what matters on the benchmark.
        power: The probability to detect it.
        family: How many changes are tested at once.
        pilot: The pilot runs of both sides: how much a change varies is taken from them.
        measure: The measure whose change is to be detected, with `pilot`.
        ratios: Plan an audit of selection ratios instead.
        price: Calls per item, tokens per call, and money per million tokens.
        designs: Compare cheaper designs with the fixed one.

    Returns:
        The plan; with `ratios` that of an audit, with `designs` a table of designs.

    Raises:
        UserError: If a setting would change nothing, or one is missing.
    """
    request = PlanRequest(
        detect=detect,
        power=power,
        family=family,
        pilot=None if pilot is None else ([*map(str, pilot[0])], [*map(str, pilot[1])]),
        measure=measure,
        price=price or ItemPrice(),
        ratios=ratios or RatioQuestion(),
        designs=designs is not None,
        texts=designs or DesignQuestion(),
    )
    chosen = inputs.measuring(instrument)
    return await asyncio.to_thread(planning.planned, chosen, request)
