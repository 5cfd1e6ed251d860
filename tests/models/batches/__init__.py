"""Runs by batches: providers that misbehave, kills, prices."""
