"""BOLD (Dhamala et al. 2021): beginnings of sentences of Wikipedia about people, by group."""
