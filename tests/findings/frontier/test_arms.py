"""The list of methods as it is written on a command line."""

from evenhand.core import registry
from evenhand.core.errors import UserError
from evenhand.experiments.frontiers import chosen
from evenhand.instruments.bbq.instrument import Bbq
from evenhand.methods import StarDTox, settings
from tests.errors import raises_naming


def test_the_comparators_are_always_there_and_nothing_is_run_twice() -> None:
    names = [one.name for one in chosen(["cot", "fairness", "cot"], 8, Bbq())]
    assert names == ["default", "fairness", "self_consistency", "cot"]


def test_without_a_list_every_usual_method_is_run_and_no_dummy() -> None:
    found = chosen((), 8, Bbq())
    names = {one.name.partition(":")[0] for one in found}
    assert names <= {*registry.names("methods")}
    assert {"stardtox", "cot", "mabrf", "detect_first"} <= names
    assert not names & {"stored", "random", "always_unknown", "self_debias_gen"}
    assert "stardtox:critique=empty" in {one.name for one in found}


def test_the_word_usual_stands_for_all_usual_methods_beside_others() -> None:
    usual = [one.name for one in chosen((), 8, Bbq())]
    more = [one.name for one in chosen(["usual", "rotated"], 8, Bbq())]
    assert more == [*usual, "rotated"]


def test_settings_are_joined_by_a_plus_and_those_set_by_hand_stay() -> None:
    (one,) = chosen(["stardtox:max_iterations=1+support_above=0.5"], 8, Bbq())[3:]
    assert one.method == StarDTox(max_iterations=1, support_above=0.5)
    assert one.folder == "stardtox-max_iterations-1-support_above-0.5"


def test_what_is_not_set_by_hand_is_as_large_as_the_calls_allow() -> None:
    vote, team = (one.method for one in chosen(["stardtox"], 6, Bbq())[2:])
    assert settings(vote) == {"calls": 7}  # a sixth vote could only make a tie
    assert team == StarDTox(max_iterations=2)


def test_who_borrows_critiques_comes_after_the_lender() -> None:
    *_, lender, borrower = chosen(["stardtox:critique=other", "stardtox"], 8, Bbq())
    assert (lender.name, borrower.lender) == ("stardtox", "stardtox")


def test_two_methods_never_share_a_folder() -> None:
    with raises_naming(UserError, "'stardtox-max_iterations-1'"):
        chosen(["stardtox:max_iterations=1", "stardtox:max_iterations= 1"], 8, Bbq())
