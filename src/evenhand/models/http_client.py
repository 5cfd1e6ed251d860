"""Callers of a service share this: a session of their own, bounded bodies, plain addresses."""

import asyncio
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from evenhand.errors import UserError


class OwnSession:
    """A session that each process opens for itself, at the first request."""

    _session: aiohttp.ClientSession | None = None
    _places: asyncio.Semaphore | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_session": None, "_places": None}

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


async def read_capped(response: aiohttp.ClientResponse, most: int) -> bytes | None:
    """Read the body; None if it is larger than the cap."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > most:
            response.close()
            return None
    return bytes(body)


def plain_url(url: str, *, no_address: str, tells_too_much: str) -> str:
    """Give the address as it may be shown: no password, and no query, where some write their key.
    The words are those of the `UserError` if it is no address, or holds a password."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # reading it is what checks it
        (parts.hostname or "").encode("idna")  # as the resolver does: "a..b" is no name
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UserError(no_address)
    if parts.username is not None or parts.password is not None or parts.query:
        raise UserError(tells_too_much)
    return parts._replace(fragment="").geturl()
