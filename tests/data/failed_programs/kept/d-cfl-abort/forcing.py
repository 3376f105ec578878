import math


class Wind:
    """Wind stress per band; a storm crosses one of them."""

    def __init__(self, band):
        self.band = band

    def stress(self, step):
        calm = 1e-4 * math.sin(step / 15 + self.band)
        if self.band == 3 and 60 < step < 90:
            return calm + 0.06
        return calm
