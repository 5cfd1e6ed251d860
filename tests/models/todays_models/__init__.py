"""Endpoints that refuse and think as models of 2026 do.

| module         | what it is                                                             |
| -------------- | ---------------------------------------------------------------------- |
| behaviors.toml | the behaviors, as data: add one when a provider changes                 |
| server.py      | a server on loopback that behaves so; the model's name chooses          |
| routes.py      | its route of OpenAI's Responses API                                     |
| matrix.py      | items through a method against that server, in memory                   |

By hand: `python -m tests.models.todays_models.server 8123 [behaviors.toml]`
"""
