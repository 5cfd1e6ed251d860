"""Political even-handedness: paired prompts of Shen et al. 2025, and the audit of their judges."""
