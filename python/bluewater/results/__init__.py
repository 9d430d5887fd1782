"""Results: a run's tables, the store of runs, and the tables of many runs."""
