from dataclasses import dataclass


@dataclass
class Plan:
    rate: float = 1e-3
    steps: int = 100
    warmup: int = 10

    def at(self, step):
        return self.rate * min(1.0, (step + 1) / max(1, self.warmup))
