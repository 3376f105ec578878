"""The values of ``--compression``, read without starting MPI."""

from ..run_errors import BadRequestError

COMPRESSIONS = ("none", "fp16", "bf16")
_ABLE = ("ring", "hierarchical")


def check_compression(text: str, allreduce: str | None) -> None:
    """BadRequestError where ``text`` is none, or ``allreduce`` (None: the default) does not support it."""
    if text not in COMPRESSIONS:
        message = f"--compression {text}: not a compression"
        raise BadRequestError(message, f"Use {', '.join(COMPRESSIONS[:-1])} or {COMPRESSIONS[-1]}.")
    if text != "none" and allreduce is not None and allreduce not in _ABLE:
        message = f"--compression {text} with --allreduce {allreduce}: this algorithm does not compress"
        raise BadRequestError(message, f"Use --allreduce {' or '.join(_ABLE)}, or leave it out.")
