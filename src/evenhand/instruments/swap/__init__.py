"""Swap: every prompt of one's own under every label of a family, to see whether the answer is the
same for somebody else."""
