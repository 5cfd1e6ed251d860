"""The conformance suite is for everybody who scores answers to questions such as BBQ's: items,
answers, and the properties that the numbers of any scorer should have on them."""
