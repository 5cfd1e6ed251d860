"""What a folder in an object store promises, operation by operation, against a real server."""

import pickle
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenhand.core.errors import RunLocked, StoreError, UserError
from evenhand.runs.store import object_folder
from evenhand.runs.store.folder import Folder, LocalFolder, open_folder
from evenhand.runs.store.journal import Recovered
from evenhand.runs.store.object_folder import ObjectFolder
from tests.errors import raises_naming
from tests.runs.crash.conftest import until

from .conftest import BUCKET, SECRET, free_port, status, use_endpoint


@pytest.fixture(params=["local", "s3", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    """Every kind keeps the same promises."""
    place = {"local": str(tmp_path), "s3": f"s3://{BUCKET}/{tmp_path.name}"}
    return open_folder(place.get(request.param, f"memory://{tmp_path.name}"))


@pytest.fixture
def remote(tmp_path: Path) -> ObjectFolder:
    return ObjectFolder(f"s3://{BUCKET}/{tmp_path.name}")


def test_a_name_is_created_once_and_keeps_its_first_bytes(folder: Folder) -> None:
    folder.create("ledger/00000000.json", b"first")
    with pytest.raises(FileExistsError):
        folder.create("ledger/00000000.json", b"second")
    assert folder.read("ledger/00000000.json") == b"first"
    assert folder.exists("ledger/00000000.json")
    assert not folder.exists("ledger/00000001.json")


def test_a_listing_is_in_order_fresh_and_of_one_folder_only(folder: Folder) -> None:
    assert folder.names("ledger") == []
    folder.create("ledger/2", b"")
    assert folder.names("ledger") == ["ledger/2"]
    folder.create("ledger/1", b"")
    folder.create("ledger-of-others/3", b"")
    assert folder.names("ledger") == ["ledger/1", "ledger/2"]


def test_what_another_process_has_just_written_is_seen(remote: ObjectFolder, store: Any) -> None:
    """Else a writer would not notice that it was taken over; fsspec keeps listings by default."""
    root = remote.root.removeprefix("s3://")
    remote.create("ledger/1", b"")
    assert remote.names("ledger") == ["ledger/1"]
    store.pipe_file(f"{root}/ledger/2", b"")
    assert remote.names("ledger") == ["ledger/1", "ledger/2"]
    store.rm_file(f"{root}/ledger/1")
    assert not remote.exists("ledger/1")


def test_what_is_replaced_has_the_new_bytes_and_what_is_removed_is_gone(folder: Folder) -> None:
    folder.replace("status.json", b"old")
    folder.replace("status.json", b"new")
    assert folder.read("status.json") == b"new"
    folder.remove("status.json")
    folder.remove("status.json")
    with pytest.raises(FileNotFoundError):
        folder.read("status.json")


def test_an_appended_file_is_read_and_removed_as_one_whatever_it_is_made_of(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_folder, "FLUSH_BYTES", 10)
    other = folder.appender("journal/1-000000.log")
    other.write(b"other\n")
    file = folder.appender("journal/1-000001.log")
    for number in range(25):
        file.write(b"line %02d\n" % number)
        if number % 10 == 0:
            file.flush()
    file.close()
    other.close()
    assert folder.names("journal") == ["journal/1-000000.log", "journal/1-000001.log"]
    assert folder.read("journal/1-000001.log") == b"".join(b"line %02d\n" % n for n in range(25))
    folder.remove("journal/1-000001.log")
    assert folder.names("journal") == ["journal/1-000000.log"]


def test_only_objects_of_our_own_form_belong_to_an_appended_file(
    remote: ObjectFolder, store: Any
) -> None:
    """A store expands a `*` in the names it is to remove."""
    place = remote.root.removeprefix("s3://")
    for end in ("000000", "*", "old", "000000.bak", "0000000"):
        store.pipe_file(f"{place}/journal/00000000-000000.log.{end}", end.encode())
    assert remote.read("journal/00000000-000000.log") == b"000000"
    remote.remove("journal/00000000-000000.log")
    left = [path.rpartition(".log.")[2] for path in store.ls(f"{place}/journal")]
    assert sorted(left) == ["*", "000000.bak", "0000000", "old"]


def test_a_folder_that_has_been_used_travels_to_another_process(folder: Folder) -> None:
    folder.create("run.json", b"{}")
    again = pickle.loads(pickle.dumps(folder))
    assert (again.root, again.read("run.json")) == (folder.root, b"{}")


def test_lines_reach_the_store_within_the_flush_window_without_a_flush(
    remote: ObjectFolder, store: Any
) -> None:
    file = remote.appender("journal/0-000000.log")
    file.write(b"a line\n")
    late = object_folder.FLUSH_SECONDS + 4.0  # on a machine that does other things too
    until(lambda: bool(remote.names("journal")), "the line did not come", late)
    assert remote.read("journal/0-000000.log") == b"a line\n"
    file.close()


def test_a_flush_waits_also_for_what_was_written_during_an_earlier_put(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put: list[bytes] = []

    class SlowStore(object_folder.ObjectFolder):
        def create(self, name: str, data: bytes) -> None:
            time.sleep(0.2)
            put.append(data)

    monkeypatch.setattr(object_folder, "FLUSH_BYTES", 1)
    file = object_folder.ObjectAppender(SlowStore("memory://slow"), "journal/0-000000.log")
    file.write(b"first\n")
    time.sleep(0.1)
    file.write(b"second\n")
    file.flush()
    assert put == [b"first\n", b"second\n"]
    file.close()


def test_a_flush_that_failed_is_told_at_the_next_write_and_at_the_close(
    remote: ObjectFolder, store: Any
) -> None:
    file = remote.appender("journal/0-000000.log")
    store.pipe_file(f"{remote.root.removeprefix('s3://')}/journal/0-000000.log.000000", b"taken")
    file.write(b"a line\n")
    with raises_naming(StoreError, "journal/0-000000.log", "another process"):
        for _ in range(100):
            time.sleep(0.1)
            file.write(b"one more\n")
    with raises_naming(StoreError, "journal/0-000000.log", "another process"):
        file.close()
    assert not any(thread.name == "journal/0-000000.log" for thread in threading.enumerate())


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (lambda: status("running", 5), True),
        (lambda: status("running", 120), False),
        (lambda: status("running", -5), True),  # a clock that is a little ahead
        (lambda: status("running", -86_400), False),  # one that says nothing
        (lambda: status("ended", 5), False),
        (lambda: b'{"state": "running"}', False),
        (lambda: b"garbled", False),
        (lambda: b'{"state": "running", "updated": "2026-01-01T00:00:00", "writer": "x"}', False),
    ],
)
def test_a_writer_that_was_alive_a_minute_ago_keeps_others_out_unless_they_take_over(
    written: Callable[[], bytes], told: bool, remote: ObjectFolder
) -> None:
    found = written()
    remote.replace("status.json", found)
    if told:
        with raises_naming(RunLocked, "process 7", "--steal-lock"):
            remote.lock()
    else:
        remote.lock().release()
    remote.lock(steal_lock=True).release()
    assert remote.read("status.json") == found


def test_a_store_that_overwrites_where_it_should_create_is_refused(
    remote: ObjectFolder, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As some S3-compatible servers do, which do not know If-None-Match."""
    put = type(store)._pipe_file

    async def unconditional(self: Any, path: str, data: bytes, mode: str = "", **rest: Any) -> Any:
        return await put(self, path, data, mode="overwrite", **rest)

    monkeypatch.setattr(type(store), "_pipe_file", unconditional)
    with raises_naming(StoreError, "overwrites", "If-None-Match"):
        remote.lock()
    assert store.find(remote.root.removeprefix("s3://")) == []


def test_a_missing_bucket_is_named_and_not_made(store: Any) -> None:
    folder = ObjectFolder("s3://no-such-bucket/run")
    with raises_naming(StoreError, "s3://no-such-bucket/run", "NoSuchBucket"):
        folder.lock()
    assert not store.exists("no-such-bucket")


def test_a_wrong_endpoint_is_told_within_seconds_and_no_secret_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_endpoint(f"http://127.0.0.1:{free_port()}/{SECRET}", monkeypatch)
    began = time.monotonic()
    with raises_naming(StoreError, "EndpointConnectionError", "AWS_ENDPOINT_URL") as told:
        ObjectFolder(f"s3://{BUCKET}/run").lock()
    assert SECRET not in str(told.value)
    assert time.monotonic() - began < 15


def test_missing_credentials_are_told_with_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    with raises_naming(StoreError, "NoCredentialsError", "AWS_ACCESS_KEY_ID") as told:
        ObjectFolder(f"s3://{BUCKET}/run").lock()
    assert SECRET not in str(told.value)


def test_a_missing_package_is_told_with_its_name() -> None:
    with raises_naming(StoreError, "pip install 'gcsfs'"):
        ObjectFolder("gs://bucket/run").read("run.json")


@pytest.mark.parametrize(
    "location",
    [
        f"s3://key:{SECRET}@bucket/run",
        f"abfs://bucket/run?sig={SECRET}",
        "s3://bucket/run*",
        "simplecache::s3://bucket/run",
        "nonsense://bucket/run",
    ],
)
def test_a_url_with_a_secret_a_pattern_or_an_unknown_scheme_is_refused(location: str) -> None:
    with pytest.raises(UserError) as told:
        open_folder(location).read("run.json")
    assert SECRET not in str(told.value)


def test_a_plain_path_and_a_file_url_are_local_and_a_mangled_url_is_refused(
    tmp_path: Path,
) -> None:
    for location in (str(tmp_path), tmp_path, f"file://{tmp_path}"):
        folder = open_folder(location)
        assert isinstance(folder, LocalFolder)
        assert folder.root == str(tmp_path)
    with raises_naming(UserError, "s3:/bucket/run", "as text"):
        open_folder(Path("s3://bucket/run"))


def test_an_object_that_poses_as_a_journal_keeps_no_run_from_being_resumed(tmp_path: Path) -> None:
    """A journal is in chunks here; a whole one was listed, was not found, and was looked for
    without end."""
    folder = ObjectFolder(f"memory://{tmp_path.name}")
    folder.replace("journal/00000000-000000.log", b"planted")
    folder.replace("journal/00000000-000001.log.000000", b"ours")
    assert folder.names("journal") == ["journal/00000000-000001.log"]
    found = Recovered.read(folder, lambda _: True)
    assert found.files == ["journal/00000000-000001.log"]
