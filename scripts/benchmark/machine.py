"""Describes the machine and the programs of a benchmark."""

import os
import pathlib
import platform
import shutil
import subprocess


def describe():
    return {
        "cpu": cpu(),
        "processors": processors(),
        "cores": cores(),
        "kernel": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "memory": memory(),
        "load": os.getloadavg()[0],
    }


def cpu():
    """Returns the name of the processor, as the system states it."""
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as file:
            lines = [*file, *output("lscpu").splitlines()]
        names = [line.split(":")[1].strip() for line in lines if line.lower().startswith("model name")]
    else:
        # macOS, and FreeBSD.
        names = [output("sysctl", "-n", it).strip() for it in ("machdep.cpu.brand_string", "hw.model")]
    return next(filter(None, names), platform.machine())


def processors():
    """Returns the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cores():
    """Returns the number of cores of these processors, or None if the system does not state it."""
    if hasattr(os, "sched_getaffinity"):
        # Two threads of a core have the same list.
        files = [f"/sys/devices/system/cpu/cpu{it}/topology/thread_siblings_list" for it in os.sched_getaffinity(0)]
        known = [pathlib.Path(it).read_text() for it in files if os.path.exists(it)]
        return len(set(known)) if len(known) == len(files) else None
    names = ("hw.physicalcpu", "kern.smp.cores")
    return next((int(it) for it in (output("sysctl", "-n", name).strip() for name in names) if it), None)


def memory():
    """Returns the bytes of memory."""
    if "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return int(output("sysctl", "-n", "hw.memsize") or output("sysctl", "-n", "hw.physmem"))


def output(*command):
    """Returns the output of a program, or nothing if it is not installed or fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""


def version(program):
    """Returns the first line of the output of `--version`."""
    flag = "version" if os.path.basename(program) == "openssl" else "--version"
    output = subprocess.run([program, flag], capture_output=True, text=True).stdout
    return (output.strip().splitlines() or ["no version"])[0]


def versions(programs):
    return {os.path.basename(it): version(it) for it in programs if shutil.which(it)}


def summary(machine):
    memory = machine["memory"] / (1 << 30)
    cores = machine.get("cores") or machine["processors"]
    count = f"{machine['processors']} CPUs" + (f" of {cores} cores" if cores != machine["processors"] else "")
    return (
        f"{machine['cpu']}, {count}, {memory:.0f} GiB, {machine['kernel']}, "
        f"load {machine['load']:.1f}"
    )
