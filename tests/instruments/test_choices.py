"""An unknown name is answered with the closest one and with all that there are."""

import pytest

from evenhand.core.errors import UserError, choices_for
from evenhand.instruments import instrument_named


def test_a_mistyped_name_gets_the_closest_one_and_a_strange_one_the_list_alone() -> None:
    assert choices_for("stardtx", ["cot", "stardtox"]) == (
        "Did you mean 'stardtox'? Available: cot, stardtox"
    )
    assert choices_for("zzz", ["cot", "stardtox"]) == "Available: cot, stardtox"
    assert choices_for("zzz", []) == "Available: none"


def test_a_mistyped_benchmark_is_named_beside_its_neighbor() -> None:
    with pytest.raises(UserError) as raised:
        instrument_named("bqq")
    assert "'bbq'?" in str(raised.value)
