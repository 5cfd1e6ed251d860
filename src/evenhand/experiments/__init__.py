"""Experiments run a request, whoever makes it: a command, Python code, a gateway."""
