"""Models are asked through one Protocol, which every kind of model here implements."""

from evenhand.models.base import ChatModel, ModelReply, ModelRequest, Sample, TokenLogprob
from evenhand.models.endpoint import Endpoint
from evenhand.models.libraries import open_by_name
from evenhand.models.replay import ReplayModel, ScriptedModel

__all__ = [
    "ChatModel",
    "Endpoint",
    "ModelReply",
    "ModelRequest",
    "ReplayModel",
    "Sample",
    "ScriptedModel",
    "TokenLogprob",
    "open_by_name",
]
