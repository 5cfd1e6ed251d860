"""The one door to a model: a Protocol and its kinds."""

from evenhand.models.base import ChatModel, ModelReply, ModelRequest, Sample, TokenLogprob
from evenhand.models.endpoint import Endpoint
from evenhand.models.replay import ReplayModel
from evenhand.models.scripted import ScriptedModel

__all__ = [
    "ChatModel",
    "Endpoint",
    "ModelReply",
    "ModelRequest",
    "ReplayModel",
    "Sample",
    "ScriptedModel",
    "TokenLogprob",
]
