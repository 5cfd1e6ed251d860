"""The retry rules say when to ask again, and how long to wait first."""

import email.utils
import math
import random
import time
from collections.abc import Mapping
from datetime import UTC

MAX_ATTEMPTS = 8  # at a 30 % fault rate 8 attempts lose 0.05 % of eight-call items, 3 lose 20 %
_FIRST_PAUSE = 0.25
_LONGEST_PAUSE = 8.0

# Statuses that may pass. 529 is what some providers send for "overloaded".
RETRY_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
OVERLOAD_STATUSES = frozenset({429, 503, 529})


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Read how many seconds the server asked us to wait; None if it did not say so readably.

    Reads `retry-after-ms`, and `retry-after` as seconds or as an HTTP date. A time in the past is
    a wait of 0.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return max(0.0, milliseconds / 1000)
    raw = headers.get("retry-after")
    if raw is None:
        return None
    seconds = _number(raw)
    if seconds is not None:
        return max(0.0, seconds)
    try:
        moment = email.utils.parsedate_to_datetime(raw)
        if moment.tzinfo is None:  # HTTP dates are in GMT, also where they do not say so
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, moment.timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def pause_before(attempt: int, asked_for: float | None, rng: random.Random) -> float:
    """Compute the pause: full-jitter exponential back-off, never shorter than what the server asked
    for."""
    ceiling = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** (attempt - 1))
    backoff = rng.uniform(0.0, ceiling)
    return backoff if asked_for is None else asked_for + backoff * 0.1


def _number(raw: str | None) -> float | None:
    try:
        value = float(raw) if raw is not None else None
    except ValueError:
        return None
    return None if value is None or math.isnan(value) else value  # inf: 400 digits, a long wait
