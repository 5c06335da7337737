"""Memory bandwidth of this machine."""

import ctypes
import mmap
import threading
import time

from .command import median

# Larger than the caches of most machines, which would be read faster.
SIZE = 2 << 30
PIECE = 1 << 20
REPEATS = 5


def read_memory(threads):
    """Returns the bytes per second that this many threads read together. They search for a missing byte
    with memchr, for which the C library uses the widest loads. ctypes releases the interpreter lock
    meanwhile."""
    libc = ctypes.CDLL(None)
    libc.memchr.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
    libc.memchr.restype = ctypes.c_void_p
    with mmap.mmap(-1, SIZE) as memory:
        if hasattr(mmap, "MADV_HUGEPAGE"):
            memory.madvise(mmap.MADV_HUGEPAGE)
        # Write all pages, because untouched ones share a single page.
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
        # The buffer cannot be closed while a pointer refers to it.
        del first
    return median(rates)
