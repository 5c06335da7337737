"""A wire between two network namespaces, with a rate, a delay and losses.

It carries the packets of two TUN devices in this process, because many kernels are built without netem. Without losses, packets
are as with segmentation offload, which have up to 64 KiB, so a wire of 1 Gbit/s takes a small part of a processor. With
losses, each packet has 1500 bytes.

    wire.py NAMESPACE NAMESPACE RATE DELAY LOSS

RATE is in bits per second in each direction, DELAY in seconds in each direction, and LOSS the part of the packets to the first
namespace that is lost. Prints a line when the wire is up.
"""

import collections
import fcntl
import os
import random
import select
import struct
import subprocess
import sys
import time

TUNSETIFF, TUNSETOFFLOAD, TUNSETVNETHDRSZ = 0x400454CA, 0x400454D0, 0x400454D8
IFF_TUN, IFF_NO_PI, IFF_VNET_HDR = 0x0001, 0x1000, 0x4000
TUN_F_CSUM, TUN_F_TSO4 = 0x01, 0x02
HEADER = 10

# Bytes that wait at the slow end of the wire. What comes while these wait is lost, as in a router.
BUFFER = 8 << 20

ADDRESSES = ("198.18.0.1", "198.18.0.2")


class End:
    """The packets to one namespace."""

    def __init__(self, device, rate, delay, loss):
        self.device = device
        self.rate = rate / 8
        self.delay = delay
        self.loss = loss
        self.random = random.Random(1)
        self.free_at = 0.0
        self.packets = collections.deque()

    def take(self, packet, now):
        start = max(now, self.free_at)
        if self.loss and self.random.random() < self.loss or (start - now) * self.rate > BUFFER:
            return
        self.free_at = start + (len(packet) - HEADER) / self.rate
        self.packets.append((self.free_at + self.delay, packet))

    def deliver(self, now):
        """Writes what has arrived. Returns the seconds until the next packet arrives."""
        while self.packets and self.packets[0][0] <= now:
            try:
                os.write(self.device, self.packets.popleft()[1])
            except OSError:
                # The interface is down, or its queue is full.
                pass
        return self.packets[0][0] - now if self.packets else 60.0


def main():
    namespaces, (rate, delay, loss) = sys.argv[1:3], map(float, sys.argv[3:6])
    devices = [open_device(it, namespace, address, loss == 0) for it, (namespace, address) in enumerate(zip(namespaces, ADDRESSES))]
    ends = [End(devices[0], rate, delay, loss), End(devices[1], rate, delay, 0)]
    print("up", flush=True)
    parent = os.getppid()
    while os.getppid() == parent:
        now = time.monotonic()
        wait = min(1.0, *(end.deliver(now) for end in ends))
        ready, _, _ = select.select(devices, [], [], max(wait, 0))
        now = time.monotonic()
        for device in ready:
            to = ends[1 - devices.index(device)]
            try:
                while True:
                    to.take(os.read(device, 70_000), now)
            except BlockingIOError:
                pass


def open_device(number, namespace, address, offload):
    """Makes a TUN device, and moves it into the namespace."""
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    name = f"wire{number}.{os.getpid()}"[:15]
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI | IFF_VNET_HDR))
    fcntl.ioctl(device, TUNSETVNETHDRSZ, struct.pack("i", HEADER))
    if offload:
        fcntl.ioctl(device, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4)
    ip("link", "set", name, "netns", namespace, "txqueuelen", "10000")
    ip("-n", namespace, "addr", "add", f"{address}/30", "dev", name)
    ip("-n", namespace, "link", "set", name, "up")
    return device


def ip(*args):
    subprocess.run(["ip", *args], check=True)


if __name__ == "__main__":
    main()
