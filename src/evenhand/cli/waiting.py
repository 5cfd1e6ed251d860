"""A server runs until somebody ends it."""

import signal
import threading


def wait_for_signal() -> None:
    """Wait for Ctrl-C, or for whoever asks the process to end."""
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    while not ended.wait(1.0):
        pass
