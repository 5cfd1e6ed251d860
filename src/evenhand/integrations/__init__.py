"""Integrations with other tools: Inspect, LangChain and pytest."""
