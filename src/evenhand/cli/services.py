"""What an instrument may ask of a command: scorers by name, from the config."""

from evenhand import config as configuration
from evenhand.scorers import Scorer


class ConfigServices:
    """Scorers of the config and those that are built in, each opened once."""

    def __init__(self, settings: configuration.Config) -> None:
        self._settings = settings
        self._opened: dict[str, Scorer] = {}

    def scorer(self, name: str) -> Scorer:
        if name not in self._opened:
            self._opened[name] = configuration.scorer_by_name(self._settings, name)
        return self._opened[name]

    async def close(self) -> None:
        for scorer in self._opened.values():
            await scorer.close()
        self._opened.clear()
