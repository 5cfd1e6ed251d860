"""Rows in, outcomes out: one folder per benchmark, each with a card."""
