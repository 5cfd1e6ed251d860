"""Caps, pilot and prices as a user has them: the server counts what was really asked."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Run, endpoint, evenhand
from tests.errors import assert_names
from tests.loopback.faulty import Fixed, well
from tests.loopback.process import RemoteServer, in_own_process

__all__ = ["endpoint", "evenhand"]  # the fixtures

ITEMS = 60
PRICES = """
[models.pretended]
per_million_prompt_tokens = 2.5
per_million_completion_tokens = 10.0
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RemoteServer]:
    """One that counts, and beside it prompts and prices."""
    lines = (json.dumps({"prompt": f"Describe {n}."}) for n in range(ITEMS))
    (tmp_path / "p.jsonl").write_text("\n".join(lines))
    (tmp_path / "prices.toml").write_text(PRICES)
    with in_own_process(well) as server:
        yield server


def asked(server: RemoteServer) -> int:
    return sum(server.read().outcomes.values())


def _command(out: str, *more: str) -> list[str]:
    return ["mitigate", "p.jsonl", "--out", out, "--json", *more]


def test_max_calls_is_never_passed_and_a_higher_one_goes_on_without_paying_twice(
    evenhand: Run, server: RemoteServer
) -> None:
    whole = evenhand(*_command("whole"), EVENHAND_BASE_URL=server.url)
    uncapped = asked(server)
    assert uncapped > 200
    capped = evenhand(*_command("run", "--max-calls", "100"), EVENHAND_BASE_URL=server.url)
    assert asked(server) - uncapped == 100
    assert capped.returncode == 3
    said = " ".join(capped.stderr.split())
    assert_names(said, "--max-calls")
    assert "100 calls" in said
    assert json.loads(capped.stdout)["failed"] == 0
    again = evenhand(*_command("run", "--max-calls", "100"), EVENHAND_BASE_URL=server.url)
    assert (again.returncode, asked(server) - uncapped) == (3, 100)
    higher = evenhand(*_command("run", "--max-calls", "9999"), EVENHAND_BASE_URL=server.url)
    assert higher.returncode == 0, higher.stderr
    assert asked(server) == 2 * uncapped
    assert json.loads(higher.stdout)["calls"] == json.loads(whole.stdout)["calls"] == uncapped


def test_max_cost_is_never_passed_and_the_cost_is_that_of_an_uncapped_run(
    evenhand: Run, server: RemoteServer
) -> None:
    prices = ("--prices", "prices.toml")
    whole = evenhand(*_command("whole", *prices), EVENHAND_BASE_URL=server.url)
    cost = json.loads(whole.stdout)["money"]["cost"]
    tokens = json.loads(whole.stdout)
    by_hand = tokens["prompt_tokens"] * 2.5e-6 + tokens["completion_tokens"] * 10e-6
    assert cost == pytest.approx(by_hand)
    cap = cost / 2
    capped = evenhand(
        *_command("run", *prices, "--max-cost", f"{cap}"), EVENHAND_BASE_URL=server.url
    )
    assert capped.returncode == 3
    assert "stopped at --max-cost" in capped.stderr
    spent = json.loads(capped.stdout)["money"]["cost"]
    assert cap * 0.6 < spent <= cap
    done = evenhand(*_command("run", *prices, "--max-cost", "99"), EVENHAND_BASE_URL=server.url)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["money"] == {"cost": pytest.approx(cost), "currency": "USD"}


def test_a_pilot_answers_fifty_says_what_comes_and_the_run_goes_on_from_it(
    evenhand: Run, server: RemoteServer
) -> None:
    command = ("mitigate", "p.jsonl", "--out", "run", "--prices", "prices.toml")
    dry = evenhand(*command, "--pilot", "50", EVENHAND_BASE_URL=server.url)
    assert dry.returncode == 0, dry.stderr
    paid = asked(server)
    shown = dry.stdout
    assert_names(shown, "50 of 60", "in run")
    for word in ("calls", "tokens in", "tokens out", "cost", "time left", "95% CI", "USD"):
        assert word in shown
    following = re.search(r"next: (evenhand mitigate .*) --max-cost [\d.]+", shown)
    assert following is not None
    assert following[1] == "evenhand " + " ".join(command)
    again = evenhand(*command, "--pilot", "50", "--json", EVENHAND_BASE_URL=server.url)
    found = json.loads(again.stdout)
    assert asked(server) == paid  # the same fifty
    assert (found["items"], found["pilot"]["items"]) == (60, 50)
    calls = found["totals"]["calls"]
    assert calls["so_far"] == paid
    assert calls["low"] < calls["expected"] < calls["high"]
    done = evenhand(*command, "--json", EVENHAND_BASE_URL=server.url)
    assert json.loads(done.stdout)["answered"] == ITEMS
    assert asked(server) == json.loads(done.stdout)["calls"]


def test_a_pilot_shows_failures_first(evenhand: Run, server: RemoteServer) -> None:
    with in_own_process(Fixed(b'{"error": {"message": "no"}}', status=403)) as refusing:
        ran = evenhand(
            *("mitigate", "p.jsonl", "--out", "run", "--pilot", "50"),
            EVENHAND_BASE_URL=refusing.url,
        )
    first = ran.stdout.splitlines()[0]
    assert_names(first, "50 of 50", "100%", "93%", "50 model_refused")
    assert "no price file" in ran.stdout


def test_a_pilot_that_meets_its_cap_says_so(evenhand: Run, server: RemoteServer) -> None:
    ran = evenhand(
        *_command("run", "--pilot", "50", "--max-calls", "0"), EVENHAND_BASE_URL=server.url
    )
    assert (ran.returncode, asked(server)) == (3, 0)
    assert "stopped at --max-calls" in ran.stderr


def test_max_cost_without_prices_says_where_to_put_them(
    evenhand: Run, server: RemoteServer, tmp_path: Path
) -> None:
    ran = evenhand("mitigate", "p.jsonl", "--out", "run", "--max-cost", "5")
    assert ran.returncode == 1
    assert_names(ran.stderr, "--prices FILE", "[prices]")
    assert not (tmp_path / "run").exists()


def test_a_model_without_a_price_is_refused_before_anything_is_written(
    evenhand: Run, server: RemoteServer, tmp_path: Path
) -> None:
    (tmp_path / "prices.toml").write_text(PRICES.replace("pretended", "other"))
    ran = evenhand(*_command("run", "--prices", "prices.toml"), EVENHAND_BASE_URL=server.url)
    assert ran.returncode == 1
    assert_names(ran.stderr, "'pretended'", "[models")
    assert not (tmp_path / "run").exists()
    assert asked(server) == 0


def test_a_run_without_prices_says_so_instead_of_a_number(
    evenhand: Run, server: RemoteServer
) -> None:
    ran = evenhand("mitigate", "p.jsonl", "--out", "run", EVENHAND_BASE_URL=server.url)
    assert_names(ran.stdout, "cost: no price")


def test_a_method_that_asks_nobody_needs_no_price_and_no_endpoint(
    evenhand: Run, tmp_path: Path
) -> None:
    (tmp_path / "p.jsonl").write_text('{"prompt": "Describe it.", "answer": "So it is."}\n')
    (tmp_path / "prices.toml").write_text(PRICES)
    ran = evenhand(
        *_command("run", "--method", "stored", "--prices", "prices.toml"),
        *("--max-calls", "0", "--base-url", "http://127.0.0.1:9/v1"),
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["answered"] == 1
