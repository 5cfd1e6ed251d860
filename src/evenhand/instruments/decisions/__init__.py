"""Stored decisions: who is selected, by group, and is it more than chance?"""
