"""What was found, typed and computed once: estimates, changes, reports, comparisons. No rendering,
no benchmark, and no model is ever called from here."""
