"""XSTest (Röttger et al. 2024): safe prompts that look unsafe, and their unsafe contrasts."""
