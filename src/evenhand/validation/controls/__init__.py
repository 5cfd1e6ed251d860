"""Controls are generated questions, and answerers whose behaviour is known: what an instrument
reads of them can be held against the truth."""
