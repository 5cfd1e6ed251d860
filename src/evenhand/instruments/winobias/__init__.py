"""WinoBias and its lists of occupations, by log-probability (Zhao et al. 2018)."""
