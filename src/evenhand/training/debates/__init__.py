"""Debates in roles (paper 002): topics, rounds, a referee's scores, and statements to train on."""
