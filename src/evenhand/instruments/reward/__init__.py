"""The audit of a reward model: what it prefers, and whether it may drive reinforcement learning."""
