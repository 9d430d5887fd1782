"""Queue disciplines side by side, on one link or on what a gateway recorded."""
