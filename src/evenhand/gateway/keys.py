"""Who may use the gateway: a tenant's keys, of which the policy file holds only the hashes.

Our choice: one round of SHA-256. A slow hash protects words that people think of; a key of 32
random bytes cannot be guessed, whatever the hash costs, and every request has to be hashed.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping, Sequence

from evenhand.core.errors import UserError

_RANDOM = 32  # bytes
_SHORTEST = 43  # characters of 32 bytes in base64: a shorter key is refused, even if hashed
_LONGEST = 512  # our choice: a header as long as the server lets through is not worth hashing
_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_BEARER = re.compile(rb"bearer +([A-Za-z0-9._~+/=-]{%d,%d})" % (_SHORTEST, _LONGEST), re.IGNORECASE)
_NEXT = "Make a key, and the line for the policy file, with: evenhand gateway key"


def new_key() -> tuple[str, str]:
    """Make a key, which is shown once to its owner, and its hash, which the policy file holds."""
    key = f"evenhand-{secrets.token_urlsafe(_RANDOM)}"
    return key, f"sha256:{_digest(key.encode()).hex()}"


class Keyring:
    """The hashes of all tenants' keys.

    >>> Keyring({"team-hr": ["sha256:" + "0" * 64]}).tenant_of("Bearer guessed") is None
    True
    """

    def __init__(self, tenants: Mapping[str, Sequence[str]]) -> None:
        owners: dict[bytes, str] = {}
        for tenant, hashes in tenants.items():
            for written in [hashes] if isinstance(hashes, str) else hashes:
                digest = _read(tenant, written)
                if digest in owners:
                    raise UserError(
                        f"tenant {tenant!r} has a key that tenant {owners[digest]!r} has already; "
                        f"each key is for one tenant, and stands there once. {_NEXT}"
                    )
                owners[digest] = tenant
        self._owners = tuple(owners.items())

    def __repr__(self) -> str:
        return f"Keyring({len(self._owners)} keys)"

    def tenant_of(self, authorization: str | bytes | None) -> str | None:
        """Name the tenant whose key an `Authorization` header holds; None whatever else it is.

        Every known hash is compared, each in constant time, so that the time says nothing about
        how near a guess was.
        """
        key = _key_in(authorization)
        if key is None:
            return None
        digest, owner = _digest(key), None
        for stored, tenant in self._owners:
            if hmac.compare_digest(stored, digest):
                owner = tenant
        return owner


def _key_in(authorization: object) -> bytes | None:
    if isinstance(authorization, str):
        # What ASCII cannot say becomes "?", which no key holds.
        authorization = authorization.encode("ascii", "replace")
    if not isinstance(authorization, bytes):
        return None
    read = _BEARER.fullmatch(authorization)
    return read[1] if read else None


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()


def _read(tenant: str, written: object) -> bytes:
    """Read a hash of the policy file. What stands there may be a key: it is not quoted."""
    if not isinstance(written, str) or not _HASH.fullmatch(written):
        raise UserError(
            f"tenant {tenant!r} has a key that is not written as its hash (sha256: and 64 "
            f"lower-case hexadecimal digits); a key itself must not stand in a file. {_NEXT}"
        )
    return bytes.fromhex(written.removeprefix("sha256:"))
