"""Searches: traffic that breaks a discipline, and parameters that suit a link."""
