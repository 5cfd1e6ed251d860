"""CrowS-Pairs, by log-probability (Nangia et al. 2020)."""
