"""A thin arena over malloc, as the old Fortran code had it."""
import ctypes

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]


class Arena:
    def block(self, count):
        self.address = libc.malloc(8 * count)
        return (ctypes.c_double * count).from_address(self.address)

    def release(self, block):
        libc.free(ctypes.addressof(block))
