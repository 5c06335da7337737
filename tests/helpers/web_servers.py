"""HTTP servers and a proxy for the tests: real ones on ports that the system chooses, without privileges, with their logs.

No server outlives the tests, as in servers.py.
"""

import collections
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.parse

import servers

NOBODY = 65534

# `status` and `bytes` are the answer's, without headers. `range` and `authorization` are the fields of the request.
Request = collections.namedtuple("Request", "method target range status bytes authorization")

# A log is text with these fields between tabs, as nginx and Apache write it.
NGINX_LOG = r"$request_method\t$request_uri\t$http_range\t$status\t$body_bytes_sent\t$http_authorization"
APACHE_LOG = r"%m\t%U%q\t%{Range}i\t%>s\t%B\t%{Authorization}i"

APACHE_MODULES = ["mpm_event", "authz_core", "ssl", "socache_shmcb", "headers", "alias", "setenvif", "deflate", "filter"]


class WebServers:
    """Starts servers, and kills them at the end.

    Files to serve must be readable for the user nobody if the tests are run by root.
    """

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="web."))
        self.folder.chmod(0o755)
        self.processes = []

    def close(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
        shutil.rmtree(self.folder)

    def start(self, kind, root, tls=None, more="", port=None):
        """Starts a server of a kind (KINDS) for a folder.

        `tls` is a folder of server_certificates(). `more` is a part of the server's configuration. By default, the system
        chooses the port.
        """
        for _ in range(10):
            chosen = port or servers.free_port()
            folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{kind}.", dir=self.folder))
            command = KINDS[kind](folder, chosen, pathlib.Path(root).absolute(), tls, more)
            process = self.run(folder, command, as_nobody=kind != "python")
            if servers.wait_for(chosen, process):
                return WebServer(kind, chosen, process, folder, tls is not None)
        raise AssertionError((kind, command, (folder / "output").read_text()))

    def run(self, folder, command, as_nobody):
        """Starts a process that can write to its folder."""
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if as_nobody and os.geteuid() == 0 else {}
        if user:
            for path in (folder, *folder.iterdir()):
                shutil.chown(path, NOBODY, NOBODY)
        with open(folder / "output", "wb") as output:
            process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=folder,
                env=os.environ | {"HOME": str(folder)},
                # After the change of the user, which clears it.
                preexec_fn=lambda: servers.LIBC.prctl(servers.PR_SET_PDEATHSIG, signal.SIGKILL),
                **user,
            )
        self.processes.append(process)
        return process


class WebServer:
    """A server, by its port."""

    def __init__(self, kind, port, process, folder, tls):
        self.kind = kind
        self.port = port
        self.process = process
        self.folder = folder
        self.tls = tls

    def url(self, name="", host="localhost", user="", **query):
        """Returns the URL of a file in the folder that is served."""
        scheme = "https" if self.tls else "http"
        query = urllib.parse.urlencode(query)
        user = user and user + "@"
        return f"{scheme}://{user}{host}:{self.port}/{urllib.parse.quote(str(name))}" + (query and "?" + query)

    def stop(self):
        """Ends the server after it has written its log."""
        self.process.send_signal(signal.SIGQUIT if self.kind == "nginx" else signal.SIGTERM)
        self.process.wait(servers.START_TIMEOUT)

    def requests(self, name=None):
        """Stops the server and returns its requests, all or the requests of a file."""
        self.stop()
        found = list(LOGS[self.kind](self.folder))
        if name is None:
            return found
        path = "/" + urllib.parse.quote(str(name))
        return [request for request in found if request.target.split("?")[0] == path]

    def connections(self):
        """Stops a proxy and returns the hosts that it was asked to connect to, and the URLs that it was asked for."""
        self.stop()
        text = (self.folder / "log").read_text()
        return re.findall(r"Request \(file descriptor \d+\): (?:GET|HEAD|CONNECT) (\S+) HTTP", text)


def nginx(folder, port, root, tls, more):
    """One process, because the workers of a killed master live on."""
    encryption = f"ssl_certificate {tls}/server-cert.pem; ssl_certificate_key {tls}/server-key.pem;" if tls else ""
    temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    (folder / "nginx.conf").write_text(f"""
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/errors;
events {{ worker_connections 1000; }}
http {{
    log_format tests "{NGINX_LOG}";
    access_log {folder}/log tests;
    {" ".join(f"{name}_temp_path {folder}/{name};" for name in temporary)}
    default_type application/octet-stream;
    server {{
        listen 127.0.0.1:{port}{" ssl" if tls else ""};
        {encryption}
        root {root};
        {more}
    }}
}}
""")
    return ["nginx", "-p", folder, "-c", folder / "nginx.conf", "-e", folder / "errors"]


def apache(folder, port, root, tls, more):
    """One process with threads (-X)."""
    modules = "\n".join(f"LoadModule {it}_module /usr/lib/apache2/modules/mod_{it}.so" for it in APACHE_MODULES)
    encryption = f"SSLEngine on\nSSLCertificateFile {tls}/server-cert.pem\nSSLCertificateKeyFile {tls}/server-key.pem"
    (folder / "apache.conf").write_text(f"""
{modules}
ServerRoot {folder}
ServerName localhost
Listen 127.0.0.1:{port}
PidFile {folder}/pid
DefaultRuntimeDir {folder}
Mutex file:{folder}
ErrorLog {folder}/errors
LogFormat "{APACHE_LOG}" tests
CustomLog {folder}/log tests
DocumentRoot {root}
{encryption if tls else ""}
{more}
""")
    return ["apache2", "-X", "-f", folder / "apache.conf"]


def caddy(folder, port, root, tls, more):
    """A server in Go, whose package net/http serves the files."""
    encryption = f"tls {tls}/server-cert.pem {tls}/server-key.pem" if tls else ""
    (folder / "Caddyfile").write_text(f"""
{{
    admin off
    auto_https off
    storage file_system {folder}
    servers {{
        log_credentials
    }}
}}
{"https" if tls else "http"}://:{port} {{
    bind 127.0.0.1
    {encryption}
    root * {root}
    log {{
        output file {folder}/log
        format json
    }}
    {more}
    file_server
}}
""")
    return ["caddy", "run", "--config", folder / "Caddyfile", "--adapter", "caddyfile"]


def python(folder, port, root, tls, more):
    """A server without ranges, which closes each connection after the answer. Its Python may be one that only this user can run."""
    assert tls is None and not more
    return [sys.executable, "-u", "-m", "http.server", port, "--bind", "127.0.0.1", "--directory", root]


def tinyproxy(folder, port, root, tls, more):
    """A proxy, which connects to all hosts and ports."""
    assert tls is None
    (folder / "tinyproxy.conf").write_text(f"""
Port {port}
Listen 127.0.0.1
LogFile "{folder}/log"
LogLevel Info
PidFile "{folder}/pid"
MaxClients 100
Timeout 60
DisableViaHeader Yes
{more}
""")
    return ["tinyproxy", "-d", "-c", folder / "tinyproxy.conf"]


KINDS = {"nginx": nginx, "apache": apache, "caddy": caddy, "python": python, "tinyproxy": tinyproxy}


def text_log(folder):
    for line in (folder / "log").read_text().splitlines():
        method, target, extent, status, length, authorization = line.split("\t")
        fields = ["" if it == "-" else it for it in (extent, authorization)]
        yield Request(method, target, fields[0], int(status), int(length), fields[1])


def caddy_log(folder):
    for line in (folder / "log").read_text().splitlines():
        entry = json.loads(line)
        if "request" in entry:
            request = entry["request"]
            fields = [request["headers"].get(name, [""])[0] for name in ("Range", "Authorization")]
            yield Request(request["method"], request["uri"], fields[0], entry["status"], entry["size"], fields[1])


def python_log(folder):
    """It has no sizes and no fields."""
    for method, target, status in re.findall(r'"(\S+) (\S+) HTTP/1\.\d" (\d+) ', (folder / "output").read_text()):
        yield Request(method, target, "", int(status), 0, "")


LOGS = {"nginx": text_log, "apache": text_log, "caddy": caddy_log, "python": python_log}


def server_certificates(folder, authority, template="dns_name = localhost\nip_address = 127.0.0.1\n", **options):
    """Creates a folder like servers.make_server_certificate(), for servers that run as another user."""
    servers.make_server_certificate(folder, authority, template, **options)
    folder.chmod(0o755)
    for path in folder.iterdir():
        path.chmod(0o644)
    return folder


def repeated(requests):
    """Returns how many bytes were sent more than once, by the ranges of requests for one file."""
    extents = sorted(
        (int(first), int(last) + 1)
        for first, last in re.findall(r"bytes=(\d+)-(\d+)", " ".join(request.range for request in requests))
    )
    twice = position = 0
    for start, end in extents:
        twice += max(0, min(position, end) - start)
        position = max(position, end)
    return twice
