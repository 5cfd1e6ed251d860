"""Names of models and methods as names of folders."""

from hypothesis import given
from hypothesis import strategies as st

from evenhand.runs.store.folder import as_file_name


@given(st.text(max_size=400))
def test_any_name_stays_within_its_folder_and_fits_a_disk(name: str) -> None:
    found = as_file_name(name)
    assert found
    assert "/" not in found
    assert found not in (".", "..")
    assert len(found.encode()) < 128


def test_long_names_that_differ_at_their_end_have_folders_of_their_own() -> None:
    assert as_file_name("x" * 300 + "a") != as_file_name("x" * 300 + "b")
    assert as_file_name("org/Model 1.5B") == "org-Model-1.5B"
    assert len(as_file_name("x" * 300 + "\udcff")) < 128  # a name that is not UTF-8
