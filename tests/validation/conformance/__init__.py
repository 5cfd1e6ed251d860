"""The conformance suite, on scorers of known faults."""
