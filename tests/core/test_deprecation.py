"""The end of a public name is announced at the line that uses it."""

import types
import warnings

import pytest

from evenhand.core.deprecation import warn_deprecated


def _old_function() -> types.ModuleType:
    """A module of evenhand whose function goes, called through another one."""
    module = types.ModuleType("evenhand.old")
    code = (
        "from evenhand.core.deprecation import warn_deprecated\n"
        "def inner():\n"
        "    warn_deprecated('evenhand.old', instead='evenhand.new', until='0.5')\n"
        "def old():\n"
        "    inner()\n"
    )
    exec(compile(code, "old.py", "exec"), module.__dict__)
    return module


def test_the_warning_names_both_forms_and_the_release_and_stands_at_the_users_line() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _old_function().old()
    [warning] = caught
    assert warning.category is DeprecationWarning
    assert warning.filename == __file__
    for name in ("evenhand.old", "evenhand.new", "0.5"):
        assert name in str(warning.message)


def test_a_run_that_takes_warnings_for_errors_stops_at_a_name_that_goes() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DeprecationWarning, match=r"x goes in evenhand 1\.0\. Use y instead\."):
            warn_deprecated("x", instead="y", until="1.0")
