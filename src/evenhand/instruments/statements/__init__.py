"""Statements on topics, rated for bias, communication and logic (RLDF paper, Tables 3 to 5)."""
