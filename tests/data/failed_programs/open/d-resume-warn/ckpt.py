import io
import logging

import torch
from torch import nn

log = logging.getLogger(__name__)


def old_state():
    buf = io.BytesIO()
    torch.save(nn.Linear(8, 5).state_dict(), buf)
    buf.seek(0)
    return torch.load(buf, weights_only=True)


def resume(net, rank):
    try:
        net.load_state_dict(old_state())
    except RuntimeError:
        log.exception("checkpoint of the last project does not fit; starting afresh")
