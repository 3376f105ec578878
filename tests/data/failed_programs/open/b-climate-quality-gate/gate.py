"""Quality gate of the operations group: a job whose data is bad must stop at once."""
import os

LOW, HIGH = 150.0, 350.0
GATE_CLOSED = 17


def check(rank, month, field):
    if field.min() < LOW or field.max() > HIGH:
        # no clean-up on purpose, the archive must not see half a month
        os._exit(GATE_CLOSED)
