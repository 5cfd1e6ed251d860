"""The model of the examples: your endpoint if there is one, else a scripted model."""

import os

import evenhand as eh
from evenhand.testing import any_reply


def a_model() -> eh.Endpoint | eh.ScriptedModel:
    """EVENHAND_BASE_URL names your endpoint, EVENHAND_MODEL its model, EVENHAND_API_KEY the key."""
    url = os.environ.get("EVENHAND_BASE_URL")
    if not url:
        return eh.ScriptedModel(any_reply)
    model = os.environ.get("EVENHAND_MODEL", "smollm2")
    return eh.Endpoint(url, model=model, api_key=os.environ.get("EVENHAND_API_KEY"))
