"""Recipes of the papers, and the command that runs them."""
