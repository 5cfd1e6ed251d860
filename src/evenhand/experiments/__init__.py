"""Experiments run requests of a command, of Python code or of a gateway."""
