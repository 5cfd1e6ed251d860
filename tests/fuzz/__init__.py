"""Every reader of the package against input that nobody meant to write."""
