"""Over-correction: what a method makes of benign texts that name a group of people."""
