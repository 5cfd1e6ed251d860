"""Sentences of ours about somebody, and the sets that the scorer of regard is measured on."""
