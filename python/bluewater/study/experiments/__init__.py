"""Experiments, their claims and readings, and the search of unknowns."""
