"""The web search: engines, what leaves the machine, what comes in."""
