"""A small Ceph cluster for `rbd`: a monitor, and an OSD with its objects in memory. Other hosts cannot reach it."""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import uuid

import images
import servers

CONFIGURATION = """
[global]
fsid = {fsid}
mon host = v2:127.0.0.1:{port}
mon initial members = a
auth cluster required = none
auth service required = none
auth client required = none
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 8
osd crush chooseleaf type = 0
mon allow pool size one = true
mon data avail crit = 1
ms bind ipv4 = true
public network = 127.0.0.0/8
run dir = {folder}
log file = {folder}/$name.log
admin socket = {folder}/$name.asok
pid file = {folder}/$name.pid
mon data = {folder}/mon
osd data = {folder}/osd
osd objectstore = memstore
memstore device bytes = 1073741824
"""


class Cluster:
    """A cluster with the pool `rbd`. No process outlives it or the thread that made it."""

    def __init__(self):
        # Names of sockets are limited to 107 bytes.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ceph."))
        self.configuration = self.folder / "ceph.conf"
        self.processes = []
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def start(self):
        for _ in range(10):
            if self.start_monitor():
                break
        else:
            raise AssertionError(("no monitor", (self.folder / "mon.a.log").read_text()))
        osd = str(uuid.uuid4())
        self.ceph("osd", "new", osd)
        self.run("ceph-osd", "--mkfs", "-i", "0", "--osd-uuid", osd)
        self.spawn("ceph-osd", "-f", "-i", "0")
        self.ceph("osd", "crush", "add", "0", "1.0", "root=default", "host=host")
        self.ceph("osd", "pool", "create", "rbd", "8")
        self.ceph("osd", "pool", "set", "rbd", "size", "1", "--yes-i-really-mean-it")
        self.rbd("pool", "init", "rbd")

    def start_monitor(self):
        """Returns whether the monitor listens. It does not if another process took the port meanwhile."""
        port, fsid = servers.free_port(), str(uuid.uuid4())
        self.configuration.write_text(CONFIGURATION.format(fsid=fsid, port=port, folder=self.folder))
        shutil.rmtree(self.folder / "mon", ignore_errors=True)
        (self.folder / "mon").mkdir()
        (self.folder / "osd").mkdir(exist_ok=True)
        table, keys = self.folder / "monmap", self.folder / "keyring"
        images.run("monmaptool", "--create", "--clobber", "--fsid", fsid, "--addv", "a", f"[v2:127.0.0.1:{port}]", table)
        images.run("ceph-authtool", "--create-keyring", keys, "--gen-key", "-n", "mon.", "--cap", "mon", "allow *")
        self.run("ceph-mon", "--mkfs", "-i", "a", "--monmap", table, "--keyring", keys)
        return servers.wait_for(port, self.spawn("ceph-mon", "-f", "-i", "a"))

    def close(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
        shutil.rmtree(self.folder)

    def spawn(self, *command):
        with open(self.folder / "output", "ab") as output:
            process = subprocess.Popen(
                [*command, "-c", str(self.configuration)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                preexec_fn=lambda: servers.LIBC.prctl(servers.PR_SET_PDEATHSIG, signal.SIGKILL),
            )
        self.processes.append(process)
        return process

    def run(self, program, *args):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CEPH_")}
        return images.run(program, "-c", self.configuration, *map(str, args), env=environment, timeout=120)

    def ceph(self, *args):
        return self.run("ceph", "--connect-timeout", "60", *args)

    def rbd(self, *args):
        return self.run("rbd", *args)
