"""`evenhand gateway top`: what is on the screen, for machines, and when nobody answers."""

import asyncio
import io
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from rich.console import Console
from typer.testing import CliRunner, Result

from evenhand.cli.app import app
from evenhand.cli.gateway_top import _GatewayDisplay, _watch
from evenhand.core.errors import UserError
from evenhand.gateway.evidence import EvidenceWriter
from evenhand.gateway.keys import new_key
from evenhand.gateway.metrics import Metrics
from evenhand.gateway.policy import Policy, Tenant
from evenhand.gateway.top import (
    GatewayFigures,
    RepairFolders,
    SnapshotHistory,
    each_repair,
    looked,
    read,
)
from evenhand.gateway.top_page import page
from evenhand.gateway.verdicts import Action
from evenhand.views import terminal
from tests.errors import assert_names, raises_naming

from .exchanges import AFTER, BEFORE, NOON, exchange, kept, passed, refused, repaired
from .redis_server import new_server
from .speaking import Speaker, free_port, gateway, up, upstream
from .test_looks import PRICES

EVENHAND = str(Path(sys.executable).with_name("evenhand"))


@asynccontextmanager
async def serving(text: Callable[[], bytes]) -> AsyncIterator[str]:
    """Serve figures; give the address."""

    async def figures(request: web.Request) -> web.Response:
        return web.Response(body=text(), content_type="text/plain")

    served = web.Application()
    served.router.add_get("/metrics", figures)
    runner = web.AppRunner(served, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def top(*words: str) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, app, ["gateway", "top", *words])


def counted() -> Metrics:
    metrics = Metrics(("team-hr",), ("/chat/completions",))
    for _ in range(3):
        metrics.count(exchange("x", passed()))
    metrics.count(exchange("x", repaired()))
    return metrics


def shown(seen: GatewayFigures, columns: int, colours: bool = False) -> str:
    console = Console(
        width=columns,
        record=True,
        color_system="standard",
        force_terminal=True,
        file=io.StringIO(),
    )
    console.print(terminal.render(page("http://gateway", seen, each_repair(seen, PRICES), None)))
    return console.export_text(styles=colours)


async def test_one_look_for_machines_is_one_object() -> None:
    async with serving(counted().text) as address:
        found = await top(f"{address}/v1", "--once", "--json")
    assert found.exit_code == 0, found.output
    told = json.loads(found.output)
    assert told["actions"] == {"passed": 3, "repaired": 1, "flagged": 0, "not_run": 0, "blocked": 0}
    assert told["since_start"] is True
    assert told["latency"]["agents"]["p50"] == {"value": 1.75, "low": 1.0, "high": 2.5}
    assert told["each_repair"]["cost"] is None
    assert (told["each_repair"]["calls"], told["each_repair"]["tokens"]) == (2, 26)


async def test_one_look_for_a_person_names_its_prices_or_that_there_are_none(
    tmp_path: Path,
) -> None:
    prices = tmp_path / "prices.toml"
    price = 'currency = "EUR"\n[models.judge-model]\n'
    prices.write_text(f"{price}per_million_prompt_tokens = 10\nper_million_completion_tokens = 50")
    async with serving(counted().text) as address:
        plain = await top(address, "--once")
        priced = await top(address, "--once", "--prices", str(prices))
    assert "since start" in plain.output
    assert "not_run   0          0.0%" in plain.output
    assert_names(plain.output, "2.0 calls", "26 tokens", "--prices FILE")
    assert_names(priced.output, "2.0 calls", "26 tokens", "0.000500 EUR")  # 20 in, 6 out


@pytest.mark.parametrize("columns", [80, 120])
def test_the_screen_fits_its_columns(columns: int) -> None:
    seen = SnapshotHistory().figures([read(counted().text().decode(), 0.0)])
    lines = shown(seen, columns).splitlines()
    assert max(map(len, lines)) <= columns
    assert len(lines) < 40
    assert any(line.startswith("not_run") for line in lines)


async def test_what_was_lost_is_red_and_what_was_not_is_not(tmp_path: Path) -> None:
    evidence = EvidenceWriter(tmp_path, {"team-hr": kept()}, waiting=1)
    metrics = counted()
    metrics.watch("evidence", evidence)
    fine = shown(SnapshotHistory().figures([read(metrics.text().decode(), 0.0)]), 80, colours=True)
    assert "\x1b[1;31m" not in fine
    assert "evidence: 0 lost" in fine
    evidence.record(exchange("a", passed()))
    evidence.record(exchange("b", refused(Action.NOT_RUN, "overloaded")))  # no room
    bad = shown(SnapshotHistory().figures([read(metrics.text().decode(), 0.0)]), 80, colours=True)
    _, *red = bad.split("\x1b[1;31m")
    lost = [part.partition("\x1b[0m")[0] for part in red if "lost" in part]
    assert_names(lost[0], "evidence", "lost 1", "1 not_run")
    assert "evidence: 0 lost" not in bad


async def test_nobody_there_is_said_in_words_that_end_in_the_next_command() -> None:
    port = free_port()
    found = await top(f"http://127.0.0.1:{port}", "--once")
    assert isinstance(found.exception, UserError)
    command = f"evenhand gateway serve --upstream URL --port {port}"
    assert str(found.exception).splitlines()[-1] == command


async def test_only_an_operator_sees_figures_and_is_told_how() -> None:
    _, tenant = new_key()
    policy = Policy(tenants={"hr": Tenant(keys=[tenant])})
    async with upstream(Speaker()) as address, gateway(address, policy) as served:
        found = await top(served.url, "--once")
    assert isinstance(found.exception, UserError)
    root = served.url.removesuffix("/v1")
    assert str(found.exception).splitlines()[-1] == (f"evenhand gateway top {root} --key-env NAME")


async def test_the_operators_key_comes_from_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    key, hashed = new_key()
    policy = Policy(operators=[hashed])
    monkeypatch.setenv("OPERATOR_KEY", key)
    async with upstream(Speaker()) as address, gateway(address, policy) as served:
        opened = await top(served.url, "--once", "--key-env", "OPERATOR_KEY")
        unset = await top(served.url, "--once", "--key-env", "NOT_SET_ANYWHERE")
    assert_names(str(opened.exception), "metrics", "gateway")  # those of this one are empty
    assert_names(str(unset.exception), "--key-env", "NOT_SET_ANYWHERE")


async def test_a_gateway_that_stops_answering_is_said_and_looked_for_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    metrics = counted()
    texts = iter([metrics.text(), b"gone"])
    async with serving(lambda: next(texts, metrics.text())) as address:
        shown = _GatewayDisplay(address, None, None, as_json=True)
        watching = asyncio.create_task(_watch(address, None, shown, 0.01))
        printed = ""
        while printed.count('"gateway"') < 3 and not watching.done():
            await asyncio.sleep(0.01)
            printed += capsys.readouterr().out
        watching.cancel()
    decoder = json.JSONDecoder()
    told: list[dict[str, object]] = []
    while printed.strip() and len(told) < 3:
        one, end = decoder.raw_decode(printed.lstrip())
        told.append(one)
        printed = printed.lstrip()[end:]
    first, failed, again = told
    assert first["since_start"] is True
    assert_names(str(failed["error"]), "metrics", "gateway")
    assert (again["since_start"], again["requests"]) == (False, 0)


# -- the last repairs --------------------------------------------------------------------------


async def written(folder: Path, content: str) -> None:
    evidence = EvidenceWriter(folder, {"team-hr": kept(content)}, clock=lambda: NOON)
    await evidence.start()
    for number in range(5):
        evidence.record(exchange(f"r{number}", repaired()))
        evidence.record(exchange(f"p{number}", passed()))
    evidence.record(exchange("b", refused(Action.BLOCKED, "unrepaired")))
    await evidence.close()


async def test_the_last_repairs_are_shown_word_by_word(tmp_path: Path) -> None:
    await written(tmp_path, "on")
    found = RepairFolders(tmp_path).last()
    assert [one.id for one in found.repairs] == ["r2-0", "r3-0", "r4-0"]
    assert {(one.before, one.after, one.tenant) for one in found.repairs} == {
        (BEFORE, AFTER, "team-hr")
    }
    async with serving(counted().text) as address:
        shown = await top(address, "--once", "--evidence", str(tmp_path))
    assert f"[-{BEFORE}-] {{+{AFTER}+}}" in shown.output


async def test_evidence_without_words_says_so(tmp_path: Path) -> None:
    await written(tmp_path, "off")
    found = RepairFolders(tmp_path).last()
    assert (found.repairs, found.without_words) == ((), 1)
    async with serving(counted().text) as address:
        shown = await top(address, "--once", "--evidence", str(tmp_path))
    assert_names(shown.output, "1 folders", 'content = "on"')


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with raises_naming(UserError, "--evidence", tmp_path / "none"):
        RepairFolders(tmp_path / "none")


# -- a gateway of several processes ------------------------------------------------------------


async def test_all_processes_of_a_gateway_are_met(tmp_path: Path) -> None:
    port, store = free_port(), new_server(tmp_path)
    closing = aiohttp.TCPConnector(force_close=True)
    async with (
        upstream(Speaker(texts=("Paris.",))) as address,
        aiohttp.ClientSession(connector=closing) as session,
    ):
        process = await asyncio.create_subprocess_exec(
            EVENHAND, "gateway", "--upstream", address, "--port", str(port), "--replicas", "2",
            "--quotas", store.url, cwd=tmp_path,
            stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            await up(port)
            body = {"model": "up", "messages": [{"role": "user", "content": "Where?"}]}
            root = f"http://127.0.0.1:{port}"

            async def ask() -> None:
                async with session.post(f"{root}/v1/chat/completions", json=body) as got:
                    assert got.headers["evenhand-action"] == "passed"

            await asyncio.gather(*(ask() for _ in range(20)))
            looks = await looked(session, root)
            while len(looks) < 2:  # the test's own time-out is the bar
                looks = await looked(session, root)
            assert SnapshotHistory().figures(looks).requests == 20
        finally:
            process.send_signal(signal.SIGTERM)
            await process.wait()
            store.kill()
