"""The audit of a toxicity scorer: labelled texts, recorded scores and Unicode tricks."""
