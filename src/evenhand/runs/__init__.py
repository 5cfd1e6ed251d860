"""Runs: what is asked and answered, run by `runners` and kept by `store`."""
