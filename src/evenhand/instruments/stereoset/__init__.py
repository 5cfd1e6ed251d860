"""StereoSet, by log-probability (Nadeem et al. 2021)."""
