"""A real HTTP server on 127.0.0.1 that speaks the OpenAI wire format, well or badly on purpose.

| module     | what it is                                                                  |
| ---------- | --------------------------------------------------------------------------- |
| http.py    | HTTP/1.1 over raw streams, so that every fault is bytes on a real socket     |
| replies.py | what the pretended model says: deterministic, by the reply's declared schema |
| faulty.py  | the server, its counters, seven seeded faults, a fixed capacity, fixed bytes |
| process.py | the same server in a process of its own                                      |
| gauges.py  | peak memory, and how long the event loop was held up                         |
| kernel.py  | items through the real kernel into a run folder, with each item's end timed  |
"""
