"""LiteLLM's SDK as a door to its providers. What it takes and gives is OpenAI's chat form."""

import sys
from types import ModuleType
from typing import Any, ClassVar

import orjson

from evenhand.core import environment
from evenhand.models.libraries import LibraryModel, missing


class LiteLLMModel(LibraryModel):
    """A model by the name that LiteLLM knows it by.

    >>> model = evenhand.models.open_by_name("litellm:anthropic/claude-sonnet-4-5")

    The key is the one in the environment that LiteLLM reads for the provider. What LiteLLM knows
    that a model refuses is dropped by us and kept in the record, as what the provider itself
    refuses: LiteLLM's own `drop_params` would not say it.
    """

    library: ClassVar[str] = "litellm"

    def __init__(self, name: str, **settings: Any) -> None:
        _litellm()  # at once: it takes seconds, which no call should wait for
        super().__init__(name, **settings)

    async def _ask(self, body: dict[str, Any]) -> dict[str, Any]:
        given = {"api_base": self._base_url, "api_key": self._api_key}
        reply = await _litellm().acompletion(
            **body,
            **{name: value for name, value in given.items() if value},
            timeout=self._attempt_timeout,
            max_retries=0,
            num_retries=0,
            drop_params=False,
        )
        if body.get("stream"):  # learned: some answer streamed requests only
            reply = _litellm().stream_chunk_builder([chunk async for chunk in reply])
        answer: dict[str, Any] = orjson.loads(reply.model_dump_json())
        return answer

    async def close(self) -> None:
        """Leave its clients open: all models of a process share them, and LiteLLM closes them."""


def _litellm() -> ModuleType:
    """Import LiteLLM at its first use."""
    if "litellm" not in sys.modules:
        environment.keep_litellm_to_itself()
    try:
        import litellm  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "litellm":
            raise
        raise missing("litellm", "LiteLLM") from None
    litellm.suppress_debug_info = True  # it would print advice between our own lines
    module: ModuleType = litellm
    return module
