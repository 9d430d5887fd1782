"""The suite ``rfc9743``: what RFC 9743 asks of a congestion controller, as runs with a verdict."""
