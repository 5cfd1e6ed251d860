"""Stored results → what a person or a program reads. Can never call a model."""
