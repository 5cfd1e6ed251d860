"""Alert rules and dashboard, in Prometheus itself: Debian's package has it and promtool."""

import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from evenhand.gateway.metrics import OWN_REFUSALS
from evenhand.gateway.opening import GatewayRequest
from tests.gateway.speaking import BAD, Speaker, free_port, serving, upstream

ROOT = Path(__file__).parents[2]
FILES = ROOT / "deploy/helm/evenhand-gateway/files"
ALERTS = FILES / "alerts.yaml"
PANELS = json.loads((FILES / "dashboard.json").read_text())["panels"]
pytestmark = pytest.mark.skipif(shutil.which("promtool") is None, reason="no Prometheus here")


def test_every_alert_fires_at_its_planted_outage_and_none_on_a_good_day() -> None:
    run = subprocess.run(
        ["promtool", "test", "rules", ROOT / "tests/gateway/alerts.yaml"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    planted = yaml.safe_load((ROOT / "tests/gateway/alerts.yaml").read_text())["tests"]
    fired = {one["alertname"] for part in planted for one in part["alert_rule_test"]
             if one.get("exp_alerts")}  # fmt: skip
    [group] = yaml.safe_load(ALERTS.read_text())["groups"]
    assert fired == {rule["alert"] for rule in group["rules"] if "alert" in rule}
    refusals = {code for rule in group["rules"] for code in
                re.findall(r"[a-z]+_?[a-z]+(?=[|\"])", rule["expr"].partition("code=~")[2])
                if "record" in rule}  # fmt: skip
    assert refusals == set(OWN_REFUSALS)


@asynccontextmanager
async def prometheus(folder: Path, port: int) -> AsyncIterator[aiohttp.ClientSession]:
    """A Prometheus that scrapes a gateway at this port."""
    mine = free_port()
    config = {
        "global": {"scrape_interval": "200ms", "scrape_timeout": "200ms",
                   "evaluation_interval": "200ms"},
        "rule_files": [str(ALERTS)],
        "scrape_configs": [
            {"job_name": "gateway", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
        ],
    }  # fmt: skip
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
    process = await asyncio.create_subprocess_exec(
        "prometheus", f"--config.file={folder / 'prometheus.yaml'}",
        f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address=127.0.0.1:{mine}",
        stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{mine}") as session:
            yield session
    finally:
        process.terminate()
        await process.wait()


async def asked(session: aiohttp.ClientSession, query: str) -> list[Any]:
    """What Prometheus answers; nothing while it starts."""
    try:
        async with session.get("/api/v1/query", params={"query": query}) as response:
            said = await response.json()
    except aiohttp.ClientError:
        return []
    assert said["status"] == "success", (query, said)
    result: list[Any] = said["data"]["result"]
    return result


async def test_every_query_of_the_dashboard_finds_figures_of_a_gateway(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(
        'screen = "wordlist"\nnot_english = "ignore"\non_failure = "pass_flagged"\n'
    )
    async with upstream(Speaker(texts=(f"All of them are {BAD}.",))) as address:
        request = GatewayRequest(
            upstream=address, policy=str(tmp_path / "policy.toml"), port=free_port(),
            evidence=str(tmp_path / "evidence"),
        )  # fmt: skip
        async with serving(request) as ask, prometheus(tmp_path, request.port) as session:
            async with asyncio.timeout(60):
                seen = "count_over_time(evenhand_gateway_ready[1m]) > 4"
                while not await asked(session, seen):
                    assert await ask.chat() == 200
                    await asyncio.sleep(0.05)
            queries = [
                target["expr"].replace("$__rate_interval", "1m").replace("$instance", ".*")
                for panel in PANELS
                for target in panel["targets"]
            ]
            found = [await asked(session, query) for query in queries]
            async with session.get("/api/v1/rules") as response:
                groups = (await response.json())["data"]["groups"]
    assert [query for query, rows in zip(queries, found, strict=True) if not rows] == []
    assert len(queries) > len(PANELS) == 12
    assert {rule["health"] for group in groups for rule in group["rules"]} == {"ok"}
