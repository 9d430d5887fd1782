"""Scenarios and sweeps, as text and as objects."""
