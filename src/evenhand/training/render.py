"""The one way from a prompt and a response to token ids.

Reward training, reward scoring and PPO all come through here, because a reward depends on the last
tokens that it sees: the same answer without the template's last line break got 0.99, not 7.09.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.core.errors import UserError

Messages = Sequence[Mapping[str, str]]

# Stands for a response to find where the template puts one. No text holds a private-use character.
_MARK = "\ue000response\ue000"


def render(tokenizer: Any, prompt: Messages, response: str, max_length: int) -> list[int]:
    """Prompt and response through the tokenizer's chat template, at most `max_length` ids.

    Paper 002, 4.1: "If an input exceeds the maximum length, we truncate it on the right to keep the
    integrity of the response as much as possible". So the response loses its end, and what the
    template writes behind a response is kept.
    """
    ids = _ids(tokenizer, _text(tokenizer, prompt, response))
    if len(ids) <= max_length:
        return ids
    head, _, tail = _text(tokenizer, prompt, _MARK).rpartition(_MARK)
    tail_ids = _ids(tokenizer, tail) if tail else []
    room = max_length - len(tail_ids)
    if len(_ids(tokenizer, head)) >= room:
        raise UserError(
            f"a prompt leaves no room for a response in {max_length} tokens; raise max_length "
            f"(--set) or leave out the row whose prompt starts {str(prompt[-1]['content'])[:60]!r}"
        )
    return [*ids[:room], *tail_ids]


def cut(tokenizer: Any, prompt: Messages, response: str, max_length: int) -> str:
    """The response as it is left after `render`, for a trainer that takes only text."""
    full_ids = _ids(tokenizer, _text(tokenizer, prompt, response))
    if len(full_ids) <= max_length:
        return response
    head, _, tail = _text(tokenizer, prompt, _MARK).rpartition(_MARK)
    cut_ids = render(tokenizer, prompt, response, max_length)
    last = len(cut_ids) - len(_ids(tokenizer, tail))
    return str(tokenizer.decode(cut_ids[len(_ids(tokenizer, head)) : last]))


def prompt_ids(tokenizer: Any, prompt: Messages) -> list[int]:
    """The prompt up to where a model starts to answer."""
    require_template(tokenizer)
    text = tokenizer.apply_chat_template(list(prompt), tokenize=False, add_generation_prompt=True)
    return _ids(tokenizer, text)


def fitting(
    tokenizer: Any, prompts: Sequence[Messages], room: int
) -> list[tuple[Messages, list[int]]]:
    """The prompts of at most `room` tokens, each with its ids."""
    read = [(prompt, prompt_ids(tokenizer, prompt)) for prompt in prompts]
    selected = [(prompt, ids) for prompt, ids in read if len(ids) <= room]
    if not selected:
        raise UserError(
            f"none of {len(read)} prompts has at most {room} tokens; raise max_prompt or lower "
            "max_new_tokens (--set)"
        )
    return selected


def require_template(tokenizer: Any) -> None:
    if not tokenizer.chat_template:
        raise UserError(
            f"the tokenizer of {tokenizer.name_or_path} has no chat template; put the "
            "chat_template.jinja of its instruction-tuned sibling into the folder"
        )


def _text(tokenizer: Any, prompt: Messages, response: str) -> str:
    require_template(tokenizer)
    talk = [*prompt, {"role": "assistant", "content": response}]
    return str(tokenizer.apply_chat_template(talk, tokenize=False))


def _ids(tokenizer: Any, text: str) -> list[int]:
    # The template writes the special tokens itself.
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])
