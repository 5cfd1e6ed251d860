"""RedditBias, by log-probability (Barikeri et al. 2021)."""
