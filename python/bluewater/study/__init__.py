"""A study: scenarios, sweeps and experiments, what is claimed of them, and making their runs."""
