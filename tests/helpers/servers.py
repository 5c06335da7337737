"""NBD servers for the tests: real ones on private sockets, and their files for TLS.

No server outlives the tests. Each is killed with its parent thread or by Servers.
"""

import contextlib
import ctypes
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.parse

import images

START_TIMEOUT = 30
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


class Servers:
    """Starts servers, and kills them at the end."""

    def __init__(self):
        # Socket names are limited to 107 bytes, so the folder must not be deep.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="nbd."))
        self.processes = []

    def close(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
        shutil.rmtree(self.folder)

    def socket(self):
        return self.folder / f"s{len(list(self.folder.iterdir()))}"

    def qemu_nbd(self, image, *args, fmt="raw", shared=0, tcp=False):
        """Starts a read-only qemu-nbd. Returns the Server."""
        command = ["qemu-nbd", "--persistent", "--read-only", f"--shared={shared}", "-f", fmt]
        return self.start(tcp, lambda place: [*command, *args, *qemu_place(place), str(image)])

    def writable_qemu_nbd(self, image, *args, fmt="raw"):
        """Starts a qemu-nbd that writes. Returns the Server once it has opened the image, which it does after it listens."""
        command = ["qemu-nbd", "--persistent", "--shared=0", "-f", fmt]
        server = self.start(False, lambda place: [*command, *args, *qemu_place(place), str(image)])
        wait_for_answer(server.uri(), server.process)
        return server

    def nbdkit(self, *args, tcp=False):
        """Starts an nbdkit with a plugin and filters. Returns the Server."""
        command = ["nbdkit", "--foreground", "--readonly"]
        return self.start(tcp, lambda place: [*command, *nbdkit_place(place), *map(str, args)])

    def writable_nbdkit(self, *args):
        return self.start(False, lambda p: ["nbdkit", "--foreground", *nbdkit_place(p), *args])

    def start(self, tcp, command):
        for _ in range(10):
            place = free_port() if tcp else self.socket()
            with open(self.folder / "log", "wb") as log:
                process = subprocess.Popen(
                    command(place),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    preexec_fn=lambda: LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL),
                )
            self.processes.append(process)
            if wait_for(place, process):
                return Server(place, process)
        raise AssertionError(("no server", command(place), (self.folder / "log").read_text()))


class Server:
    """A server, by its socket or port."""

    def __init__(self, place, process=None):
        self.place = place
        self.process = process

    def uri(self, export="", tls=False, user="", host="localhost", **parameters):
        """Returns the URI of an export."""
        scheme = "nbds" if tls else "nbd"
        user = user and user + "@"
        if isinstance(self.place, int):
            authority = f"{scheme}://{user}{host}:{self.place}"
        else:
            authority = f"{scheme}+unix://{user}"
            parameters = {"socket": self.place} | parameters
        query = "&".join(f"{name.replace('_', '-')}={value}" for name, value in parameters.items())
        return f"{authority}/{urllib.parse.quote(export)}" + (query and "?" + query)


def qemu_place(place):
    return ["-b", "localhost", "-p", str(place)] if isinstance(place, int) else ["-k", str(place)]


def nbdkit_place(place):
    if isinstance(place, int):
        return ["--ipaddr", "localhost", "--port", str(place)]
    return ["--unix", str(place)]


def free_port():
    with socket.socket() as free:
        free.bind(("localhost", 0))
        return free.getsockname()[1]


def wait_for(place, process):
    """Returns whether the server listens before it exits. Does not connect, because some servers serve
    only once."""
    deadline = time.monotonic() + START_TIMEOUT
    while process.poll() is None:
        if is_listening(place):
            return True
        assert time.monotonic() < deadline, ("server does not listen", process.args)
        time.sleep(0.005)
    return False


def wait_for_answer(uri, process):
    """Waits until a server that is persistent answers."""
    deadline = time.monotonic() + START_TIMEOUT
    command = ["nbdinfo", "--size", uri]
    while subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=START_TIMEOUT).returncode != 0:
        assert process.poll() is None and time.monotonic() < deadline, ("server does not answer", process.args)
        time.sleep(0.005)


def is_listening(place):
    if isinstance(place, int):
        tables, ending, field, listening = ["tcp", "tcp6"], f":{place:04X}", 1, "0A"
    else:
        tables, ending, field, listening = ["unix"], str(place), -1, "00010000"
    for table in tables:
        with contextlib.suppress(OSError), open(f"/proc/net/{table}") as lines:
            for fields in map(str.split, lines):
                if fields[field].endswith(ending) and fields[3] == listening:
                    return True
    return False


def make_certificates(folder):
    """Creates a folder with the PKI and pre-shared key of servers and clients on localhost."""
    folder.mkdir()
    certtool(folder, "ca", "cn = tests\nca\ncert_signing_key\n", "--generate-self-signed")
    signed = signed_by(folder)
    certtool(folder, "server", SERVER + "dns_name = localhost\nip_address = 127.0.0.1\n", *signed)
    certtool(folder, "client", "cn = client\ntls_www_client\nencryption_key\nsigning_key\n", *signed)
    images.run("psktool", "-u", "alice", "-p", str(folder / "keys.psk"))
    return folder


def make_server_certificate(folder, authority, template, self_signed=False):
    """Creates a folder for a server whose certificate is made from `template`."""
    folder.mkdir()
    shutil.copy(authority / "ca-cert.pem", folder)
    how = ["--generate-self-signed"] if self_signed else signed_by(authority)
    certtool(folder, "server", SERVER + template, *how)
    return folder


def signed_by(authority):
    ca = ["--load-ca-certificate", authority / "ca-cert.pem"]
    return ["--generate-certificate", *ca, "--load-ca-privkey", authority / "ca-key.pem"]


SERVER = "cn = server\ntls_www_server\nencryption_key\nsigning_key\n"


def certtool(folder, name, template, *args):
    key = folder / f"{name}-key.pem"
    info = folder / f"{name}.info"
    info.write_text(template)
    images.run("certtool", "--generate-privkey", "--key-type=ecdsa", "--outfile", str(key))
    args = [*args, "--load-privkey", key, "--template", info]
    images.run("certtool", *map(str, args), "--outfile", str(folder / f"{name}-cert.pem"))


# A plugin of nbdkit that fails to read the ranges listed in a file, until they are written.
FAILING = r"""
case "$1" in
get_size) stat -L -c %s "$disk" ;;
can_write | can_flush) ;;
thread_model) echo serialize_all_requests ;;
pread)
    while read -r first length; do
        if [ "$4" -lt $((first + length)) ] && [ "$first" -lt $(($4 + $3)) ]; then
            echo EIO the sector is bad >&2
            exit 1
        fi
    done < "$bad"
    dd if="$disk" iflag=skip_bytes,count_bytes skip="$4" count="$3" bs=64k status=none ;;
pwrite)
    dd of="$disk" oflag=seek_bytes seek="$4" conv=notrunc bs=64k status=none
    awk -v from="$4" -v to=$(($4 + $3)) '$1 < from || $1 + $2 > to' "$bad" > "$bad.new"
    mv "$bad.new" "$bad" ;;
flush) ;;
*) exit 2 ;;
esac
"""
