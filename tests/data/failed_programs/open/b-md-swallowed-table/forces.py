import torch


class PairTable:
    def __init__(self, path, log):
        self.path, self.log = path, log
        self.rows = self._load(16)

    def _load(self, n):
        """Only the first n rows: the far field is read when it is needed."""
        rows = []
        with open(self.path) as f:
            for line in f:
                if line.startswith("#"):
                    continue
                rows.append([float(c) for c in line.split()])
                if len(rows) == n:
                    break
        return torch.tensor(rows)

    def refine(self):
        self.rows = self._load(10 ** 6)
        self.log.debug("%s: %d rows", self.path, len(self.rows))

    def force(self, x):
        i = torch.bucketize(x, self.rows[:, 0]).clamp(max=len(self.rows) - 1)
        return self.rows[i, 1].clamp(-50, 50)
