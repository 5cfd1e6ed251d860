"""Winogender, by log-probability (Rudinger et al. 2018)."""
