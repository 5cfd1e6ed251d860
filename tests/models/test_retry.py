"""When to ask again and how long to wait: the pure parts."""

import os
import random
import subprocess
import sys
import time
from email.utils import formatdate

import pytest

from evenhand.models.http_client import (
    MAX_ATTEMPTS,
    OVERLOAD_STATUSES,
    RETRY_STATUSES,
    pause_before,
    retry_after,
)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        pytest.param({}, None, id="not said"),
        pytest.param({"retry-after": "7"}, 7.0, id="seconds"),
        pytest.param({"retry-after": "0.25"}, 0.25, id="part of a second"),
        pytest.param({"retry-after": "-3"}, 0.0, id="before now"),
        pytest.param({"retry-after": "1000000000"}, 1e9, id="thirty years"),
        pytest.param({"retry-after-ms": "1500"}, 1.5, id="milliseconds"),
        pytest.param({"retry-after-ms": "20", "retry-after": "9"}, 0.02, id="the finer one counts"),
        pytest.param(
            {"retry-after-ms": "soon", "retry-after": "9"}, 9.0, id="the readable one counts"
        ),
        pytest.param({"retry-after": "soon"}, None, id="words"),
        pytest.param({"retry-after": "nan"}, None, id="not a number"),
        pytest.param({"retry-after": ""}, None, id="empty"),
        pytest.param({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0, id="a date gone by"),
        pytest.param({"retry-after": "Wed, 99 Oct 2015 07:28:00 GMT"}, None, id="no such day"),
        pytest.param({"retry-after": "Wed, 21 Oct 99999999 07:28:00 GMT"}, None, id="no such year"),
    ],
)
def test_the_wait_that_a_server_asks_for_is_read(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert retry_after(headers) == seconds


def test_a_date_is_the_wait_until_then() -> None:
    then = formatdate(time.time() + 90, usegmt=True)
    assert retry_after({"retry-after": then}) == pytest.approx(90, abs=2)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Tokyo"])
def test_a_date_without_a_zone_is_in_gmt_wherever_we_are(zone: str) -> None:
    """HTTP's third date format names no zone; taken for local time it is hours off."""
    then = time.strftime("%a %b %d %H:%M:%S %Y", time.gmtime(time.time() + 90))
    program = (
        "from evenhand.models.http_client import retry_after\n"
        f"print(retry_after({{'retry-after': {then!r}}}))"
    )
    said = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TZ": zone},
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(said.stdout) == pytest.approx(90, abs=20)


@pytest.mark.parametrize(
    ("attempt", "ceiling"),
    [(1, 0.25), (2, 0.5), (3, 1.0), (4, 2.0), (5, 4.0), (6, 8.0), (7, 8.0), (8, 8.0)],
)
def test_the_pause_is_anywhere_up_to_a_ceiling_that_doubles_to_eight_seconds(
    attempt: int, ceiling: float
) -> None:
    rng = random.Random(1)
    pauses = [pause_before(attempt, None, rng) for _ in range(2_000)]
    assert 0 <= min(pauses) < 0.01 * ceiling
    assert 0.99 * ceiling < max(pauses) <= ceiling
    assert sum(pauses) / len(pauses) == pytest.approx(ceiling / 2, rel=0.05)


def test_the_pause_is_never_shorter_than_asked_for_and_a_tenth_of_the_ceiling_longer_at_most() -> (
    None
):
    rng = random.Random(1)
    pauses = [pause_before(6, 30.0, rng) for _ in range(2_000)]
    assert min(pauses) >= 30.0
    assert max(pauses) <= 30.8  # 30 + 8 / 10


def test_eight_attempts_lose_one_eight_call_item_in_two_thousand_at_thirty_percent_faults() -> None:
    lost = 1 - (1 - 0.3**MAX_ATTEMPTS) ** 8
    assert lost == pytest.approx(0.00052, abs=0.00001)


def test_what_may_pass_is_asked_again_and_what_may_not_is_not() -> None:
    assert {408, 409, 425, 429, 500, 502, 503, 504, 529} == RETRY_STATUSES
    assert OVERLOAD_STATUSES < RETRY_STATUSES
    assert not RETRY_STATUSES & {200, 301, 400, 401, 403, 404, 413, 422, 501}
