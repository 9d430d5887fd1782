"""A study: scenarios, sweeps and experiments, their claims, and making their runs."""
