"""Pure formulas: each with its source, its range and what it is where it is undefined."""
