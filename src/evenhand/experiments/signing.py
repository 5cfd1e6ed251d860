"""A signature says that the holder of a key has seen a pack as it is: Ed25519, in a separate file,
so that `openssl` can check it too."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from evenhand.core.errors import UserError

INSTALL = "signatures need cryptography: pip install 'evenhand[pack]'"
_MAKE = "openssl genpkey -algorithm ed25519 -out key.pem"
_LARGEST = 65_536  # our choice, in bytes: a key has some hundred


@dataclass(frozen=True, slots=True)
class PackSignature:
    """A signature, and the public key that it can be checked with, as PEM."""

    signature: bytes
    public: bytes


def installed() -> bool:
    """Say whether the extra for signatures is installed."""
    return find_spec("cryptography") is not None


def sign(data: bytes, key: Path) -> PackSignature:
    """Sign bytes with the private key in a PEM file."""
    keys, serialization, wrong = _cryptography()
    pem = _read(key)
    try:
        private = serialization.load_pem_private_key(pem, password=None)
    except TypeError:
        raise UserError(
            f"{key} has a passphrase, which is not supported. Use a key without one."
        ) from None
    except wrong:
        raise UserError(f"{key} holds no private key; one is made by: {_MAKE}") from None
    if not isinstance(private, keys.Ed25519PrivateKey):
        raise UserError(f"{key} is no Ed25519 key; one is made by: {_MAKE}")
    return PackSignature(private.sign(data), _as_pem(private.public_key(), serialization))


def holds(data: bytes, signed: PackSignature) -> bool:
    """Say whether a signature is that of the key over these bytes."""
    keys, serialization, wrong = _cryptography()
    try:
        public = serialization.load_pem_public_key(signed.public)
        if not isinstance(public, keys.Ed25519PublicKey):
            return False
        public.verify(signed.signature, data)
    except wrong:
        return False
    return True


def public_key(path: Path) -> bytes:
    """Read a public key, as `sign` writes it, and refuse a file that holds none or a private
    one."""
    keys, serialization, wrong = _cryptography()
    pem = _read(path)
    try:
        public = serialization.load_pem_public_key(pem)
    except wrong:
        public = None
    if not isinstance(public, keys.Ed25519PublicKey):
        raise UserError(
            f"{path} holds no public Ed25519 key; that of key.pem is written by: "
            "openssl pkey -in key.pem -pubout -out public.pem"
        )
    return _as_pem(public, serialization)


def _as_pem(public: Any, serialization: Any) -> bytes:
    pem: bytes = public.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return pem


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None


def _cryptography() -> tuple[Any, Any, tuple[type[Exception], ...]]:
    """Give the module of keys, that of PEM, and the errors for an invalid key or signature."""
    try:
        from cryptography.exceptions import (  # noqa: PLC0415
            InvalidSignature,
            UnsupportedAlgorithm,
        )
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
        from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415
    except ImportError:
        raise UserError(INSTALL) from None
    return ed25519, serialization, (ValueError, UnsupportedAlgorithm, InvalidSignature)
