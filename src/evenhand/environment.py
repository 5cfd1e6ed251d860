"""Environment variables that have to be read before anything large is imported, and Ray's."""

import os


def base_url() -> str | None:
    """EVENHAND_BASE_URL: the address of the default endpoint, if it is set."""
    return os.environ.get("EVENHAND_BASE_URL") or None


def forget_ray_auth_mode() -> None:
    """Leave it to Ray whether its cluster wants a token; for one of this machine it does."""
    os.environ.pop("RAY_AUTH_MODE", None)


def ray_auth_mode() -> str | None:
    """What Ray has set for the cluster that it started."""
    return os.environ.get("RAY_AUTH_MODE")
