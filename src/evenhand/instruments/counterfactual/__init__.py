"""Swap, a counterfactual test: ask each prompt under every label of a family, to see whether the
answer is the same for somebody else."""
