"""This appender adds to a file in an object store, which knows no append."""

import threading
from typing import Protocol

from evenhand.core.errors import StoreError

FLUSH_SECONDS = 1.0
FLUSH_BYTES = 1024 * 1024
_MOST_BYTES = 64 * FLUSH_BYTES  # that may wait for a slow store before `write` does


class _Creates(Protocol):
    def create(self, name: str, data: bytes) -> None: ...


class ObjectAppender:
    """An appender that collects lines and, in a thread, puts them as `<name>.<n>`: each second,
    each megabyte.

    An object holds whole writes, so that no line straddles two.
    """

    def __init__(self, folder: _Creates, name: str) -> None:
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
