"""SeeGULL, by log-probability (Jha et al. 2023)."""
