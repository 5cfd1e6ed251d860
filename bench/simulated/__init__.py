"""Simulations whose truth is known: each module has `figures(short=…)`, its numbers by name."""
