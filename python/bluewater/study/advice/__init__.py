"""Which queue discipline suits a link, and what to type for it."""
