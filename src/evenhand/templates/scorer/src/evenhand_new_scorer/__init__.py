"""A package for evenhand: the scorer `new_scorer`."""
