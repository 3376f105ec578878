import os
import signal
import time


def resize(n, tries):
    time.sleep(0.05)
    if n == 5 and tries == 0:
        raise ValueError("corrupt JPEG data: premature end of data segment")
    if n == 9 and tries == 0:
        raise MemoryError("std::bad_alloc")
    if n == 17 and tries == 1 or n == 20 and tries == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return n * n
