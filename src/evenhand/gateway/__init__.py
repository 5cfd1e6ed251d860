"""The gateway stands in front of an OpenAI-compatible endpoint and repairs its answers on their way
out. No byte of an answer leaves it before its verdict, and "not run" is never "passed".

`wire` reads and writes the three dialects, `checking` decides, `app` serves.
"""
