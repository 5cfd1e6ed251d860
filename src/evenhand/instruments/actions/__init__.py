"""Actions of agents: what they decide, score and call, by the group of the person."""
