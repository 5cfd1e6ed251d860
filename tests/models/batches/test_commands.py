"""`--batch` as a person meets it: the command, its dry run, its plan, and what is in the record."""

import asyncio
import functools
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evenhand import aio
from evenhand.cli.app import app
from evenhand.cli.codes import BELOW_FLOOR
from evenhand.cli.screen import status_line
from evenhand.core.errors import UserError
from evenhand.core.prices import Price, Prices
from evenhand.models import ScriptedModel
from evenhand.runs.runners import Progress
from evenhand.runs.store import RunReader
from evenhand.runs.store.spending import spent_on
from tests.errors import assert_names, raises_naming

from . import provider
from .conftest import Served
from .provider import KEY, Faults, Provider

PRICES = """[models.logged]
per_million_prompt_tokens = 2.0
per_million_completion_tokens = 10.0
"""
Serving = Callable[[Faults], Served]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    lines = [json.dumps({"prompt": f"Describe neighbour {number}."}) for number in range(8)]
    (tmp_path / "items.jsonl").write_text("\n".join(lines))
    (tmp_path / "prices.toml").write_text(PRICES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENHAND_API_KEY", KEY)
    return tmp_path


def command(*words: str) -> Any:
    return CliRunner().invoke(app, [*words], catch_exceptions=False)


@pytest.mark.parametrize("form", ["openai", "anthropic"])
def test_a_command_asks_in_batches_at_half_the_price(
    form: str, files: Path, serving: Serving
) -> None:
    url = serving(Faults()).url
    config = files / "c.toml"
    config.write_text(
        f'[models.default]\nbase_url = "{url}"\nmodel = "logged"\nbatch = "{form}"\n'
        'api_key_env = "EVENHAND_API_KEY"\n'
    )
    usual = ("mitigate", "items.jsonl", "--config", "c.toml", "--prices", "prices.toml")
    done = command(*usual, "--batch", "--max-cost", "1", "--out", "half")
    assert done.exit_code in (0, BELOW_FLOOR), done.output
    assert RunReader("half").record.settings["batch"] is True
    turns = RunReader("half").turns().collect()
    assert "" not in turns.filter(turns["error"].is_null())["batch"].to_list()
    status = json.loads((files / "half" / "status.json").read_text())
    assert status["batches_ended"] > 1
    assert status["batches"] == []
    done = command(*usual, "--out", "whole")
    assert done.exit_code in (0, BELOW_FLOOR), done.output
    prices = Prices(
        {"logged": Price(per_million_prompt_tokens=2.0, per_million_completion_tokens=10.0)}
    )
    costs = [spent_on(run, prices).cost for run in ("half", "whole")]
    assert costs[0] == pytest.approx(costs[1] / 2)


def test_a_dry_run_and_a_plan_are_priced_as_batches(files: Path) -> None:
    usual = ("mitigate", "items.jsonl", "--model", "logged", "--prices", "prices.toml")
    costs = []
    for more in ((), ("--batch",)):
        done = command(*usual, *more, "--out", "none", "--dry-run", "--json")
        costs.append(json.loads(done.stdout)["runs"][0]["cost"])
    assert [pytest.approx(end / 2) for end in costs[0]] == costs[1]
    assert "batch_factor" in command(*usual, "--batch", "--out", "none", "--dry-run").output
    plans = [
        json.loads(command("plan", "bbq", "--price", "2", *more, "--json").stdout)["money"]
        for more in ((), ("--batch",))
    ]
    assert plans[1] == pytest.approx(plans[0] / 2)


def test_the_price_of_batches_can_be_another() -> None:
    price = Price(
        per_million_prompt_tokens=1.0, per_million_completion_tokens=1.0, batch_factor=0.25
    )
    prices = Prices({"m": price})
    assert prices.cost("m", 1_000_000, 0) == 1.0
    assert prices.cost("m", 1_000_000, 0, batched=True) == 0.25


def test_what_has_no_batches_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    model = ScriptedModel(lambda _: "A kind answer.")
    with raises_naming(UserError, "--batch"):
        asyncio.run(
            aio.mitigate(["Describe a nurse."], model=model, out=tmp_path / "run", batch=True)
        )
    assert model.requests == 0


def test_progress_says_the_counts_of_the_provider() -> None:
    progress = Progress(planned=4)
    progress.batches_ended = 2
    progress.batches = [
        provider_state(id="batch_7", status="in_progress", total=40, completed=12, failed=1)
    ]
    assert_names(status_line(progress.snapshot()), "batch_7", "12 of 40", "2 batches ended")


def provider_state(**fields: Any) -> Any:
    from evenhand.models.batch import BatchState  # noqa: PLC0415

    return BatchState(**fields)


# -- the SDKs of the providers, as clients of the server of the tests --------------------------


@contextmanager
def in_thread(folder: Path) -> Iterator[str]:
    """The server, for clients that block."""
    loop = asyncio.new_event_loop()
    runner, url = loop.run_until_complete(provider.start(Provider(str(folder / "paid"))))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield url
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.run_until_complete(runner.cleanup())
    loop.close()


def test_openais_own_client_reads_the_server_of_these_tests(tmp_path: Path) -> None:
    """So the form that the queue writes and reads is not our reading of it alone."""
    openai = pytest.importorskip("openai")
    messages = [{"role": "user", "content": "Describe a nurse."}]
    line = {
        "custom_id": "k_1",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {"model": "logged", "messages": messages},
    }
    with in_thread(tmp_path) as url, openai.OpenAI(base_url=url, api_key=KEY) as client:
        sent = client.files.create(file=("a.jsonl", json.dumps(line).encode()), purpose="batch")
        made = client.batches.create(
            input_file_id=sent.id,
            endpoint="/v1/chat/completions",
            completion_window="24h",
            metadata={"evenhand": "k"},
        )
        ended = wait(lambda: client.batches.retrieve(made.id), "completed", "status")
        assert ended.request_counts.completed == 1
        assert [batch.metadata for batch in client.batches.list(limit=100)] == [{"evenhand": "k"}]
        data = json.loads(client.files.content(ended.output_file_id).text)
        assert data["custom_id"] == "k_1"
        assert data["response"]["body"]["choices"][0]["message"]["content"]


def test_anthropics_own_client_reads_the_server_of_these_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    anthropic = pytest.importorskip("anthropic")
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)  # else it is sent beside the key
    params = {
        "model": "logged",
        "max_tokens": 10,
        "messages": [{"role": "user", "content": "Describe a nurse."}],
    }
    with (
        in_thread(tmp_path) as url,
        anthropic.Anthropic(base_url=url.removesuffix("/v1"), api_key=KEY) as client,
    ):
        batches = client.messages.batches
        made = batches.create(requests=[{"custom_id": "k_1", "params": params}])
        wait(functools.partial(batches.retrieve, made.id), "ended", "processing_status")
        assert [batch.id for batch in batches.list(limit=100)] == [made.id]
        (row,) = batches.results(made.id)
        assert row.custom_id == "k_1"
        assert row.result.message.content[-1].text


def wait(look: Callable[[], Any], status: str, name: str) -> Any:
    for _ in range(500):
        if getattr(found := look(), name) == status:
            return found
    raise AssertionError("it did not end")
