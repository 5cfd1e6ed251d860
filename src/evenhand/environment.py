"""Environment variables that have to be read before anything large is imported."""

import os


def base_url() -> str | None:
    """EVENHAND_BASE_URL: the address of the default endpoint, if it is set."""
    return os.environ.get("EVENHAND_BASE_URL") or None
