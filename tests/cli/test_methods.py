"""`evenhand methods`: every method for itself, with its calls and its settings."""

import json
import re
from typing import Any

import pytest

from evenhand.core import registry
from evenhand.methods import named
from tests.cli.conftest import Run
from tests.errors import assert_names

# self_debias_gen is fitted by its calls on text; the others by those on choices, which stand first.
METHODS = {name: named(name) for name in registry.names("methods")}
FITTED = [k for name, k in METHODS.items() if hasattr(k, "within") and name != "self_debias_gen"]


def test_every_method_has_a_text_of_its_own_and_its_calls(evenhand: Run) -> None:
    listed = json.loads(evenhand("methods", "--json").stdout)
    assert listed.keys() == METHODS.keys()
    assert len({described["about"] for described in listed.values()}) == len(METHODS)
    assert all(described["calls_an_item"][0].isdigit() for described in listed.values())
    assert_names(listed["always_unknown"]["about"], "option", "not known.")
    assert_names(evenhand("methods").stdout, "2 to 6", "3 to 9")


@pytest.mark.parametrize("kind", FITTED)
def test_the_most_calls_that_are_said_are_the_fewest_that_the_defaults_fit_in(
    kind: type[Any],
) -> None:
    said = re.match(r"(?:\d+ to )?(\d+)", kind.calls_an_item)
    assert said is not None
    most = int(said[1])
    assert kind().within(most) == kind()
    assert kind().within(most - 1) != kind()


def test_one_method_is_shown_with_its_defaults_and_a_command(evenhand: Run) -> None:
    shown = evenhand("methods", "stardtox").stdout
    assert re.search(r"harm_below +0\.1 *\n", shown)
    assert_names(shown, "Example", "measure bbq", "--method stardtox")
    assert "always_unknown" not in shown


def test_a_method_that_is_not_there_is_answered_with_those_that_are(evenhand: Run) -> None:
    ran = evenhand("methods", "magic")
    assert ran.returncode == 1
    assert_names(" ".join(ran.stderr.split()), "'magic'", "method", "default, fairness")
