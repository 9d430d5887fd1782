"""The base rate, for ever: what a shaper does without an autorate."""

from bluewater.autorate import Autorate


class Fixed(Autorate):
    """Leaves the rates as they are."""

    def step(self, now, measured):
        return None, None
