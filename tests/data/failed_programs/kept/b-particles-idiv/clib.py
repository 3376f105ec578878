"""The C library's div(): quotient and remainder in one call."""
import ctypes


class _DivT(ctypes.Structure):
    _fields_ = [("quot", ctypes.c_int), ("rem", ctypes.c_int)]


_libc = ctypes.CDLL(None)
_libc.div.restype = _DivT
_libc.div.argtypes = [ctypes.c_int, ctypes.c_int]


def split(total, parts):
    r = _libc.div(total, parts)
    return r.quot, r.rem
