"""Making many runs: here, on a Dask cluster, in job arrays."""
