"""Findings: numbers that can be printed, computed once."""
