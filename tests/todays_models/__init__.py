"""Endpoints that refuse and think as models of 2026 do.

| module         | what it is                                                             |
| -------------- | ---------------------------------------------------------------------- |
| behaviors.toml | the behaviors, as data: add one when a provider changes                 |
| server.py      | a server on loopback that behaves so; the model's name chooses          |
| matrix.py      | items through a method against that server, and an audit's options      |

By hand: `python tests/todays_models/server.py 8123 [behaviors.toml]`
"""
