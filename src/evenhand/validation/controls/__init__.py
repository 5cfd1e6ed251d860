"""Controls are generated questions, and answerers whose behavior is known: what an instrument
reads of them can be compared with the truth."""
