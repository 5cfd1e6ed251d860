"""EvalBiasBench (Park et al. 2024): what takes a judge in, though it makes no answer better."""
