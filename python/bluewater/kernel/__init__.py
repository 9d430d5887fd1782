"""Queue disciplines of a Linux kernel, packet by packet: built from its sources, run, compared."""
