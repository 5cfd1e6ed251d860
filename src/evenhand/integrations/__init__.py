"""evenhand inside of other tools: Inspect, LangChain and pytest."""
