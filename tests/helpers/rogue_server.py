"""An NBD server that violates the protocol in ways that real servers do not."""

import random
import socket
import struct
import threading

KIB = 1 << 10
MIB = 1 << 20

# Seconds between two bytes of a server that keeps the connection alive without making progress.
DRIP = 0.02

IHAVEOPT = 0x49484156454F5054
OPTION_REPLY = 0x3E889045565A9
REQUEST = 0x25609513
SIMPLE_REPLY = 0x67446698
STRUCTURED_REPLY = 0x668E33EF

OPT_EXPORT_NAME, OPT_ABORT, OPT_LIST, OPT_INFO, OPT_GO = 1, 2, 3, 6, 7
OPT_STRUCTURED_REPLY, OPT_LIST_META_CONTEXT, OPT_SET_META_CONTEXT = 8, 9, 10
REP_ACK, REP_SERVER, REP_INFO, REP_META_CONTEXT = 1, 2, 3, 4
REP_ERR_UNSUP, REP_ERR_UNKNOWN = 0x80000001, 0x80000006
READ, DISCONNECT, BLOCK_STATUS = 0, 2, 7
NONE, OFFSET_DATA, OFFSET_HOLE, STATUS, ERROR, ERROR_OFFSET = 0, 1, 2, 5, 0x8001, 0x8002
DONE = 1
EIO, EINVAL = 5, 22
HOLE, ZERO = 1, 2
CONTEXT_ID = 17

# Read-only, flags valid, several connections are safe.
EXPORT_FLAGS = 0x0103
CAN_MULTI_CONN = 0x0100


class Closed(Exception):
    """The connection was closed."""


class RogueServer:
    """Serves `content` on a Unix socket, misbehaving in the way named `way`.

    Zero blocks of `unit` bytes are extents of zeros. All others are data.
    """

    def __init__(self, path, content, way, unit=4 * KIB):
        self.content = content
        self.way = way
        self.unit = unit
        self.is_over = threading.Event()
        self.has_closed = threading.Event()
        self.connections = []
        self.requests = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(16)
        threading.Thread(target=self.accept, daemon=True).start()

    def close(self):
        self.is_over.set()
        for connection in [self.listener, *self.connections]:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            connection.close()

    def accept(self):
        while not self.is_over.is_set():
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections.append(connection)
            session = Session(self, connection, number=len(self.connections))
            threading.Thread(target=session.run, daemon=True).start()


class Session:
    """One connection."""

    def __init__(self, server, connection, number):
        self.server = server
        self.number = number
        self.way = server.way
        self.content = server.content
        self.connection = connection
        self.structured = False
        self.random = random.Random(1)

    def run(self):
        try:
            if self.number > 1 and self.way == "good-second-stalls":
                self.server.is_over.wait()
            if self.number > 1 and self.way == "good-second-closes":
                raise Closed
            self.at("start")
            self.greet()
            self.negotiate()
            while True:
                self.serve()
        except (Closed, OSError):
            pass
        self.connection.close()

    # Shared by all stages

    def at(self, stage):
        """Closes the connection or stops answering, if the way says so for this stage."""
        if self.way == f"close-at-{stage}":
            # A close would discard data that the client has not read yet.
            self.connection.shutdown(socket.SHUT_WR)
            raise Closed
        if self.way == f"stall-at-{stage}":
            self.server.is_over.wait()
            raise Closed

    def send(self, data):
        self.connection.sendall(data)

    def drip(self, data):
        """Sends one byte at a time, so that the connection is never silent for long."""
        for i in range(len(data)):
            if self.server.is_over.wait(DRIP):
                raise Closed
            self.send(data[i : i + 1])

    def pour(self, data):
        """Sends the same data forever, so that there is always something to receive."""
        data *= max(1, 64 * KIB // len(data))
        while True:
            self.send(data)

    def receive(self, length):
        data = b""
        while len(data) < length:
            part = self.connection.recv(length - len(data))
            if not part:
                raise Closed
            data += part
        return data

    # Negotiation

    def greet(self):
        if self.way == "no-nbd":
            self.send(b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n" * 4)
            raise Closed
        magic = 0x1234 if self.way == "greeting-magic" else IHAVEOPT
        if self.way == "drip-greeting":
            self.drip(b"NBDMAGIC" + struct.pack(">QH", magic, 3))
        self.send(b"NBDMAGIC" + struct.pack(">QH", magic, 3))
        self.at("flags")
        self.receive(4)

    def negotiate(self):
        while True:
            magic, option, length = struct.unpack(">QLL", self.receive(16))
            assert magic == IHAVEOPT
            data = self.receive(length)
            if option == OPT_ABORT:
                self.option(option, REP_ACK)
                raise Closed
            if self.answer_option(option, data):
                return

    def answer_option(self, option, data):
        if option == OPT_STRUCTURED_REPLY and self.way != "no-structured":
            self.at("structured")
            self.structured = True
            self.option(option, REP_ACK)
        elif option == OPT_SET_META_CONTEXT and self.way not in ("no-contexts", "no-structured"):
            self.at("context")
            name = b"base:allocation"
            if self.way == "pour-contexts":
                self.pour(self.reply(option, REP_META_CONTEXT, struct.pack(">L", 1) + b"x" * 4000))
            if self.way == "pour-small-contexts":
                self.pour(self.reply(option, REP_META_CONTEXT, struct.pack(">L", 1) + b"x"))
            if self.way == "drip-contexts":
                while True:
                    self.drip(self.reply(option, REP_META_CONTEXT, struct.pack(">L", 1) + b"x"))
            if self.way == "other-context":
                name = b"qemu:allocation-depth"
            self.option(option, REP_META_CONTEXT, struct.pack(">L", CONTEXT_ID) + name)
            self.option(option, REP_ACK)
        elif option == OPT_LIST:
            self.list(option)
        elif option == OPT_GO:
            return self.go(option, data)
        else:
            self.option(option, REP_ERR_UNSUP)
        return False

    def go(self, option, data):
        self.at("go")
        length = struct.unpack(">L", data[:4])[0]
        if self.way == "drip-error":
            self.drip(self.reply(option, REP_ERR_UNKNOWN, b"no" * 2000))
        if data[4 : 4 + length]:
            self.option(option, REP_ERR_UNKNOWN, b"no \x1b[31m such\nexport")
            return False
        size, flags = len(self.content), EXPORT_FLAGS
        if self.way == "no-multi-conn":
            flags &= ~CAN_MULTI_CONN
        if self.number > 1 and self.way == "second-is-shorter":
            size -= 512
        size = {"size-2^63": 1 << 63, "size-2^64": (1 << 64) - 1}.get(self.way, size)
        blocks = {
            "blocks-odd": (3, 4096, 1 << 20),
            "blocks-huge": (1 << 31, 1 << 31, 1 << 31),
            "blocks-backwards": (4096, 4096, 512),
            "blocks-512": (512, 4096, 64 * KIB),
            "drip-read-blocks": (512, 512, 512),
        }.get(self.way)
        if self.way == "go-flood":
            while True:
                self.option(option, REP_INFO, struct.pack(">H", 1) + b"name" * 100)
        if self.way == "go-huge":
            self.send(struct.pack(">QLLL", OPTION_REPLY, option, REP_INFO, 0xFFFFFFFF))
            self.send(bytes(KIB))
            raise Closed
        if self.way == "pour-infos":
            self.pour(self.reply(option, REP_INFO, struct.pack(">H", 99)))
        if self.way == "drip-infos":
            while True:
                self.drip(self.reply(option, REP_INFO, struct.pack(">H", 99)))
        if self.way == "go-magic":
            self.send(struct.pack(">QLLL", 1, option, REP_ACK, 0))
        if self.way == "go-other-option":
            self.option(99, REP_ACK)
        if self.way != "go-no-info":
            self.option(option, REP_INFO, struct.pack(">HQH", 0, size, flags))
        if blocks:
            self.option(option, REP_INFO, struct.pack(">HLLL", 3, *blocks))
        self.option(option, REP_ACK)
        return True

    def list(self, option):
        self.at("list")
        entry = self.reply(option, REP_SERVER, struct.pack(">L", 1) + b"x")
        if self.way == "pour-list":
            self.pour(entry)
        if self.way == "drip-list":
            while True:
                self.drip(entry)
        if self.way == "list-flood":
            names = [b"x" * 4000] * 5000
        elif self.way == "list-long":
            names = [b"\x1b]0;evil\x07\n" * 400]
        else:
            names = [b"a", b"\xff\n\x1b[2J"]
        for name in names:
            self.option(option, REP_SERVER, struct.pack(">L", len(name)) + name)
        self.option(option, REP_ACK)

    def option(self, option, kind, data=b""):
        self.send(self.reply(option, kind, data))

    def reply(self, option, kind, data):
        return struct.pack(">QLLL", OPTION_REPLY, option, kind, len(data)) + data

    # Requests

    def serve(self):
        magic, _, kind, cookie, offset, length = struct.unpack(">LHHQQL", self.receive(28))
        assert magic == REQUEST
        self.server.requests.append((kind, offset, length))
        if kind == DISCONNECT:
            raise Closed
        if offset + length > len(self.content):
            self.chunk(cookie, ERROR, struct.pack(">LH", EINVAL, 0), DONE)
        elif kind == READ:
            self.at("read")
            if self.way == "others-close-at-read":
                if self.number > 1:
                    self.server.has_closed.set()
                    raise Closed
                self.server.has_closed.wait()
            self.read(cookie, offset, length)
        elif kind == BLOCK_STATUS:
            self.at("status")
            self.status(cookie, offset, length)

    def chunk(self, cookie, kind, data=b"", flags=0, claimed=None):
        length = len(data) if claimed is None else claimed
        self.send(struct.pack(">LHHQL", STRUCTURED_REPLY, flags, kind, cookie, length) + data)

    def data(self, cookie, offset, length, flags=0):
        data = self.content[offset : offset + length].ljust(length, b"?")
        self.chunk(cookie, OFFSET_DATA, struct.pack(">Q", offset) + data, flags)

    def read(self, cookie, offset, length):
        way = getattr(self, self.way.replace("-", "_"), None) if "read" in self.way else None
        if way:
            way(cookie, offset, length)
        elif not self.structured:
            self.send(struct.pack(">LLQ", SIMPLE_REPLY, 0, cookie))
            self.send(self.content[offset : offset + length])
        else:
            self.data(cookie, offset, length, DONE)

    def read_magic(self, cookie, offset, length):
        self.send(struct.pack(">LHHQL", 0xBADBAD, DONE, OFFSET_DATA, cookie, 8 + length))

    def read_cookie(self, cookie, offset, length):
        self.data(cookie ^ 1 << 40, offset, length, DONE)

    def read_simple(self, cookie, offset, length):
        self.send(struct.pack(">LLQ", SIMPLE_REPLY, 0, cookie))
        self.send(self.content[offset : offset + length])

    def read_half_then_close(self, cookie, offset, length):
        head = struct.pack(">LHHQL", STRUCTURED_REPLY, DONE, OFFSET_DATA, cookie, 8 + length)
        self.send(head + struct.pack(">Q", offset) + self.content[offset : offset + length // 2])
        self.connection.shutdown(socket.SHUT_WR)
        raise Closed

    def read_half_then_stall(self, cookie, offset, length):
        head = struct.pack(">LHHQL", STRUCTURED_REPLY, DONE, OFFSET_DATA, cookie, 8 + length)
        self.send(head + struct.pack(">Q", offset) + self.content[offset : offset + length // 2])
        self.server.is_over.wait()

    def read_gap(self, cookie, offset, length):
        self.data(cookie, offset, length // 4)
        self.data(cookie, offset + length // 2, length - length // 2, DONE)

    def read_gap_at_start(self, cookie, offset, length):
        self.data(cookie, offset + 1, length - 1, DONE)

    def read_gap_at_end(self, cookie, offset, length):
        self.data(cookie, offset, length - 1, DONE)

    def read_nothing(self, cookie, offset, length):
        self.chunk(cookie, NONE, flags=DONE)

    def read_overlap(self, cookie, offset, length):
        self.data(cookie, offset, length // 2 + 1)
        self.data(cookie, offset + length // 2, length - length // 2, DONE)

    def read_twice(self, cookie, offset, length):
        self.data(cookie, offset, length)
        self.data(cookie, offset, length, DONE)

    def read_overlap_hole(self, cookie, offset, length):
        self.chunk(cookie, OFFSET_HOLE, struct.pack(">QL", offset + length // 2, length // 2))
        self.data(cookie, offset, length, DONE)

    def read_past(self, cookie, offset, length):
        self.data(cookie, offset, length + 1, DONE)

    def read_before(self, cookie, offset, length):
        self.chunk(
            cookie,
            OFFSET_DATA,
            struct.pack(">Q", (offset - 1) & (1 << 64) - 1) + bytes(length),
            DONE,
        )

    def read_elsewhere(self, cookie, offset, length):
        self.chunk(cookie, OFFSET_HOLE, struct.pack(">QL", (1 << 64) - 8, 16), DONE)

    def read_empty_piece(self, cookie, offset, length):
        self.data(cookie, offset, 0)
        self.data(cookie, offset, length, DONE)

    def read_endless(self, cookie, offset, length):
        while True:
            self.chunk(cookie, NONE)

    def read_endless_errors(self, cookie, offset, length):
        while True:
            self.chunk(cookie, ERROR, struct.pack(">LH", EIO, 0))

    def read_many_pieces(self, cookie, offset, length):
        for i in range(offset, offset + length, 2):
            self.data(cookie, i, min(2, offset + length - i))
        self.chunk(cookie, NONE, flags=DONE)

    def read_huge(self, cookie, offset, length):
        self.chunk(cookie, OFFSET_DATA, struct.pack(">Q", offset), DONE, claimed=0xFFFFFFFF)

    def read_as_status(self, cookie, offset, length):
        self.chunk(cookie, STATUS, struct.pack(">LLL", CONTEXT_ID, length, ZERO), DONE)

    def read_unknown_chunk(self, cookie, offset, length):
        self.chunk(cookie, 1234, b"?", DONE)

    def read_error(self, cookie, offset, length):
        message = b"disk \x1b[31m on fire\n"
        payload = struct.pack(">LH", EIO, len(message)) + message
        self.chunk(cookie, ERROR, payload, DONE)

    def read_error_at_end(self, cookie, offset, length):
        """Sends data, then an error for a part of it."""
        self.data(cookie, offset, length)
        self.chunk(cookie, ERROR_OFFSET, struct.pack(">LHQ", EIO, 0, offset + 1), DONE)

    def read_error_zero(self, cookie, offset, length):
        """Sends an error with error number 0."""
        self.chunk(cookie, ERROR, struct.pack(">LH", 0, 0), DONE)

    def drip_read(self, cookie, offset, length):
        data = struct.pack(">Q", offset) + self.content[offset : offset + length]
        head = struct.pack(">LHHQL", STRUCTURED_REPLY, DONE, OFFSET_DATA, cookie, len(data))
        self.drip(head + data)

    def drip_read_blocks(self, cookie, offset, length):
        """Answers every request steadily, but too slowly ever to finish."""
        for i in range(offset, offset + length, 8):
            self.server.is_over.wait(DRIP)
            self.data(cookie, i, 8)
        self.chunk(cookie, NONE, flags=DONE)

    def drip_read_pieces(self, cookie, offset, length):
        for i in range(offset, offset + length):
            self.server.is_over.wait(DRIP)
            self.data(cookie, i, 1)

    def drip_read_holes(self, cookie, offset, length):
        for i in range(offset, offset + length):
            self.server.is_over.wait(DRIP)
            self.chunk(cookie, OFFSET_HOLE, struct.pack(">QL", i, 1))

    def drip_read_errors(self, cookie, offset, length):
        while not self.server.is_over.wait(DRIP):
            self.chunk(cookie, ERROR, struct.pack(">LH", EIO, 0))

    def drip_read_message(self, cookie, offset, length):
        message = struct.pack(">LH", EIO, 4000) + b"x" * 4000
        head = struct.pack(">LHHQL", STRUCTURED_REPLY, DONE, ERROR, cookie, len(message))
        self.drip(head + message)

    def drip_read_after_some(self, cookie, offset, length):
        """Answers every second request at once."""
        if (offset // length) % 2:
            self.drip_read(cookie, offset, length)
        self.data(cookie, offset, length, DONE)

    def good_drip_read(self, cookie, offset, length):
        """Sends 64 KiB per second, like a slow line."""
        payload = struct.pack(">Q", offset) + self.content[offset : offset + length]
        self.send(struct.pack(">LHHQL", STRUCTURED_REPLY, DONE, OFFSET_DATA, cookie, len(payload)))
        for i in range(0, len(payload), 4 * KIB):
            self.server.is_over.wait(1 / 16)
            self.send(payload[i : i + 4 * KIB])

    def good_read_pieces(self, cookie, offset, length):
        step = max(1, length // 61)
        starts = list(range(offset, offset + length, step))
        self.random.shuffle(starts)
        for start in starts:
            self.data(cookie, start, min(step, offset + length - start))
        self.chunk(cookie, NONE, flags=DONE)

    def good_read_holes(self, cookie, offset, length):
        for start, size, flags in self.extents(offset, length):
            size = min(size, offset + length - start)
            if flags:
                self.chunk(cookie, OFFSET_HOLE, struct.pack(">QL", start, size))
            else:
                self.data(cookie, start, size)
        self.chunk(cookie, NONE, flags=DONE)

    def good_read_drops(self, cookie, offset, length):
        """Sends slowly, but with pauses too short to be treated as a dead connection."""
        payload = struct.pack(">Q", offset) + self.content[offset : offset + length]
        self.send(struct.pack(">LHHQL", STRUCTURED_REPLY, DONE, OFFSET_DATA, cookie, len(payload)))
        for i in range(0, len(payload), len(payload) // 3):
            self.server.is_over.wait(0.1)
            self.send(payload[i : i + len(payload) // 3])

    # Block status

    def extents(self, offset, length):
        """Yields (start, length, flags) of extents that begin in the range. The last may extend past its
        end."""
        unit, content = self.server.unit, self.content
        position = offset
        while position < offset + length:
            start, is_zero = position, None
            while position < len(content):
                end = min(position // unit * unit + unit, len(content))
                if is_zero is None:
                    is_zero = not any(content[position:end])
                elif is_zero == any(content[position:end]):
                    break
                position = end
            yield start, position - start, HOLE | ZERO if is_zero else 0

    def status(self, cookie, offset, length):
        size, end = len(self.content), offset + length
        honest = [(n, flags) for _, n, flags in self.extents(offset, length)]
        context, twice = CONTEXT_ID, False
        match self.way:
            case "status-error" | "good-status-error":
                return self.chunk(cookie, ERROR, struct.pack(">LH", EIO, 0), DONE)
            case "good-status-late-error" if offset > 0:
                return self.chunk(cookie, ERROR, struct.pack(">LH", EINVAL, 0), DONE)
            case "good-status-late-error" | "good-status-short":
                honest = honest[:1]
            case "good-status-in-bytes":
                n, flags = honest[0]
                honest = [(1, flags), (min(n - 1, 100 * KIB), flags)][: 2 if n > 1 else 1]
            case "good-status-hole-data":
                honest = [(n, flags & HOLE | (0 if flags else HOLE)) for n, flags in honest]
            case "status-zero-length":
                honest.insert(0, (0, ZERO))
            case "status-zero-length-last":
                honest.append((0, ZERO))
            case "status-past-end":
                honest = [(size - offset + 512, ZERO)]
            case "status-huge":
                honest = [(0xFFFFFFFF, ZERO)]
            case "status-more-than-asked":
                honest = [(length, ZERO), (512, ZERO)]
            case "status-empty":
                honest = []
            case "status-none":
                return self.chunk(cookie, NONE, flags=DONE)
            case "status-wrong-id":
                context = CONTEXT_ID + 1
            case "status-twice":
                twice = True
            case "status-endless":
                while True:
                    self.chunk(cookie, STATUS, struct.pack(">LLL", context + 1, length, 0))
            case "status-cut":
                return self.chunk(
                    cookie, STATUS, struct.pack(">LLLL", context, length, 0, 7)[:15], DONE
                )
            case "drip-status":
                payload = struct.pack(">L", context) + struct.pack(">LL", 512, 0) * (length // 512)
                head = struct.pack(">LHHQL", STRUCTURED_REPLY, DONE, STATUS, cookie, len(payload))
                return self.drip(head + payload)
            case "drip-statuses":
                while not self.server.is_over.wait(DRIP):
                    self.chunk(cookie, STATUS, struct.pack(">LLL", context + 1, length, 0))
            case "status-many":
                payload = struct.pack(">L", context) + struct.pack(">LL", 1, 0) * (8 * MIB - 8)
                return self.chunk(cookie, STATUS, payload, DONE)
            case "status-as-data":
                return self.data(cookie, offset, min(length, 512), DONE)
        assert offset < end
        payload = struct.pack(">L", context) + b"".join(struct.pack(">LL", *e) for e in honest)
        if twice:
            self.chunk(cookie, STATUS, payload)
        self.chunk(cookie, STATUS, payload, DONE)
