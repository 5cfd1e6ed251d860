"""What an endpoint did not accept of a request, and what was done instead.

A turn records it as words with blanks between: `temperature` for a field that was left out, and
`system>developer` for one that was sent in another way. Here is what they mean.
"""

from collections.abc import Iterable

_SAID = {
    "response_format>told": "response_format not enforced; schema told in words too",
    "response_format>unbounded": "JSON schema sent without lengths and ranges",
    "response_format>object": "JSON schema not accepted; json_object, schema told in words",
    "response_format>words": "response_format not accepted; schema told in words",
    "max_tokens>max_completion_tokens": "max_tokens sent as max_completion_tokens",
    "system>developer": "system role not accepted; sent as developer",
    "system>user": "system role not accepted; put before the user's message",
    "n": "n not accepted; one call a sample",
    "logprobs": "logprobs not accepted; none given",
    "stop": "stop not accepted; the reply ends where the model ends it",
    "stream": "answers streamed requests only",
}


def in_words(adapted: Iterable[str]) -> tuple[str, ...]:
    """Say what the words of a record mean, each in a sentence."""
    return tuple(_SAID.get(word, f"{word} not accepted; provider default") for word in adapted)
