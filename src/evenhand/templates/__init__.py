"""The packages that `evenhand dev new` copies; the same checks hold for them as for all other code."""
