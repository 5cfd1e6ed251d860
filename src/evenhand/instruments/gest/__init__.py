"""GEST, by log-probability (Pikuliak et al. 2024)."""
