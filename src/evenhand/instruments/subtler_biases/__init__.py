"""subtler_biases, by log-probability (Kamruzzaman et al. 2024)."""
