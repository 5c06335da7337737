"""Describes the machine and the programs of a benchmark."""

import os
import platform
import shutil
import subprocess


def describe():
    with open("/proc/cpuinfo") as file:
        names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    return {
        "cpu": names[0] if names else platform.machine(),
        "processors": processors(),
        "kernel": f"{platform.system()} {platform.release()}",
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "load": os.getloadavg()[0],
    }


def processors():
    """Returns the number of processors that this process may use."""
    return len(os.sched_getaffinity(0))


def version(program):
    """Returns the first line of the output of `--version`."""
    flag = "version" if os.path.basename(program) == "openssl" else "--version"
    output = subprocess.run([program, flag], capture_output=True, text=True).stdout
    return (output.strip().splitlines() or ["no version"])[0]


def versions(programs):
    return {os.path.basename(it): version(it) for it in programs if shutil.which(it)}


def summary(machine):
    memory = machine["memory"] / (1 << 30)
    return (
        f"{machine['cpu']}, {machine['processors']} CPUs, {memory:.0f} GiB, {machine['kernel']}, "
        f"load {machine['load']:.1f}"
    )
