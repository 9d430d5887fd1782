"""Experiments, their claims and readings, and what claims depend on."""
