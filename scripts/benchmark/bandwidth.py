"""How fast this machine reads memory, with nothing else to do."""

import ctypes
import mmap
import threading
import time

from .command import median

# More than the caches of most machines hold; what is in them would be read faster.
SIZE = 2 << 30
PIECE = 1 << 20
REPEATS = 5


def read_memory(threads):
    """Bytes a second that so many threads read together: memchr for what is not there, which the C
    library does with the widest loads there are. ctypes lets go of the interpreter for it."""
    libc = ctypes.CDLL(None)
    libc.memchr.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
    libc.memchr.restype = ctypes.c_void_p
    with mmap.mmap(-1, SIZE) as memory:
        if hasattr(mmap, "MADV_HUGEPAGE"):
            memory.madvise(mmap.MADV_HUGEPAGE)
        # Pages that were never written are all the same one.
        filler = b"\x55" * PIECE
        for offset in range(0, SIZE, PIECE):
            memory[offset : offset + PIECE] = filler
        first = ctypes.c_char.from_buffer(memory)
        address = ctypes.addressof(first)
        share = SIZE // threads
        rates = []
        for _ in range(REPEATS):
            readers = [
                threading.Thread(target=libc.memchr, args=(address + at * share, 0, share))
                for at in range(threads)
            ]
            start = time.perf_counter()
            for reader in readers:
                reader.start()
            for reader in readers:
                reader.join()
            rates.append(share * threads / (time.perf_counter() - start))
        # The buffer is not closed while something points into it.
        del first
    return median(rates)
