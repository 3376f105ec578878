import logging
import math

log = logging.getLogger("amp.scaler")


class GradientOverflow(ArithmeticError):
    pass


class Scaler:
    """Dynamic loss scale, as in mixed precision, with a simulated half range."""

    def __init__(self, scale=2.0**24, limit=65504.0):
        self.scale, self.limit = scale, limit

    def check(self, norm):
        if not math.isfinite(norm) or norm * self.scale > self.limit:
            raise GradientOverflow(f"grad norm {norm * self.scale:.3e} exceeds fp16 range (inf/nan)")

    def back_off(self):
        self.scale /= 16
        log.error("Gradient overflow! NaN or Inf found, skipping step, loss scale reduced to %g", self.scale)
