"""What an agent may call besides a model: the web search."""
