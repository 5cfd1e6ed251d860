"""Checks of evenhand itself: planted faults, known controls, and other tools' numbers."""
