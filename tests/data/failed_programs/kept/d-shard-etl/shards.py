import json


class ShardCorrupt(Exception):
    pass


def read_shard(path):
    rows = []
    with open(path, encoding="utf-8") as f:
        for n, line in enumerate(f, 1):
            try:
                rows.append(json.loads(line))
            except json.JSONDecodeError as e:
                raise ShardCorrupt(f"{path.name}, line {n} is not JSON") from e
    return rows


def clean(rows):
    good, bad = [], []
    for row in rows:
        try:
            row["k"] = float(row["temp"]) + 273.15
            good.append(row)
        except ValueError:
            bad.append(row)
    return good, bad
