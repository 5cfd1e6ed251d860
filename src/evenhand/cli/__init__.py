"""The command line: parse → build → call → show. The only place that prints."""

from evenhand.cli.app import main

__all__ = ["main"]
