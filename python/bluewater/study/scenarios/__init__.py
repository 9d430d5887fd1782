"""Scenarios and sweeps, as text and as what is made of them."""
