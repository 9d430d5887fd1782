"""Results: what a run gives, where runs are kept, and the tables of many of them."""
