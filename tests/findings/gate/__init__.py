"""The gate: its verdicts, its forms, and that no fault is ever green."""
