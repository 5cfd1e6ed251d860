"""Models that another package asks: `litellm:PROVIDER/MODEL`, `inspect:PROVIDER/MODEL`.

The package speaks to the provider. Attempts, waits, the number of calls at once, what is learned of
the model, and how a reply is read are those of our own endpoint: the package's own retries are off.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import aiohttp
import orjson

from evenhand.core import environment, registry
from evenhand.core.errors import EvenhandError, UserError
from evenhand.models import wire
from evenhand.models.base import ModelRequest
from evenhand.models.endpoint import RemoteModel, checked_url
from evenhand.models.keys import Redactor
from evenhand.models.limiter import ResizableSemaphore

MOST_AT_ONCE = 1024  # the ceiling of our own limit, which is the one that holds
# An address that was named gets the key that was named for it, and never one that the package finds
# in the environment for the provider itself.
_NO_KEY = "no-key-was-named"
# Fields that say where a key goes, who answers in the model's place, or how often is asked.
_RESERVED = frozenset(
    "api_base api_key base_url custom_llm_provider headers extra_headers model_list fallbacks "
    "fallback_models drop_params timeout attempt_timeout max_retries num_retries max_connections "
    "adaptive_connections cache caching batch mock_response".split()
)
_NO_TEXT = b'{"error":{"message":"a text is to be continued, and this door takes messages alone"}}'


def library_of(model: str | None) -> str:
    """The package that a model's name gives it to; empty if it is a name at an endpoint. Endpoints
    have names with colons too, such as `qwen3:8b`."""
    library, colon, _ = (model or "").partition(":")
    return library if colon and library in registry.names("models") else ""


def open_by_name(
    name: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    **settings: Any,
) -> RemoteModel:
    """Make the model that a name such as `litellm:anthropic/claude-sonnet-4-5` says.

    Args:
        name: The package, a colon, and the name that the package knows the model by.
        base_url: An address instead of the provider's own. It gets the key that is given here and
            no other.
        api_key: A key, instead of the one that the package takes from the environment.
        settings: As of an `Endpoint`: attempt_timeout, max_wait, limit, params.

    Returns:
        The model.

    Raises:
        UserError: If the package is not installed, or does not know the name.
    """
    library = library_of(name)
    if not library:
        raise UserError(
            f"{name!r} does not say who asks it: write {' or '.join(_FORMS)}, or give "
            f'evenhand.Endpoint("http://…/v1", model={name!r})'
        )
    made: Callable[..., RemoteModel] = registry.load("models", library)
    return made(name, base_url=base_url, api_key=api_key, **settings)


_FORMS = ("litellm:PROVIDER/MODEL", "inspect:PROVIDER/MODEL", "python:MODULE:FUNCTION")


class LibraryModel(RemoteModel):
    """A model that a package asks. `_ask` is what each package does in its own way."""

    library: ClassVar[str]

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        attempt_timeout: float = 120.0,
        max_wait: float = 60.0,
        limit: ResizableSemaphore | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        self._known_as = name.partition(":")[2]
        if "/" not in self._known_as or "://" in self._known_as:
            raise UserError(f"{name!r}: write {self.library}:PROVIDER/MODEL, and an address apart")
        self._base_url = checked_url(base_url) if base_url else None
        self._api_key = api_key or (_NO_KEY if base_url else None)
        super().__init__(
            name,
            where=self._base_url or f"{self._known_as.partition('/')[0]} through {self.library}",
            redact=Redactor(api_key, *environment.provider_keys()),
            attempt_timeout=attempt_timeout,
            max_wait=max_wait,
            limit=limit,
            params=params,
        )

        if named := sorted(_RESERVED & self._params.keys()):  # those within extra_body too
            raise UserError(f"{name}: params may not hold {', '.join(named)}")

    def describe(self) -> dict[str, Any]:
        described: dict[str, Any] = {"kind": self.library, "model": self.name}
        if self._base_url:
            described["url"] = self._base_url
        return {**described, "params": self._params} if self._params else described

    async def _post(
        self, request: ModelRequest, dialect: wire.Dialect
    ) -> tuple[int, Mapping[str, str], bytes]:
        if request.prompt is not None:
            return 400, {}, _NO_TEXT
        body = orjson.loads(wire.encode(request, self._known_as, dialect, self._params))
        try:
            return 200, {}, orjson.dumps(await self._ask(body))
        except EvenhandError:
            raise
        except Exception as error:  # whatever the package and its providers' packages raise
            return self._failure(error)

    @abstractmethod
    async def _ask(self, body: dict[str, Any]) -> dict[str, Any]:
        """Ask with the body of a chat request, and give the body of a chat answer."""
        ...

    def _failure(self, error: Exception) -> tuple[int, Mapping[str, str], bytes]:
        """Say an error of the package as an HTTP answer, by the status that it carries."""
        for cause in _causes(error):
            if (status := _status(cause)) is not None:
                return status, _headers(cause), _said(self._words(error))
        if self._may_pass(error) or any(isinstance(cause, OSError) for cause in _causes(error)):
            raise aiohttp.ClientError(self._words(error)) from None
        return 400, {}, _said(f"{type(error).__name__}: {self._words(error)}")

    def _may_pass(self, error: Exception) -> bool:
        """Whether the package would try again after an error without a status."""
        names = {kind.__name__ for cause in _causes(error) for kind in type(cause).__mro__}
        return bool(names & {"APIConnectionError", "TransportError", "TimeoutError"})

    def _words(self, error: Exception) -> str:
        return str(getattr(error, "provider_message", None) or getattr(error, "message", error))

    def _advice(self, status: int, message: str = "") -> str:
        if status in (401, 403):
            variable = "in api_key_env" if self._base_url else "that the provider has"
            return f"{self.library} sends the key in the variable {variable}. Is it right?"
        if status == 404:
            return f"Is this the name by which {self.library} knows the model?"
        return super()._advice(status, message)


def _causes(error: BaseException) -> list[BaseException]:
    """The error, and what it was raised from."""
    found = [error]
    while (below := found[-1].__cause__ or found[-1].__context__) and below not in found:
        found.append(below)
    return found


def _status(error: BaseException) -> int | None:
    """The HTTP status, under the names that providers' packages have for it."""
    response = getattr(error, "response", None)
    inner = response.get("ResponseMetadata", {}) if isinstance(response, dict) else {}  # botocore
    for value in (
        getattr(error, "status_code", None),
        getattr(error, "code", None),
        inner.get("HTTPStatusCode"),
    ):
        if isinstance(value, int) and 400 <= value < 600:
            return value
    return None


def _headers(error: BaseException) -> Mapping[str, str]:
    """The headers of an answer: they may say how long to wait."""
    for holder in (error, getattr(error, "response", None)):
        for name in ("litellm_response_headers", "headers"):
            headers = getattr(holder, name, None)
            if isinstance(headers, Mapping) and headers:
                return {str(key).lower(): str(value) for key, value in headers.items()}
    return {}


def _said(words: str) -> bytes:
    return orjson.dumps({"error": {"message": words}})


def missing(library: str, package: str) -> UserError:
    """The error where the package of a library is not installed."""
    return UserError(f"{library}:PROVIDER/MODEL needs {package}: pip install 'evenhand[{library}]'")
