"""One bootstrap for an Envoy in front of a gateway, with comments, to begin from."""

import json
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from jinja2 import Environment, StrictUndefined

from evenhand.core.errors import UserError

_TEMPLATE = Path(__file__).with_name("bootstrap.yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvoySettings:
    """What differs between two bootstraps."""

    upstream: str  # the address of the upstream, without a path
    processor: str = "127.0.0.1:9001"  # where `evenhand gateway serve --ext-proc` listens
    listen: str = "127.0.0.1:10000"
    admin: str = "127.0.0.1:9901"
    certificate: str | None = None  # files of PEM
    private_key: str | None = None
    upstream_key_env: str | None = None
    requests_a_second: int = 1000
    seconds: float = 330.0  # upstream_seconds + deadline of the policy, and some
    open_on_failure: bool = False


def bootstrap(settings: EnvoySettings) -> str:
    """Write a bootstrap.

    Args:
        settings: What is behind Envoy, and where it listens.

    Returns:
        YAML.

    Raises:
        UserError: An address is not one.
    """
    upstream = urlsplit(settings.upstream)
    if upstream.scheme not in ("http", "https") or not upstream.hostname:
        raise UserError("--upstream should look like https://api.example/v1")
    if upstream.path.rstrip("/") not in ("", "/v1"):
        raise UserError("--upstream: Envoy forwards paths as they are, which begin with /v1")
    if bool(settings.certificate) != bool(settings.private_key):
        raise UserError("--certificate and --private-key belong together")
    tls = upstream.scheme == "https"
    template = Environment(undefined=StrictUndefined, autoescape=False).from_string(
        _TEMPLATE.read_text("utf-8"), globals={}
    )
    return template.render(
        admin=_address(settings.admin, "--admin"),
        listen=_address(settings.listen, "--listen"),
        processor=_address(settings.processor, "--processor"),
        upstream=_endpoint(upstream.hostname, upstream.port or (443 if tls else 80)),
        sni=json.dumps(upstream.hostname) if tls else "",
        certificate=json.dumps(settings.certificate) if settings.certificate else "",
        private_key=json.dumps(settings.private_key),
        upstream_key_env=settings.upstream_key_env or "",
        rate=settings.requests_a_second,
        seconds=f"{settings.seconds:g}s",
        failing_open=str(settings.open_on_failure).lower(),
    )


def _address(text: str, option: str) -> str:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise UserError(f"{option} should look like 127.0.0.1:9001")
    return _endpoint(host.strip("[]"), int(port))


def _endpoint(host: str, port: int) -> str:
    return f"{{socket_address: {{address: {json.dumps(host)}, port_value: {port}}}}}"
