"""What servers, headers and prompt files say; and the fence around judged text."""

import time
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from evenhand.models.http_client import retry_after

from . import generators, oracles
from .decisions import Decisions
from .volume import DECISIONS, fuzz

_REQUESTS = tuple(oracles.REQUESTS.values())
_DATES = ("%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %d %H:%M:%S %Y")
_HEADERISH = st.text(
    alphabet=st.sampled_from("0123456789.-+eE_ infatyMonTueGJFebrgMrZ:,٣\x00"), max_size=24
)
_TEMPLATE = st.text(alphabet="{}%#|- abif(\n'.", max_size=30)


@fuzz(9_000, DECISIONS)
def test_a_spoilt_body_is_refused_or_read_as_the_second_reader_reads_it(drawn: bytes) -> bool:
    decide = Decisions(drawn)
    request = decide.pick(_REQUESTS)
    return oracles.wire_body(generators.wire_body(decide), request)


@fuzz(2_000, st.binary(max_size=40))
def test_no_bytes_surprise_the_reader_of_bodies(drawn: bytes) -> bool:
    return oracles.wire_body(b'{"choices":[{"message":{"content":"' + drawn + b'"}}]}')


@fuzz(3_000, DECISIONS, one_sided=True)
def test_an_error_body_or_a_list_of_models_is_words_whatever_it_is(drawn: bytes) -> bool:
    oracles.error_body(drawn)
    return oracles.error_body(generators.error_body(Decisions(drawn)))


@fuzz(3_000, _HEADERISH)
def test_a_retry_after_is_a_wait_of_zero_or_more_or_nothing(drawn: str) -> bool:
    return oracles.wait(drawn) | oracles.wait(drawn, "retry-after-ms")


@fuzz(1_000, st.tuples(st.integers(-(10**6), 10**8), st.sampled_from(_DATES)), one_sided=True)
def test_every_http_date_is_read_as_the_wait_until_then(drawn: tuple[int, str]) -> bool:
    ahead, written = drawn
    moment = datetime.fromtimestamp(int(time.time()), UTC) + timedelta(seconds=ahead)
    seconds = retry_after({"retry-after": moment.strftime(written)})
    assert seconds is not None
    assert abs(seconds - max(ahead, 0)) <= 2
    return True


@fuzz(1_000, st.decimals(-1000, 10**9, places=3), one_sided=True)
def test_a_wait_in_digits_is_taken_at_its_word(drawn: object) -> bool:
    expected = max(0.0, float(str(drawn)))
    assert retry_after({"retry-after": str(drawn)}) == expected
    assert retry_after({"retry-after-ms": str(drawn), "retry-after": "5"}) == expected / 1000
    return True


@fuzz(6_000, DECISIONS)
def test_nothing_inside_the_fence_can_open_or_close_it(drawn: bytes) -> bool:
    return oracles.fence(*generators.judged_text(Decisions(drawn)))


@fuzz(1_500, DECISIONS)
def test_a_spoilt_prompt_file_is_refused_in_words(drawn: bytes) -> bool:
    return oracles.prompt_file(generators.prompt_file(Decisions(drawn)))


@fuzz(1_000, _TEMPLATE)
def test_no_template_surprises_the_reader_of_prompts(drawn: str) -> bool:
    card = "id: x\nversion: 1\nsource: ours\nvariables: {}\n"
    return oracles.prompt_file(f"---\n{card}---\n---\n{drawn}\n")
