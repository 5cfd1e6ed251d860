"""This appender adds to a file in an object store, which knows no append."""

import contextlib
import re
import secrets
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

import orjson

from evenhand.core.errors import StoreError, UserError
from evenhand.runs.store.folder import locked

FLUSH_SECONDS = 1.0
FLUSH_BYTES = 1024 * 1024
_MOST_BYTES = 64 * FLUSH_BYTES  # that may wait for a slow store before `write` does


class ObjectAppender:
    """An appender that collects lines and, in a thread, puts them as `<name>.<n>`: each second,
    each megabyte.

    An object holds whole writes, so that no line straddles two.
    """

    def __init__(self, folder: "ObjectFolder", name: str) -> None:
        self._folder = folder
        self._name = name
        self._waiting: list[bytes] = []
        self._bytes = 0
        self._put = 0  # objects
        self._failed: StoreError | None = None
        self._urgent = False  # somebody waits for it
        self._closed = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def write(self, data: bytes) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._bytes < _MOST_BYTES or self._failed)
            self._refuse_if_failed()
            self._waiting.append(data)
            self._bytes += len(data)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                self._thread.start()
            elif self._bytes >= FLUSH_BYTES:
                self._changed.notify_all()

    def flush(self) -> None:
        with self._changed:
            self._urgent = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._bytes or self._failed)
            self._urgent = False
            self._refuse_if_failed()

    def close(self) -> None:
        try:
            self.flush()
        finally:
            with self._changed:
                self._closed = True
                self._changed.notify_all()
            if self._thread is not None:
                self._thread.join()

    def _refuse_if_failed(self) -> None:
        if self._failed is not None:
            raise self._failed

    def _work(self) -> None:
        while self._failed is None:
            with self._changed:
                self._changed.wait_for(self._due, timeout=FLUSH_SECONDS)
                if self._closed:
                    return
                taken, self._waiting = b"".join(self._waiting), []
            if taken:
                self._put_or_fail(taken)

    def _due(self) -> bool:
        return self._closed or self._bytes >= FLUSH_BYTES or (self._urgent and self._bytes > 0)

    def _put_or_fail(self, taken: bytes) -> None:
        failed = None
        try:
            self._folder.create(f"{self._name}.{self._put:06d}", taken)
        except FileExistsError:
            failed = StoreError(f"{self._name} is being written by another process")
        except StoreError as error:
            failed = error
        except Exception as error:  # a thread that dies without a word would lose every line
            failed = StoreError(f"cannot write {self._name}: {type(error).__name__}")
        with self._changed:
            self._put += 1
            self._bytes -= len(taken)  # not before: until then it is not safe
            self._failed = failed
            self._changed.notify_all()


_PACKAGES = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "abfs": "adlfs"}
_CHUNK = re.compile(r"(\.log)\.\d{6}$")
_ATTEMPTS = 6  # on top of the store client's own: an outage of half a minute passes
_ALIVE_SECONDS = 60  # a writer tells every few seconds that it is there

Found = TypeVar("Found")


class ObjectFolder:
    """A run folder at a URL. It opens no connection before the first use."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if re.search(r"[*?\[\]]|::", url.partition("?")[0]):
            raise UserError("a run's URL is one plain place: without * ? [ ] and without ::")
        if parts.password is not None or parts.query:
            raise UserError(
                "a run's URL is shown and stored, so it must hold no secret: leave out what is "
                "before @ and after ?, and give keys by the environment or the store's own files"
            )
        self.root = url.rstrip("/")
        self._scheme = parts.scheme
        self._opened: tuple[Any, str] | None = None
        self._opening = threading.Lock()
        self._reached = False  # a store that never answered has a wrong address, more likely

    def __reduce__(self) -> tuple[type["ObjectFolder"], tuple[str]]:
        return ObjectFolder, (self.root,)

    def read(self, name: str) -> bytes:
        if not name.endswith(".log"):
            return self._do(name, lambda fs, path: bytes(fs.cat_file(path)))
        chunks = self._chunks(name)
        if not chunks:
            raise FileNotFoundError(name)
        contents = self._do(name, lambda fs, path: fs.cat([f"{path}{end}" for end in chunks]))
        return b"".join(contents[path] for path in sorted(contents))

    def exists(self, name: str) -> bool:
        try:
            self._do(name, lambda fs, path: fs.info(path))
        except FileNotFoundError:
            return False
        return True

    def names(self, folder: str) -> list[str]:
        files = (name for name in self._objects(folder) if not name.endswith(".log"))
        return sorted({_CHUNK.sub(r"\1", name) for name in files})  # a .log is in chunks alone

    def create(self, name: str, data: bytes) -> None:
        """Write by a PUT that fails if there is such an object.

        Its answer may be lost, and a client that then asks again is told that the name is taken: by
        itself. So after any failure the object itself says who was first. This wants that no two
        writers put the same bytes; a ledger entry and a part name the writer they are of.
        """
        for attempt in range(_ATTEMPTS):
            try:
                return self._put_new(name, data)
            except (FileExistsError, _Unanswered) as error:
                failure = str(error)
            stored = self._found(name)
            if stored is not None:
                if stored == data:
                    return None
                raise FileExistsError(name)
            time.sleep(0.2 * 2**attempt)
        raise self._no_answer(name, failure)

    def replace(self, name: str, data: bytes) -> None:
        self._do(name, lambda fs, path: fs.pipe_file(path, data), writing=True)

    def appender(self, name: str) -> ObjectAppender:
        return ObjectAppender(self, name)

    def remove(self, *names: str) -> None:
        paths = []
        for name in names:
            ends = self._chunks(name) if name.endswith(".log") else [""]
            paths += [f"{name}{end}" for end in ends]
        if paths:
            with contextlib.suppress(FileNotFoundError):
                self._do(
                    names[0], lambda fs, _: fs.rm([f"{self._open()[1]}/{path}" for path in paths])
                )

    def lock(self, *, steal_lock: bool = False) -> "ObjectFolder":
        """Tell a second writer early. Nothing is held here: the ledger keeps a second writer
        out."""
        if not steal_lock and (writer := self._live_writer()):
            raise locked(self.root, writer)
        self._refuse_a_store_that_overwrites()
        return self

    def release(self) -> None:
        pass

    def _live_writer(self) -> str | None:
        """Name who wrote `status.json` just now, if it says that the run goes on."""
        try:
            status = orjson.loads(self.read("status.json"))
            age = datetime.now(UTC) - datetime.fromisoformat(status["updated"])
            # Clocks differ by seconds; one that is far ahead says nothing about a writer.
            alive = status["state"] == "running" and abs(age.total_seconds()) < _ALIVE_SECONDS
            return str(status["writer"]) if alive else None
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def _refuse_a_store_that_overwrites(self) -> None:
        """Refuse a store that does not know the condition: some S3-compatible servers overwrite
        without a word."""
        name = f"probe-{secrets.token_hex(8)}"
        self.create(name, b"first")
        try:
            self.create(name, b"second")
        except FileExistsError:
            return
        finally:
            self.remove(name)
        raise StoreError(
            f"{self.root}: this store overwrites an object where it was asked to create a new one "
            "(If-None-Match), so that two processes could write one run. Use a newer version of "
            "the store, or a local folder"
        )

    def _chunks(self, name: str) -> list[str]:
        """List how the names of the objects end that an appended file is made of, in order."""
        return sorted(
            entry.removeprefix(name)
            for entry in self._objects(name.rpartition("/")[0])
            if _CHUNK.sub(r"\1", entry) == name != entry  # any other is not ours to remove
        )

    def _objects(self, folder: str) -> list[str]:
        def listed(fs: Any, path: str) -> list[str]:
            return [entry["name"] for entry in fs.ls(path, detail=True) if entry["type"] == "file"]

        try:
            names = self._do(folder, listed)
        except FileNotFoundError:
            return []
        return sorted(f"{folder}/{name.rpartition('/')[2]}" for name in names)

    def _found(self, name: str) -> bytes | None:
        try:
            return self._do(name, lambda fs, path: bytes(fs.cat_file(path)))
        except FileNotFoundError:
            return None

    def _put_new(self, name: str, data: bytes) -> None:
        fs, root = self._open()
        try:
            fs.pipe_file(f"{root}/{name}", data, mode="create")
        except FileExistsError:
            raise
        except Exception as error:
            self._refuse_what_no_retry_mends(error, writing=True)
            raise _Unanswered(_kind(error)) from None

    def _do(self, name: str, act: Callable[[Any, str], Found], *, writing: bool = False) -> Found:
        """Do what can be done twice. `FileNotFoundError` is raised as it comes, unless the
        operation writes."""
        fs, root = self._open()
        attempt = 0
        while True:
            try:
                fs.invalidate_cache()  # others write here too
                result = act(fs, f"{root}/{name}")
                self._reached = True
                return result
            except Exception as error:
                if isinstance(error, FileNotFoundError) and not writing:
                    self._reached = True
                    raise
                self._refuse_what_no_retry_mends(error, writing=writing)
                failure = _kind(error)
            attempt += 1
            if not self._reached or attempt == _ATTEMPTS:
                raise self._no_answer(name, failure)
            time.sleep(0.1 * 2**attempt)

    def _open(self) -> tuple[Any, str]:
        with self._opening:
            if self._opened is None:
                self._opened = self._connect()
            return self._opened

    def _connect(self) -> tuple[Any, str]:
        package = _PACKAGES.get(self._scheme, "fsspec and the file system's own")
        try:
            import fsspec  # noqa: PLC0415

            fs, path = fsspec.core.url_to_fs(self.root, use_listings_cache=False)
        except ImportError:
            raise StoreError(
                f"{self._scheme}:// needs the package {package}: pip install '{package}'"
            ) from None
        except ValueError:
            raise UserError(f"{self._scheme}:// is not a file system that fsspec knows") from None
        return fs, path.rstrip("/")

    def _refuse_what_no_retry_mends(self, error: Exception, *, writing: bool) -> None:
        """Raise what no retry can mend. The store's own words are not repeated: they may hold keys
        and signatures."""
        kind = _kind(error)
        if "Credential" in kind or "Token" in kind:
            raise StoreError(
                f"{self.root}: no credentials for the object store ({kind}). Set them as its tools "
                "want them, for S3 AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or a profile"
            ) from None
        if isinstance(error, PermissionError):
            raise StoreError(
                f"{self.root}: the object store refused the request ({kind}). Check the "
                "credentials and that they may list, read, write and delete there"
            ) from None
        if writing and isinstance(error, FileNotFoundError):
            raise StoreError(
                f"{self.root}: the bucket does not exist ({kind}). Create it first, or correct the "
                "name; evenhand makes no buckets"
            ) from None

    def _no_answer(self, name: str, kind: str) -> StoreError:
        return StoreError(
            f"{self.root}: the object store gives no answer for {name} ({kind}). Check the network "
            "and the endpoint (for S3 AWS_ENDPOINT_URL); what is committed stays, and the same "
            "command resumes"
        )


class _Unanswered(Exception):
    """A PUT may or may not have been done."""


def _kind(error: Exception) -> str:
    """Give the store's code for what went wrong, or the name of the error."""
    response = getattr(error.__cause__ or error, "response", None)
    code = response.get("Error", {}).get("Code") if isinstance(response, dict) else None
    return str(code or type(error).__name__)
