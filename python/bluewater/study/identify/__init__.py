"""Which queue discipline a path has, from what it did to a probe."""
