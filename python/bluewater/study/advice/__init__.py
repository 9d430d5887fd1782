"""Advice on the queue discipline for a link, and the commands that configure it."""
