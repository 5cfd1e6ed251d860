"""The packages that `evenhand new` copies; the same checks hold for them as for all other code."""
