"""An HTTP server that violates the protocol, or changes what it serves, in ways that real servers do not."""

import functools
import gzip
import re
import socket
import struct
import threading
import time

from rogue_server import Closed

KIB = 1 << 10
MIB = 1 << 20

# Seconds between two bytes of a server that keeps the connection alive without making progress.
DRIP = 0.02

REASONS = {200: "OK", 206: "Partial Content", 302: "Found", 416: "Range Not Satisfiable", 503: "Service Unavailable"}


class RogueWebServer:
    """Serves `content` on a port of localhost, misbehaving in the way named `way`.

    A way that begins with `late-` is honest for the first request, and one with `good-` is allowed. `way` may also be a function
    that returns the way of each request by its number, from 1 on. `other` is a later version of the content. `requests` are the answered requests, by their method, target, header fields and range, and `misbehaved`
    counts the answers that were not honest.
    """

    def __init__(self, content, way, other=b""):
        self.content = content
        self.other = other
        self.way_of = way if callable(way) else functools.partial(self.same_way, way)
        self.is_over = threading.Event()
        self.lock = threading.Lock()
        self.connections = []
        self.requests = []
        self.misbehaved = 0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def url(self, target="/disk.img", host="127.0.0.1"):
        return f"http://{host}:{self.port}{target}"

    @staticmethod
    def same_way(way, number):
        return "honest" if number == 1 and way.startswith("late-") else way.removeprefix("late-")

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
            threading.Thread(target=Session(self, connection).run, daemon=True).start()


class Session:
    """One connection."""

    def __init__(self, server, connection):
        self.server = server
        self.connection = connection
        self.content = server.content
        self.buffer = b""

    def run(self):
        try:
            while True:
                self.serve()
        except (Closed, OSError):
            pass
        self.connection.close()

    def serve(self):
        while b"\r\n\r\n" not in self.buffer:
            data = self.connection.recv(64 * KIB)
            if not data:
                raise Closed
            self.buffer += data
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        size = len(self.content)
        match = re.fullmatch(r"bytes=(\d+)-(\d*)", fields.get("range", ""))
        # Without a range, all bytes are asked for.
        first, end = (int(match[1]), min(int(match[2] or size) + 1, size)) if match else (0, size)
        with self.server.lock:
            self.server.requests.append((method, target, fields, (first, end)))
            self.number = len(self.server.requests)
        self.target, self.fields, self.is_ranged = target, fields, match is not None
        name = self.server.way_of(self.number)
        way = getattr(self, name.replace("-", "_"), None)
        if way is None:
            kind, _, value = name.partition("-")
            way = functools.partial(getattr(self, f"any_{kind}"), value)
        if name != "honest":
            with self.server.lock:
                self.server.misbehaved += 1
        way(first, end)

    # Honest parts

    def send(self, data):
        self.connection.sendall(data)

    def head(self, status, *fields, version="HTTP/1.1", length=None):
        """Sends the head of an answer. A field is text with its name."""
        lines = [f"{version} {status} {REASONS.get(status, 'Unknown')}", *fields]
        if length is not None:
            lines.append(f"Content-Length: {length}")
        self.send("\r\n".join([*lines, "", ""]).encode("latin-1"))

    def range(self, first, end, size=None):
        return f"Content-Range: bytes {first}-{end - 1}/{len(self.content) if size is None else size}"

    def partial(self, first, end, *fields, tag='"v1"', content=None, **others):
        """Answers with a range, or with all bytes if none was asked for."""
        content = self.content if content is None else content
        body = content[first:end]
        fields = (f"ETag: {tag}", *fields) if tag else fields
        if not self.is_ranged:
            self.head(200, *fields, length=len(body), **others)
        elif not body:
            return self.head(416, f"Content-Range: bytes */{len(content)}", length=0)
        else:
            self.head(206, self.range(first, end, len(content)), *fields, length=len(body), **others)
        self.send(body)

    def honest(self, first, end):
        self.partial(first, end, "Accept-Ranges: bytes")

    def close(self):
        # A close would discard data that the client has not read yet.
        self.connection.shutdown(socket.SHUT_WR)
        raise Closed

    def reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise Closed

    def stall(self):
        self.server.is_over.wait()
        raise Closed

    def drip(self, data):
        """Sends one byte at a time, so that the connection is never silent for long."""
        for i in range(len(data)):
            if self.server.is_over.wait(DRIP):
                raise Closed
            self.send(data[i : i + 1])

    def pour(self, data):
        """Sends the same data forever, so that there is always something to receive."""
        data *= max(1, 64 * KIB // len(data))
        while not self.server.is_over.is_set():
            self.send(data)

    # Ranges

    def wrong_range(self, first, end):
        """Sends other bytes, and says so."""
        moved = max(0, min(first + 4 * KIB, len(self.content) - (end - first))) or 1
        self.partial(moved, moved + end - first)

    def wrong_start(self, first, end):
        self.head(206, self.range(first + 1, end + 1), 'ETag: "v1"', length=end - first)
        self.send(self.content[first:end])

    def wrong_end(self, first, end):
        self.head(206, self.range(first, max(first + 1, end - 1)), 'ETag: "v1"', length=end - first)
        self.send(self.content[first:end])

    def wrong_total(self, first, end):
        self.head(206, self.range(first, end, len(self.content) + 1), 'ETag: "v1"', length=end - first)
        self.send(self.content[first:end])

    def total_below_end(self, first, end):
        self.head(206, self.range(first, end, first), 'ETag: "v1"', length=end - first)
        self.send(self.content[first:end])

    def total_unknown(self, first, end):
        self.head(206, self.range(first, end, "*"), 'ETag: "v1"', length=end - first)
        self.send(self.content[first:end])

    def total_twice(self, first, end):
        """Has two fields that differ."""
        fields = (self.range(first, end), self.range(first + 1, end + 1))
        self.head(206, *fields, 'ETag: "v1"', length=end - first)
        self.send(self.content[first:end])

    RANGES = {
        "none": None, "empty": "", "words": "bytes all/some", "unit": "pages 0-1/2", "inverted": "bytes 9-3/100",
        "negative": "bytes -5-9/100", "huge": f"bytes 0-{1 << 64}/{1 << 65}", "largest": f"bytes 0-{(1 << 64) - 1}/{(1 << 64) - 1}",
        "unsatisfied": "bytes */100", "no-total": "bytes 0-9", "plus": "bytes +0-+9/+10",
    }  # fmt: skip

    def any_range(self, name, first, end):
        value = self.RANGES[name]
        fields = () if value is None else (f"Content-Range: {value}",)
        self.head(206, *fields, 'ETag: "v1"', length=end - first)
        self.send(self.content[first:end])

    def multipart(self, first, end):
        body = b"--x\r\n" + self.range(first, end).encode() + b"\r\n\r\n" + self.content[first:end] + b"\r\n--x--\r\n"
        self.head(206, "Content-Type: multipart/byteranges; boundary=x", 'ETag: "v1"', length=len(body))
        self.send(body)

    def good_less(self, first, end):
        """Sends fewer bytes than were asked for, and says so, which a server may do."""
        self.partial(first, first + max(1, (end - first) * 2 // 3))

    # Lengths

    def short(self, first, end):
        self.head(206, self.range(first, end), 'ETag: "v1"', length=end - first)
        self.send(self.content[first : (first + end) // 2])
        self.close()

    def length_less(self, first, end):
        """Announces and sends fewer bytes than the range has."""
        half = self.content[first : (first + end) // 2]
        self.head(206, self.range(first, end), 'ETag: "v1"', length=len(half))
        self.send(half)

    def length_more(self, first, end):
        self.head(206, self.range(first, end), 'ETag: "v1"', length=end - first + 1000)
        self.send(self.content[first:end] + b"x" * 1000)

    def long(self, first, end):
        """Sends bytes after the end of the answer."""
        self.honest(first, end)
        self.send(b"x" * 1000)

    LENGTHS = {"negative": "-1", "huge": str(1 << 64), "words": "many", "hex": "0x10", "list": "5, 6", "plus": "+5"}

    def any_length(self, name, first, end):
        self.head(206, self.range(first, end), 'ETag: "v1"', f"Content-Length: {self.LENGTHS[name]}")
        self.send(self.content[first:end])
        self.close()

    def lengths_differ(self, first, end):
        self.head(206, self.range(first, end), f"Content-Length: {(end - first) // 2}", 'ETag: "v1"', length=end - first)
        self.send(self.content[first:end])
        self.close()

    def length_and_chunks(self, first, end):
        self.head(206, self.range(first, end), "Transfer-Encoding: chunked", 'ETag: "v1"', length=end - first)
        self.send(self.chunk(self.content[first:end]) + b"0\r\n\r\n")

    def good_no_length(self, first, end):
        """The end of the connection is the end of the answer."""
        self.head(206, self.range(first, end), 'ETag: "v1"', "Connection: close")
        self.send(self.content[first:end])
        self.close()

    def short_no_length(self, first, end):
        self.head(206, self.range(first, end), 'ETag: "v1"', "Connection: close")
        self.send(self.content[first : (first + end) // 2])
        self.close()

    # Chunks

    def chunk(self, data):
        return b"%x\r\n%s\r\n" % (len(data), data)

    def good_chunks(self, first, end):
        self.head(206, self.range(first, end), 'ETag: "v1"', "Transfer-Encoding: chunked")
        step = max(1, (end - first) // 7)
        self.send(b"".join(self.chunk(self.content[at : min(at + step, end)]) for at in range(first, end, step)) + b"0\r\n\r\n")

    def chunks_short(self, first, end):
        """Lacks the last chunk, which is empty."""
        self.head(206, self.range(first, end), 'ETag: "v1"', "Transfer-Encoding: chunked")
        self.send(self.chunk(self.content[first : (first + end) // 2]))
        self.close()

    def chunks_less(self, first, end):
        self.head(206, self.range(first, end), 'ETag: "v1"', "Transfer-Encoding: chunked")
        self.send(self.chunk(self.content[first : (first + end) // 2]) + b"0\r\n\r\n")

    def chunks_more(self, first, end):
        self.head(206, self.range(first, end), 'ETag: "v1"', "Transfer-Encoding: chunked")
        self.send(self.chunk(self.content[first:end] + b"x") + b"0\r\n\r\n")

    SIZES = {"words": b"size\r\n", "huge": b"ffffffffffffffff1\r\n", "negative": b"-5\r\n", "largest": b"ffffffffffffffff\r\n"}

    def any_chunks(self, name, first, end):
        self.head(206, self.range(first, end), 'ETag: "v1"', "Transfer-Encoding: chunked")
        self.send(self.SIZES[name] + self.content[first:end])
        self.close()

    def chunks_endless(self, first, end):
        self.head(206, self.range(first, end), 'ETag: "v1"', "Transfer-Encoding: chunked")
        self.pour(self.chunk(b"x" * KIB))

    def chunks_trailers(self, first, end):
        """Sends fields after the last chunk, without an end."""
        self.head(206, self.range(first, end), 'ETag: "v1"', "Transfer-Encoding: chunked")
        self.send(self.chunk(self.content[first:end]) + b"0\r\n")
        self.pour(b"X-Field: 1\r\n")

    # Content that changes

    def changed_tag(self, first, end):
        self.partial(first, end, tag='"v2"', content=self.server.other)

    def changed_weak_tag(self, first, end):
        self.partial(first, end, tag='W/"v2"', content=self.server.other)

    def changed_no_tag(self, first, end):
        self.partial(first, end, tag=None, content=self.server.other)

    def changed_length(self, first, end):
        """Has the same tag, as a server does that makes it of the name."""
        longer = self.server.other + b"more"
        self.partial(first, end, content=longer)

    def mixed(self, first, end):
        """Two hosts with one name, of which one has the new version."""
        if self.number % 2:
            return self.honest(first, end)
        return self.changed_tag(first, end)

    DATES = ["Sat, 01 Nov 2025 10:00:00 GMT", "Sat, 01 Nov 2025 10:00:01 GMT"]

    def mixed_dates(self, first, end):
        content = self.content if self.number % 2 else self.server.other
        self.partial(first, end, f"Last-Modified: {self.DATES[self.number % 2]}", tag=None, content=content)

    def all_changed(self, first, end):
        """Answers with all bytes of the new version, as a server does whose version is not the one of If-Range."""
        self.head(200, 'ETag: "v2"', length=len(self.server.other))
        self.send(self.server.other)

    def all(self, first, end):
        self.head(200, 'ETag: "v1"', length=len(self.content))
        self.send(self.content)

    def good_no_tag(self, first, end):
        self.partial(first, end, tag=None)

    def good_date(self, first, end):
        self.partial(first, end, f"Last-Modified: {self.DATES[0]}", tag=None)

    def good_weak_tag(self, first, end):
        self.partial(first, end, tag='W/"v1"')

    # Statuses

    def any_status(self, number, first, end):
        self.head(int(number), 'ETag: "v1"', length=0)

    def status_503_for_a_day(self, first, end):
        self.head(503, "Retry-After: 86400", length=0)

    def status_503_with_a_tale(self, first, end):
        self.head(503, "Transfer-Encoding: chunked")
        self.pour(self.chunk(b"later "))

    def sometimes(self, fault, first, end):
        """Has a fault in every third answer."""
        if self.number % 3 == 2:
            fault()
        else:
            self.honest(first, end)

    def good_503(self, first, end):
        self.sometimes(lambda: self.head(503, "Retry-After: 0", length=0), first, end)

    def good_429(self, first, end):
        self.sometimes(lambda: self.head(429, "Retry-After: 0", length=0), first, end)

    def good_500(self, first, end):
        self.sometimes(lambda: self.head(500, length=0), first, end)

    def good_reset(self, first, end):
        self.sometimes(self.reset, first, end)

    def good_close(self, first, end):
        self.sometimes(self.close, first, end)

    def good_short(self, first, end):
        self.sometimes(lambda: self.short(first, end), first, end)

    def good_close_each(self, first, end):
        """Closes each connection after an answer without saying so."""
        self.honest(first, end)
        self.close()

    def good_old(self, first, end):
        self.partial(first, end, version="HTTP/1.0")
        self.close()

    # Redirects

    def redirect(self, location, status=302):
        self.head(status, *([f"Location: {location}"] if location is not None else []), length=0)

    def redirect_self(self, first, end):
        self.redirect(self.target)

    def redirect_circle(self, first, end):
        self.redirect("/b" if self.target == "/a" else "/a")

    def redirect_endless(self, first, end):
        self.redirect(f"/{self.number}")

    def redirect_nowhere(self, first, end):
        self.redirect(None)

    LOCATIONS = {
        "file": "file:///etc/passwd", "ftp": "ftp://127.0.0.1/disk.img", "nbd": "nbd://127.0.0.1/", "s3": "s3://bucket/disk.img",
        "empty": "", "words": "http://[::1", "port": "http://127.0.0.1:99999/", "control": "http://127.0.0.1/\x01", "host": "http:///x",
        "huge": "/" + "x" * MIB,
    }  # fmt: skip

    def any_redirect(self, name, first, end):
        self.redirect(self.LOCATIONS[name])

    def good_redirect(self, first, end):
        """Each of a few names leads to the next."""
        names = ["/disk.img", "/1", "/2", "/3"]
        at = names.index(self.target)
        if at < 3:
            return self.redirect(names[at + 1], (301, 302, 307)[at])
        return self.honest(first, end)

    # Heads

    def headers_huge(self, first, end):
        self.partial(first, end, "X-Field: " + "x" * MIB)

    def headers_many(self, first, end):
        self.partial(first, end, *(f"X-Field-{i}: 1" for i in range(100_000)))

    def headers_endless(self, first, end):
        self.send(b"HTTP/1.1 206 Partial Content\r\n")
        self.pour(b"X-Field: 1\r\n")

    def header_endless(self, first, end):
        self.send(b"HTTP/1.1 206 Partial Content\r\nX-Field: ")
        self.pour(b"x")

    def line_endless(self, first, end):
        self.pour(b"HTTP/1.1 206 ")

    def continue_endless(self, first, end):
        self.pour(b"HTTP/1.1 100 Continue\r\n\r\n")

    def continue_once(self, first, end):
        self.send(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
        self.honest(first, end)

    def no_head(self, first, end):
        self.send(self.content[first:end])
        self.close()

    def nothing(self, first, end):
        self.close()

    HEADS = {
        "nul": b"HTTP/1.1 206 Partial\r\nX-A: a\0b\r\n", "colon": b"HTTP/1.1 206 Partial\r\nno colon\r\n",
        "space": b"HTTP/1.1 206 Partial\r\nX A : b\r\n", "folded": b"HTTP/1.1 206 Partial\r\nX-A: b\r\n  c\r\n",
        "number": b"HTTP/1.1 2o6 Partial\r\n", "version": b"HTTP/9.9 206 Partial\r\n", "two": b"HTTP/2 206\r\n",
        "bytes": b"HTTP/1.1 206 \xff\xfe\r\nX-A: \xff\xfe\r\n", "escape": b"HTTP/1.1 206 \x1b[2J\r\nETag: \x1b[2J\r\n",
    }  # fmt: skip

    def any_head(self, name, first, end):
        fields = f"{self.range(first, end)}\r\nContent-Length: {end - first}\r\n\r\n"
        self.send(self.HEADS[name] + fields.encode() + self.content[first:end])

    # Encodings

    def gzip(self, first, end):
        body = gzip.compress(self.content[first:end], mtime=0)
        self.head(206, self.range(first, end), "Content-Encoding: gzip", 'ETag: "v1"', length=len(body))
        self.send(body)

    def gzip_all(self, first, end):
        """Answers a request for a range with all bytes, compressed."""
        body = gzip.compress(self.content, mtime=0)
        self.head(200, "Content-Encoding: gzip", 'ETag: "v1"', length=len(body))
        self.send(body)

    def gzip_range(self, first, end):
        """A range of the compressed bytes, as servers send it that compress first."""
        body = gzip.compress(self.content, mtime=0)
        end = min(end, len(body))
        self.head(206, self.range(first, end, len(body)), "Content-Encoding: gzip", 'ETag: "v1"', length=len(body[first:end]))
        self.send(body[first:end])

    def gzip_word(self, first, end):
        """Only says so."""
        self.partial(first, end, "Content-Encoding: gzip")

    def gzip_transfer(self, first, end):
        body = gzip.compress(self.content[first:end], mtime=0)
        self.head(206, self.range(first, end), "Transfer-Encoding: gzip, chunked", 'ETag: "v1"')
        self.send(self.chunk(body) + b"0\r\n\r\n")

    def good_identity(self, first, end):
        self.partial(first, end, "Content-Encoding: identity")

    # Time

    def stall_at_start(self, first, end):
        self.stall()

    def stall_in_head(self, first, end):
        self.send(b"HTTP/1.1 206 Partial Content\r\nETag: ")
        self.stall()

    def stall_in_body(self, first, end):
        self.head(206, self.range(first, end), 'ETag: "v1"', length=end - first)
        self.send(self.content[first : (first + end) // 2])
        self.stall()

    def reset_at_start(self, first, end):
        self.reset()

    def reset_in_head(self, first, end):
        self.send(b"HTTP/1.1 206 Partial Content\r\nETag: ")
        self.reset()

    def reset_in_body(self, first, end):
        self.head(206, self.range(first, end), 'ETag: "v1"', length=end - first)
        self.send(self.content[first : (first + end) // 2])
        self.reset()

    def drip_head(self, first, end):
        self.drip(b"HTTP/1.1 206 Partial Content\r\nX-Field: " + b"x" * KIB)

    def drip_body(self, first, end):
        self.head(206, self.range(first, end), 'ETag: "v1"', length=end - first)
        self.drip(self.content[first:end])

    def drip_chunks(self, first, end):
        self.head(206, self.range(first, end), 'ETag: "v1"', "Transfer-Encoding: chunked")
        for at in range(first, end):
            if self.server.is_over.wait(DRIP):
                raise Closed
            self.send(self.chunk(self.content[at : at + 1]))

    def good_slow(self, first, end):
        """Sends 1 MiB per second on each connection, like a slow line."""
        self.head(206, self.range(first, end), 'ETag: "v1"', length=end - first)
        for at in range(first, end, 64 * KIB):
            time.sleep(1 / 16)
            self.send(self.content[at : min(at + 64 * KIB, end)])


# Ways with a value of a table.
KINDS = ("range", "length", "chunks", "redirect", "head")
TABLES = (Session.RANGES, Session.LENGTHS, Session.SIZES, Session.LOCATIONS, Session.HEADS)
NAMED = [f"{kind}-{name}" for kind, table in zip(KINDS, TABLES) for name in table]
