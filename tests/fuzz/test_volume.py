"""Enough examples, and of both kinds."""

import pytest

from . import test_outside, test_replies, test_store, volume

_MODULES = (test_outside, test_replies, test_store)  # importing them plans their tests


def test_at_least_a_hundred_thousand_examples_are_planned() -> None:
    assert sum(volume.PLANNED.values()) >= 100_000


def test_every_example_that_was_planned_was_run() -> None:
    if volume.PLANNED.keys() != volume.RAN.keys():
        pytest.skip("only some of the fuzz tests were chosen")
    assert {n: volume.RAN[n] for n in volume.PLANNED if volume.RAN[n] < volume.PLANNED[n]} == {}


def test_every_fuzz_test_saw_input_that_is_read_and_input_that_is_refused() -> None:
    if not volume.RAN:
        pytest.skip("no fuzz test was chosen")
    for name, ran in volume.RAN.items():
        if name not in volume.ONE_SIDED:
            assert 0 < volume.READ[name] < ran, name
