"""The packages that `evenhand dev new` copies; all checks hold for them too."""
