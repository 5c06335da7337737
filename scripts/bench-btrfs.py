"""Times pairs of commands on one image, and prints rows for scripts/bench-btrfs."""

import json
import os
import resource
import statistics
import subprocess
import sys
import time

PAIRS = 5


def run(*commands):
    """Seconds until all commands, which run side by side, are done, and their CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    processes = [
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for command in commands
    ]
    assert all(process.wait() == 0 for process in processes), commands
    elapsed = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return elapsed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def row(name, ours, theirs):
    pairs = [(run(*ours), run(*theirs)) for _ in range(PAIRS)]
    wall = statistics.median(their[0] / our[0] for our, their in pairs)
    cpu = statistics.median(their[1] / our[1] for our, their in pairs)
    seconds = [statistics.median(pair[side][0] for pair in pairs) for side in (0, 1)]
    print(f"  {name:34} {seconds[0]:7.3f} s {seconds[1]:7.3f} s {wall:7.2f} x {cpu:7.2f} x CPU")


def main():
    blkhash, checksum, image = sys.argv[1:]
    ours = [[blkhash, "btrfs", "verify", image]]
    output = subprocess.check_output([blkhash, "btrfs", "verify", "--json", image])
    summary = json.loads(output.splitlines()[-1])
    gibibytes = (summary["data_bytes"] + summary["tree_bytes"]) / 2**30
    print(f"{checksum}: {gibibytes:.2f} GiB to verify")
    row("btrfs check --check-data-csum", ours, [["btrfs", "check", "--check-data-csum", image]])
    reader = [sys.executable, "-c", READER, image]
    row("two readers", ours, [reader + [str(index)] for index in range(2)])


# Reads every second MiB that is no hole, as cat does: in pieces of 128 KiB.
READER = """
import os, sys
image, index = os.open(sys.argv[1], os.O_RDONLY), int(sys.argv[2])
buffer = [bytearray(131072)]
position, size = 0, os.fstat(image).st_size
while position < size:
    try:
        data = os.lseek(image, position, os.SEEK_DATA)
    except OSError:
        break
    hole = os.lseek(image, data, os.SEEK_HOLE)
    for offset in range(data, hole, 131072):
        if (offset >> 20) % 2 == index:
            os.preadv(image, buffer, offset)
    position = hole
"""

if __name__ == "__main__":
    main()
