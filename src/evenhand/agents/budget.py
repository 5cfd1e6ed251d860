"""A budget says what an item has left to spend. It is reserved before a call and settled after
it."""

from evenhand.domain import Usage
from evenhand.errors import BudgetSpent

# Our choice before the endpoint's own count is known: cautious for English, right for most
# Chinese.
_BYTES_PER_TOKEN = 3.0
_TOKENS_PER_CALL = 24  # our choice: a chat template around system and user message
_SHORTEST_REPLY = 16  # our choice: with room for fewer tokens a call is not worth its prompt


class Budget:
    """The budget of one item, in calls and tokens.

    A reply is never allowed more tokens than are left after the estimated prompt, so the total
    passes the budget by no more than the estimate's error; that error shrinks after the first
    call, when the endpoint's own usage corrects it.
    """

    def __init__(self, calls: int, tokens: int) -> None:
        self.calls = 0
        self.prompt_tokens: int | None = 0
        self.completion_tokens: int | None = 0
        self._max_calls = calls
        self._max_tokens = tokens
        self._spent = 0  # settled and reserved
        self._per_byte = 1 / _BYTES_PER_TOKEN

    def reserve(self, size: int, max_tokens: int | None) -> tuple[int, int]:
        """Reserve a call: (tokens reserved, tokens the reply may have), or `BudgetSpent`."""
        if self.calls >= self._max_calls:
            raise BudgetSpent(f"the item's {self._max_calls} calls are used up")
        prompt = self._estimate(size)
        room = self._max_tokens - self._spent - prompt
        if room < _SHORTEST_REPLY:
            raise BudgetSpent(
                f"{self._spent} of the item's {self._max_tokens} tokens are used up, "
                f"and the next prompt needs about {prompt}"
            )
        allowed = room if max_tokens is None else min(room, max_tokens)
        self.calls += 1
        self._spent += prompt + allowed
        return prompt + allowed, allowed

    def settle(self, reserved: int, usage: Usage | None, size: int, *, learns: bool = True) -> None:
        """Replace the reservation by what the endpoint counted. If it did not count, the
        reservation stands: unknown is never free. Without `learns` the estimate of later prompts
        stays as it is."""
        if usage is None:
            self.prompt_tokens = self.completion_tokens = None
            return
        self._spent += usage.total - reserved
        if self.prompt_tokens is not None and self.completion_tokens is not None:
            self.prompt_tokens += usage.prompt_tokens
            self.completion_tokens += usage.completion_tokens
        if not learns:
            return
        counted = (usage.prompt_tokens - _TOKENS_PER_CALL) / max(size, 1)
        self._per_byte = max(self._per_byte, counted)

    def spent(self) -> tuple[int, int | None, int | None]:
        """Give calls, prompt tokens and completion tokens; None where an endpoint did not count."""
        return self.calls, self.prompt_tokens, self.completion_tokens

    def _estimate(self, size: int) -> int:
        return int(size * self._per_byte) + _TOKENS_PER_CALL
