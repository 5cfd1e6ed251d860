"""One folder = one thing that can be measured, whole: card, data, sample, items, outcomes."""

import importlib
from typing import TYPE_CHECKING

from evenhand.errors import UserError

if TYPE_CHECKING:
    from evenhand.instruments._contract import Instrument

# Imported when asked for: each brings its own readers of data.
_OURS = {
    "bbq": "evenhand.instruments.bbq.instrument:Bbq",
    "squad": "evenhand.instruments.squad.instrument:Squad",
}


def instrument_named(name: str) -> "Instrument":
    """An instrument by the name that the command line gives it."""
    if name not in _OURS:
        raise UserError(f"there is no benchmark {name!r}; there are: {', '.join(_OURS)}")
    module, _, kind = _OURS[name].partition(":")
    found: Instrument = getattr(importlib.import_module(module), kind)()
    return found
