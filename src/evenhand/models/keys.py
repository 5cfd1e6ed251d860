"""A key goes to the place that it was given for, and is removed from what comes back from there."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from evenhand.core.errors import UserError

TRUSTED = "EVENHAND_TRUSTED_HOSTS"  # the variable with the hosts that keys may go to
# The variables with the keys of services, and the origin of each.
SERVICES = {
    "OPENAI_API_KEY": "https://api.openai.com:443",
    "PERSPECTIVE_API_KEY": "https://commentanalyzer.googleapis.com:443",
    "BRAVE_API_KEY": "https://api.search.brave.com:443",
}
SHORTEST = 8  # our choice: "EMPTY" and "none" are words that a text may hold, and no secrets
_PORTS = {"http": 80, "https": 443}
# How JSON, a URL and HTML write a sign. JSON that quotes JSON doubles its backslashes.
_ESCAPE = re.compile(
    r"\\+u00([2-7][0-9a-f])|%([2-7][0-9a-f])|&#x0{0,6}([2-7][0-9a-f]);|&#0{0,6}(\d{2,3});|\\+",
    re.IGNORECASE,
)
_GONE = "[redacted]"
_READ = 20_000  # our choice, in characters: the rest of a longer error is not searched
_WITHIN = 3  # our choice: a URL in a URL in an error's JSON, each with its own escapes
_WIDEST = 6  # characters of an escape, as \u0041


@dataclass(frozen=True, slots=True)
class KeyPlace:
    """The environment variable that holds a key, and the one origin that the key is sent to."""

    variable: str
    origin: str


def key_place(url: str, explicit: str | None, usual: Mapping[str, str]) -> KeyPlace | None:
    """Find the variable that holds the key for an address. A key that was given for one host is
    sent to no other.

    Args:
        url: The address that will be called.
        explicit: The environment variable that the user named for this address; None if none was
            named.
        usual: The default variable of each known origin.

    Returns:
        The variable and the origin that may receive its key; None if no variable is known.
    """
    where = origin(url)
    variable = explicit or usual.get(where)
    if not variable or not (where or explicit):
        return None
    return KeyPlace(variable, where or "an address of its own")  # that of a package's scorer


def check_places(
    places: Mapping[str, KeyPlace],
    config_file: str | None,
    address: str,
    environment: Mapping[str, str],
) -> None:
    """Refuse to send a key where the user did not say that it goes. This machine is always allowed.

    Args:
        places: Where keys go, by what they are for.
        config_file: The file that says so, if it was found in the current folder; None if the user
            named it, whose hosts are then theirs.
        address: The address that the user said on the spot; empty if none.
        environment: Holds the keys, and the hosts that are trusted.

    Raises:
        UserError: The key of a service would go to another host, or a key that is set to a host
            that nobody but the file has named.
    """
    hosts = {host.strip().lower() for host in environment.get(TRUSTED, "").split(",")}
    for what, destination in places.items():
        service_origin = SERVICES.get(destination.variable)
        host = urlsplit(destination.origin).hostname or ""
        if destination.origin == service_origin or _is_here(host):
            continue
        if service_origin is not None:
            raise UserError(
                f"{what}: {destination.variable} is for {service_origin} alone, and would go to "
                f"{destination.origin}. Put the key for that host into a variable of another name, "
                "and name that one as api_key_env"
            )
        trusted = {destination.origin, host} & {origin(address), *hosts}
        if config_file and host and environment.get(destination.variable) and not trusted:
            raise UserError(
                f"{config_file} of the current folder would send {destination.variable} to "
                f"{destination.origin} for {what}, and a folder may come from somebody else. If "
                f"you trust that host, run the command again with --config {config_file}, or set "
                f"{TRUSTED}={host}"
            )


def check_hosts(
    urls: Iterable[str], config_file: str, address: str, environment: Mapping[str, str]
) -> None:
    """Refuse an address that a found file names for a library, which may send there what it finds:
    cloud credentials are not keys that we could withhold.

    Args:
        urls: The addresses.
        config_file: The file, which was found in the current folder.
        address: The address that the user said on the spot; empty if none.
        environment: Holds the hosts that are trusted.

    Raises:
        UserError: A host is not of this machine, and nobody but the file has named it.
    """
    trusted = {host.strip().lower() for host in environment.get(TRUSTED, "").split(",")}
    for url in urls:
        host = urlsplit(url).hostname or ""
        if not (_is_here(host) or host in trusted or origin(url) in {origin(address), *trusted}):
            raise UserError(
                f"{config_file} of the current folder names {host} as the address of a library's "
                "model, and a folder may come from somebody else. If you trust that host, run the "
                f"command again with --config {config_file}, or set {TRUSTED}={host}"
            )


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def origin(url: str) -> str:
    """Scheme, host and port of a URL; empty if it has none."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return ""
    if not host or not port:
        return ""
    authority = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{authority}:{port}"


def sendable(key: str | None) -> str | None:
    """The key, if a header can hold it."""
    if key and not (key.isascii() and key.isprintable()):
        raise UserError("the API key holds a line break or another sign no key can have")
    return key or None


class Redactor:
    """Removes keys from text that came from outside, before it is shown or stored.

    A key as it is makes room for a mark; a text that holds it as JSON (within JSON), a URL or
    HTML write it goes whole. In base64, or cut into pieces, it is not recognized.
    """

    def __init__(self, *keys: str | None) -> None:
        long_enough = {key for key in keys if key is not None and len(key) >= SHORTEST}
        self._keys = tuple(sorted(long_enough, key=len, reverse=True))  # one may begin another
        self._longest = len(self._keys[0]) if self._keys else 0
        special = {letter for key in self._keys for letter in key if not letter.isalnum()}
        self._hints = ("\\u00", "%", "&#", *(f"\\{letter}" for letter in sorted(special)))

    def __repr__(self) -> str:
        return "Redactor()"

    def __bool__(self) -> bool:
        return bool(self._keys)

    def __call__(self, text: str) -> str:
        for key in self._keys:
            text = text.replace(key, _GONE)
        # Looked for only where there is one: reading escapes takes time.
        if self._keys and any(hint in text for hint in self._hints):
            read = text
            for _ in range(_WITHIN):
                read = _ESCAPE.sub(_sign, read)
                if any(key in read for key in self._keys):
                    return _GONE
        return text

    def beginning(self, text: str, most: int) -> str:
        """Return the first characters of a text, without the key. Where only a part of the text is
        read, that part may end in half a key, which is not recognized: its end is not shown."""
        bare = self(text[:_READ])
        if len(text) > _READ:
            bare = bare[: max(0, len(bare) - _WIDEST * self._longest)]
        return bare[:most]


def _sign(escape: re.Match[str]) -> str:
    written = escape[1] or escape[2] or escape[3]
    return chr(int(written, 16)) if written else chr(int(escape[4])) if escape[4] else ""
