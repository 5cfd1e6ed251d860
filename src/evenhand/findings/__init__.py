"""A finding is what was found, typed and computed once: estimates, changes, reports, comparisons.
This package renders nothing, knows no benchmark and never calls a model."""
