"""Plots: what is drawn is data, how it looks is the same everywhere."""
