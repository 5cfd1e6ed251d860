"""Parts for evenhand that a third party could have written: see pyproject.toml for their names."""
