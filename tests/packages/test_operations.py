"""contrib/systemd: the script with real check files and images, its textfile, and the units in a systemd of their own."""

import collections
import json
import os
import re
import shutil
import signal
import subprocess
import time

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

import booted
import images
from commands import HANG, ROOT, blksum_path

FOLDER = ROOT / "contrib/systemd"
SCRIPT = FOLDER / "blksum-check"
CONTENT = b"content"

# `systemd-analyze security` goes from 0 to 10, and its option from 0 to 100.
MAX_EXPOSURE = 8

# Names of all kinds that lines can have: escaped, not UTF-8, like a tag, like fields of JSON.
NAMES = [
    b"plain.img",
    b" leading space",
    b"two\nlines",
    b"back\\slash",
    b"carriage\r",
    b"tab\tand \"quotes\"",
    b"caf\xe9.img",
    b"(parens) = 00",
    b"SHA256 (x) = 00",
    b'","status":"failed","x":"',
    b"-f",
    b"#comment",
    b"\x01\x7f",
]


class Host:
    """A folder of images, their check file, and the folders that systemd makes for the unit."""

    def __init__(self, folder, blksum):
        self.folder = folder
        self.blksum = blksum
        for name in ["images", "state", "runtime", "bin"]:
            (folder / name).mkdir()
        self.sums = folder / "SUMS"
        self.textfile = folder / "state/vms.prom"
        self.log = folder / "log"
        # Keeps the lines that blksum was given.
        self.put_blksum(f'for file; do :; done; cat "$file" >> {self.log}; exec {blksum.path} "$@"')

    def put_blksum(self, script):
        (self.folder / "bin/blksum").write_text(f"#!/bin/sh\n{script}\n")
        (self.folder / "bin/blksum").chmod(0o755)

    def add(self, *names, tag="--tag"):
        """Makes images, and adds their lines to the check file."""
        for name in names:
            (self.folder / "images" / os.fsdecode(name)).write_bytes(CONTENT + name)
        with open(self.sums, "ab") as sums:
            result = self.blksum(*filter(None, [tag]), "--", *names, cwd=self.folder / "images")
            assert result.returncode == 0, result
            sums.write(result.stdout)

    def start(self, slices=1, *options, start_new_session=False, **settings):
        environment = {
            **os.environ,
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
            "CHECK_FILE": str(self.sums),
            "FOLDER": str(self.folder / "images"),
            "SLICES": str(slices),
            "STATE_DIRECTORY": str(self.folder / "state"),
            "RUNTIME_DIRECTORY": str(self.folder / "runtime"),
            "JOURNAL_STREAM": "1:2",
            **settings,
        }
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
        return subprocess.Popen([SCRIPT, "vms", *options], env=environment, start_new_session=start_new_session, **pipes)

    def end(self, process):
        """Returns the status, the lines for people, and the objects."""
        stdout, self.messages = process.communicate(timeout=HANG)
        lines = stdout.decode().splitlines()
        people = [line for line in lines if not line.startswith("<7>")]
        return process.returncode, people, [json.loads(line[3:]) for line in lines if line.startswith("<7>")]

    def run(self, *args, **settings):
        return self.end(self.start(*args, **settings))

    def checked(self):
        """The lines that blksum was given since the last call."""
        lines = self.log.read_bytes().splitlines(keepends=True) if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return [line for line in lines if line != b"# A slice of a check file\n"]

    def metrics(self):
        """The samples of the textfile, without their common prefix."""
        found = {}
        for family in text_string_to_metric_families(self.textfile.read_text()):
            assert family.type == "gauge" and family.documentation
            for sample in family.samples:
                assert sample.labels.pop("check") == "vms"
                key = sample.labels.get("result") or sample.name.removeprefix("blksum_check_")
                found[key] = sample.value
        return found


@pytest.fixture
def host(workdir, blksum):
    return Host(workdir, blksum)


@pytest.mark.slow
@pytest.mark.parametrize("slices", [1, 3, 7, 13, 100])
@pytest.mark.parametrize("tag", ["--tag", None])
def test_all_slices_together_have_every_entry_once(host, slices, tag):
    host.add(*NAMES, tag=tag)
    lines = host.sums.read_bytes().splitlines(keepends=True)
    for _ in range(2):
        found, runs = [], 0
        while len(found) < len(lines):
            status, _, objects = host.run(slices)
            assert status == 0, (objects, host.messages)
            found += host.checked()
            runs += 1
            expected = {"slice": runs, "slices": host.metrics()["slices"], "listed": len(lines)}
            assert expected.items() <= objects[-1].items() and host.metrics()["slice"] == runs
        assert sorted(found) == sorted(lines) and runs == host.metrics()["slices"] <= slices


def test_lines_of_one_image_are_in_one_slice(host):
    host.add(*NAMES)
    with open(host.sums, "ab") as sums:
        for digest in ["sha1", "blake3"]:
            sums.write(host.blksum("-d", digest, "--tag", "--", *NAMES, cwd=host.folder / "images").stdout)
    for _ in NAMES:
        assert host.run(len(NAMES))[0] == 0
        assert len(host.checked()) == 3 and host.metrics()["ok"] == 3


@pytest.mark.slow
def test_no_image_waits_longer_when_lines_come_and_go(host):
    nights = 5
    host.add(*[b"%02d" % number for number in range(20)])
    last = collections.Counter()
    for night in range(1, 40):
        # New names are before, between and after the others, and go again.
        host.add(b"%02d-%d" % (night * 7 % 20, night))
        assert host.run(nights)[0] == 0
        for line in host.checked():
            last[line] = night
        lines = host.sums.read_bytes().splitlines(keepends=True)
        for line in lines[:20]:
            assert night - last[line] <= nights, line
        host.sums.write_bytes(b"".join(lines[:20] + lines[20:][-6:]))


def test_results(host):
    """Each image that is not well has a line, an object and a number."""
    host.add(b"good", b"damaged\nimage", b"gone", b"used")
    (host.folder / "images/damaged\nimage").write_bytes(b"x")
    (host.folder / "images/gone").unlink()
    with open(host.sums, "a") as sums:
        sums.write("# a comment\n\nno checksum\n")
    used = host.folder / "images/used"
    writer = subprocess.Popen(["qemu-io", "-f", "raw", used], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    writer.stdin.write(b"length\n")
    writer.stdin.flush()
    writer.stdout.readline()
    status, people, objects = host.run()
    writer.communicate()
    assert status == 1
    assert people[0] == '<3>"damaged\\nimage": FAILED: the content does not match the check file'
    assert people[1].startswith("<3>slice 1 of 1: 1 match, 1 FAILED, 1 in use or changed, 1 unreadable, 1 malformed; ")
    *problems, summary = objects
    assert {it["name"]: it["status"] for it in problems} == {"damaged\nimage": "failed", "gone": "error", "used": "error"}
    for message in [b"gone: No such file", b"used: is in use by a process"]:
        assert message in host.messages
    metrics = host.metrics()
    for result in ["ok", "failed", "changed", "unreadable", "malformed"]:
        assert metrics[result] == summary[result] == 1
    assert metrics["last_run_exit_status"] == summary["exit_status"] == 1
    assert time.time() - metrics["last_run_timestamp_seconds"] < HANG


@pytest.mark.parametrize("line", ["3ea2  gone.img", "no checksum", "0" * 64 + "  gone.img"])
def test_what_is_not_checked_is_trouble(host, line):
    host.add(b"good")
    with open(host.sums, "a") as sums:
        sums.write(f"{line}\n")
    assert host.run()[0] == 3
    # A slice of its own does not stay for ever, either.
    assert sorted(host.run(2)[0] for _ in range(2)) == [0, 3]


@pytest.mark.parametrize(
    "settings",
    [
        {"CHECK_FILE": "gone"},
        {"CHECK_FILE": "/dev/null"},
        {"FOLDER": "gone"},
        {"SLICES": "0"},
        {"SLICES": "many"},
    ],
)
def test_wrong_settings(host, settings):
    host.add(b"good")
    assert host.run()[0] == 0
    status, people, _ = host.run(**settings)
    assert status == 2 and people[0].startswith("<3>blksum-check: "), people
    assert host.metrics()["last_run_exit_status"] == 2 and host.metrics()["ok"] == 0


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_needs_no_settings(option):
    result = subprocess.run([SCRIPT, option], capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("Usage: blksum-check NAME ") and "blksum-check(8)" in result.stdout


def test_wrong_options(host):
    host.add(b"good")
    assert host.run(1, "--no-such-option")[0] == 2
    assert host.metrics()["last_run_exit_status"] == 2
    assert not (host.folder / "state/vms.state").exists()


def wait_for(path, process):
    end = time.monotonic() + HANG
    while not path.exists():
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.01)


def test_a_stopped_run_is_reported_and_continued(host):
    host.add(b"1", b"2", b"3", b"4", b"5")
    mark = host.folder / "mark"
    host.put_blksum(f'{host.blksum.path} "$@" | head -n 2; touch {mark}; exec sleep {HANG}')
    process = host.start()
    wait_for(mark, process)
    process.terminate()
    status, people, objects = host.end(process)
    assert status == 3 and people[-1].endswith(", stopped before the end") and objects[-1]["interrupted"] == 1
    metrics = host.metrics()
    assert metrics["last_run_interrupted"] == 1 and metrics["ok"] == 2 and metrics["malformed"] == 0
    host.put_blksum(f'exec {host.blksum.path} "$@"')
    assert host.run()[0] == 0 and host.metrics()["ok"] == 3
    (host.folder / "state/vms.state").write_text("1000000000\n2\n")
    assert host.run(2)[0] == 0
    # The round is the one that was begun then.
    assert host.metrics()["round_start_timestamp_seconds"] == 1000000000
    assert (host.folder / "state/vms.state").read_text() == "1000000000\n5\n"


def test_an_image_on_which_blksum_dies_keeps_no_other_waiting(host):
    host.add(b"1", b"2", b"3")
    host.put_blksum("kill -KILL $$")
    for last in ["1", "2", "3", "1"]:
        assert host.run(1)[0] == 3
        assert (host.folder / "state/vms.state").read_text().splitlines()[1] == last
        assert host.metrics()["last_run_interrupted"] == 1


def test_a_killed_run_leaves_the_textfile_whole(host):
    host.add(b"1", b"2")
    assert host.run(2)[0] == 0
    before = host.textfile.read_bytes(), (host.folder / "state/vms.state").read_bytes()
    mark = host.folder / "mark"
    host.put_blksum(f"touch {mark}; exec sleep 1")
    process = host.start(2)
    wait_for(mark, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert (host.textfile.read_bytes(), (host.folder / "state/vms.state").read_bytes()) == before
    # The next run takes the slice that was not done.
    host.put_blksum(f'exec {host.blksum.path} "$@"')
    assert host.run(2)[2][-1]["slice"] == 2


def put(host, program, script):
    """Puts a program before the real one."""
    real = shutil.which(program)
    (host.folder / "bin" / program).write_text(f"#!/bin/sh\n{script.format(real=real)}\n")
    (host.folder / "bin" / program).chmod(0o755)


@pytest.mark.parametrize("program", ["cat", "awk", "sort"])
def test_a_check_file_that_is_not_read_whole_is_trouble(host, program):
    """The program writes the first line, and is killed, as for want of memory, or ends with an error."""
    host.add(b"1", b"2", b"3")
    for end in ["kill -KILL $$", "exit 1"]:
        probe = 'case "$*" in *"exit length"*) exec {real} "$@";; esac; '
        put(host, program, probe + '{real} "$@" | head -n 1; ' + end)
        status, people, objects = host.run()
        assert status == 2 and people[0].startswith("<3>blksum-check: cannot "), people
        assert host.metrics()["last_run_exit_status"] == 2 and objects[-1]["ok"] == 0
    (host.folder / "bin" / program).unlink()
    assert host.run()[0] == 0 and host.metrics()["ok"] == 3


def test_results_that_are_lost_are_trouble(host):
    host.add(b"1", b"2")
    assert host.run()[0] == 0
    put(host, "awk", 'case "$*" in *counts=*) exec cat > /dev/null;; esac; exec {real} "$@"')
    status, people, objects = host.run()
    assert status == 2 and people[0] == "<3>blksum-check: the results of blksum were lost"
    assert host.metrics()["ok"] == objects[-1]["ok"] == 0


def test_a_run_that_is_killed_before_the_textfile_is_repeated(host):
    """Otherwise a damaged image would be in no textfile."""
    host.add(b"1", b"2", b"3")
    assert host.run(3)[0] == 0
    (host.folder / "images/2").write_bytes(b"x")
    put(host, "mv", 'case "$*" in *.prom) kill -KILL $PPID;; esac; exec {real} "$@"')
    process = host.start(3)
    assert host.end(process)[0] == -signal.SIGKILL
    (host.folder / "bin/mv").unlink()
    assert host.run(3)[0] == 1 and host.metrics()["failed"] == 1 and host.metrics()["slice"] == 2


def test_a_signal_to_all_processes_at_any_time_ends_the_run(host):
    """As systemd sends it. Whatever was reported is in the textfile."""
    host.add(*[b"%02d" % number for number in range(20)])
    (host.folder / "images/00").write_bytes(b"x")
    for delay in range(30):
        host.textfile.unlink(missing_ok=True)
        (host.folder / "state/vms.state").unlink(missing_ok=True)
        process = host.start(start_new_session=True)
        time.sleep(delay / 500)
        os.killpg(process.pid, signal.SIGTERM)
        _, people, _ = host.end(process)
        reported = people and people[-1].startswith("<3>slice 1 of 1: ")
        assert not reported or host.metrics()["failed"] == people[-1].count(", 1 FAILED"), people
        assert reported or not (host.folder / "state/vms.state").exists(), people


OLD = b"%s %s\n"


@pytest.mark.parametrize("slices", [1, 2, 7])
def test_slices_do_not_change_how_lines_are_read(host, slices):
    """The first line without a tag decides for those after it, wherever they are sorted to."""
    host.add(b"1", b"2", b"3", tag=None)
    (host.folder / "images/ 2").write_bytes((host.folder / "images/2").read_bytes())
    good = host.sums.read_bytes()
    with open(host.sums, "ab") as sums:
        # Malformed after those, and sorted before 2.
        sums.write(OLD % (b"0" * 64, b"1x") + OLD % (b"0" * 64, b""))
    (host.folder / "images/2").write_bytes(b"x")
    results = [host.run(slices) for _ in range(slices)]
    objects = [it for _, _, found in results for it in found[:-1]]
    assert [(it["name"], it["status"]) for it in objects] == [("2", "failed")] * len(objects) and objects
    assert max(found[-1]["malformed"] for _, _, found in results) >= 1
    # With the old form first, a second space belongs to the name.
    host.sums.write_bytes(b"".join(OLD % tuple(line.split(b"  ")) for line in good.splitlines()) + good.splitlines()[1] + b"\r\n")
    (host.folder / "state/vms.state").unlink()
    counts = collections.Counter()
    nights = 4 if slices > 1 else 1
    for _ in range(nights):
        _, _, found = host.run(nights)
        counts.update({key: found[-1][key] for key in ["ok", "failed", "unreadable", "malformed"]})
    assert counts == {"ok": 3, "failed": 1, "unreadable": 0, "malformed": 0}, counts


@pytest.mark.slow
@pytest.mark.parametrize("line", [b"QFI\xfbxxxx(02", b"junk(02" + bytes(17 << 20), b"7" * 64 + b"  02" + b"x" * (17 << 20)])
def test_a_malformed_line_hides_no_other(host, line):
    """It is sorted to the start of the slice, and looks like an image, or is longer than a slice may be."""
    host.add(b"01", b"03", b"04")
    host.sums.write_bytes(line + b"\n" + host.sums.read_bytes())
    (host.folder / "images/03").write_bytes(b"x")
    found = [host.run(2) for _ in range(2)]
    assert sorted(status for status, _, _ in found) == [1, 3] or [status for status, _, _ in found] == [0, 1], found
    assert sum(objects[-1]["failed"] for _, _, objects in found) == 1
    assert sum(objects[-1]["malformed"] for _, _, objects in found) == 1


def test_a_damaged_state_begins_a_new_round(host):
    host.add(b"1", b"2")
    (host.folder / "state/vms.state").write_text("# HELP\n")
    status, people, _ = host.run(2)
    assert status == 0 and people[0].endswith("/vms.state is damaged: a new round begins")
    assert host.run(2)[1][0].startswith("<6>slice 2 of 2: ")


@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_the_textfile_is_written_through_nothing_that_is_there(host, kind):
    """Its folder may be another user's."""
    host.add(b"1", b"2")
    folder = host.folder / "textfiles"
    folder.mkdir()
    temporary = folder / "vms.prom.tmp"
    if kind == "link":
        temporary.symlink_to(host.folder / "images/1")
    elif kind == "fifo":
        os.mkfifo(temporary)
    else:
        (folder / "vms.prom").symlink_to(host.folder / "images", target_is_directory=True)
    assert host.run(TEXTFILE_FOLDER=str(folder))[0] == 0
    assert [path.name for path in folder.iterdir()] == ["vms.prom"]
    assert (folder / "vms.prom").read_text().startswith("# HELP") and not (folder / "vms.prom").is_symlink()
    assert (folder / "vms.prom").stat().st_mode & 0o777 == 0o644
    assert (host.folder / "images/1").read_bytes() == CONTENT + b"1"


def test_a_state_that_is_no_file(host):
    host.add(b"1")
    (host.folder / "state/vms.state").mkdir()
    status, people, _ = host.run()
    assert status == 2 and people[0].startswith("<3>blksum-check: cannot read ")


def test_a_second_carriage_return_belongs_to_the_name(host):
    """Of HEX NAME, too."""
    host.add(b"n", b"n\r", tag=None)
    digest = host.sums.read_bytes().split()[0]
    host.sums.write_bytes(digest + b" n\r\r\n")
    status, people, _ = host.run()
    assert status == 1 and people[0].startswith('<3>"n\\r": FAILED'), people


def test_textfile_that_cannot_be_written(host):
    """The run is repeated, since its result would be in no textfile."""
    host.add(b"1", b"2")
    for _ in range(2):
        status, people, _ = host.run(2, TEXTFILE_FOLDER=str(host.folder / "gone"))
        assert status == 3 and people[0].startswith("<3>cannot write ")
        assert people[1].startswith("<3>slice 1 of 2: ")


def test_alerts_use_metrics_that_there_are(host):
    host.add(b"1")
    host.run()
    rules = yaml.safe_load((FOLDER / "blksum-check.rules.yml").read_text())
    expressions = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    used = {name for text in expressions for name in re.findall(r"blksum_check_\w+", text)}
    names = {family.name for family in text_string_to_metric_families(host.textfile.read_text())}
    assert used and used <= names


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A root folder with the installed units and programs, and the targets that units of the system belong to."""
    if not shutil.which("systemd-analyze"):
        assert "CI" not in os.environ
        pytest.skip("no systemd-analyze")
    root = tmp_path_factory.mktemp("root")
    images.run("make", "-s", "-C", str(ROOT), "install-systemd", f"DESTDIR={root}", "PREFIX=/usr")
    shutil.copy(blksum_path(), root / "usr/bin/blksum")
    for unit in ["sysinit.target", "basic.target", "timers.target", "shutdown.target", "time-set.target", "time-sync.target"]:
        (root / "usr/lib/systemd/system" / unit).write_text("[Unit]\n")
    return root


def test_units_are_valid(root):
    for kind in ["service", "timer"]:
        unit = f"/usr/lib/systemd/system/blksum-check@.{kind}"
        result = images.attempt("systemd-analyze", "verify", "--man=no", f"--root={root}", unit)
        assert (result.returncode, result.stderr) == (0, b""), result


@pytest.mark.parametrize("drop_in", [None, "no-capabilities.conf", "block-devices.conf"])
def test_exposure(root, drop_in):
    folder = root / "usr/lib/systemd/system/blksum-check@vms.service.d"
    shutil.rmtree(folder, ignore_errors=True)
    limit = MAX_EXPOSURE
    if drop_in:
        folder.mkdir()
        shutil.copy(FOLDER / drop_in, folder)
        limit = {"no-capabilities.conf": 4, "block-devices.conf": 10}[drop_in]
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", f"--root={root}"]
    result = images.attempt(*command, f"--threshold={limit}", "blksum-check@vms.service")
    assert result.returncode == 0, result.stdout.decode()
    result = images.attempt(*command, f"--threshold={limit - 2}", "blksum-check@vms.service")
    assert result.returncode == 1, result.stdout.decode()


def test_uninstall(root, tmp_path):
    images.run("make", "-s", "-C", str(ROOT), "install-systemd", f"DESTDIR={tmp_path}", "PREFIX=/usr")
    assert sum(path.is_file() for path in tmp_path.rglob("*")) == 5
    images.run("make", "-s", "-C", str(ROOT), "uninstall-systemd", f"DESTDIR={tmp_path}", "PREFIX=/usr")
    assert not any(path.is_file() for path in tmp_path.rglob("*"))


PREPARE = """
systemd-sysusers
cd /var/lib/libvirt/images
chmod 600 *
chown nobody b.img
blksum --tag -r . > /etc/blksum-check/vms.sums
printf x | dd of=b.img bs=1 seek=70000 conv=notrunc status=none
drop_in() {
    mkdir -p /etc/systemd/system/blksum-check@vms.service.d
    printf '%s\\n' '[Service]' "$@" > /etc/systemd/system/blksum-check@vms.service.d/test.conf
    systemctl daemon-reload
}
check() { systemctl start blksum-check@vms 2> /dev/null; systemctl show blksum-check@vms --value -p ExecMainStatus; }
"""


@pytest.fixture
def systemd(workdir):
    """Runs a script in a systemd of its own that has the unit, and returns the output."""
    booted.require()
    files = workdir / "files"
    images.run("make", "-s", "-C", str(ROOT), "install-systemd", f"DESTDIR={files}", "PREFIX=/usr")
    for name in ["blksum", "blkhash"]:
        shutil.copy(blksum_path().with_name(name), files / "usr/bin")
    (files / "etc/blksum-check").mkdir(parents=True)
    settings = ["CHECK_FILE=/etc/blksum-check/vms.sums", "FOLDER=/var/lib/libvirt/images", "SLICES=1", "OPTIONS=-v"]
    (files / "etc/blksum-check/vms.conf").write_text("\n".join([*settings, ""]))
    folder = files / "var/lib/libvirt/images"
    folder.mkdir(parents=True)
    for name in ["a.img", "b.img"]:
        (folder / name).write_bytes(os.urandom(2 << 20))
    images.convert(folder / "a.img", folder / "c.qcow2")
    # Images that refer to another file.
    images.qemu_img("create", "-q", "-f", "qcow2", "-b", "a.img", "-F", "raw", folder / "d.qcow2")
    images.qemu_img("convert", "-O", "vmdk", "-o", "subformat=monolithicFlat", folder / "a.img", folder / "e.vmdk")
    shutil.copytree(FOLDER, files / "contrib")

    return lambda script: booted.output(workdir, PREPARE + script)


@pytest.mark.root
def test_the_unit_runs_as_installed(systemd):
    """It reads images of other users, within its sandbox and blksum's, and the journal has the results."""
    output = systemd("""
        check
        journalctl -u blksum-check@vms -p err -o cat
        journalctl -u blksum-check@vms -p debug..debug -o cat
        journalctl -u blksum-check@vms -o cat --grep ' sandbox: '
        stat -c '%U %a %n' /var/lib/blksum-check/*
        systemctl start blksum-check@vms.timer && systemctl list-timers | grep -o blksum-check@vms.service
    """)
    status, failed, summary, problem, numbers, sandbox, textfile, state, timer = output.splitlines()[-9:]
    assert status == "1" and failed.startswith("./b.img: FAILED") and summary.startswith("slice 1 of 1: 5 match, 1 FAILED")
    assert json.loads(problem)["name"] == "./b.img" and json.loads(numbers)["failed"] == 1
    assert ", system calls filtered, no capabilities but DAC_READ_SEARCH, " in sandbox
    assert textfile == "blksum-check 644 /var/lib/blksum-check/vms.prom"
    assert state == "blksum-check 600 /var/lib/blksum-check/vms.state"
    assert timer == "blksum-check@vms.service"


MAPS = """
cp /contrib/blkhash-map@.* /etc/systemd/system
mkdir -p /etc/blkhash-map
printf 'IMAGE=/var/lib/libvirt/images/c.qcow2\\nCHANGES=--bitmap changes\\nPARTS=1\\n' > /etc/blkhash-map/vm.conf
systemctl daemon-reload
update() { systemctl start blkhash-map@vm 2> /dev/null; systemctl show blkhash-map@vm --value -p ExecMainStatus; }
cd /var/lib/libvirt/images
"""


@pytest.mark.root
def test_the_unit_of_maps(systemd):
    """It makes the map, updates it, and finds what the bitmap does not have."""
    output = systemd(MAPS + """
        qemu-img bitmap --add c.qcow2 changes && update
        qemu-io -c 'write -q -P 7 1M 64k' c.qcow2 && update
        blkhash map history /var/lib/blkhash-map/vm.blkmap | grep -c ' 1 of 32 blocks changed, 64.00 KiB'
        qemu-img bitmap --remove c.qcow2 changes && qemu-io -c 'write -q -P 9 512k 64k' c.qcow2
        qemu-img bitmap --add c.qcow2 changes && sed -i 's/^CHANGES=.*/CHANGES=--bitmap changes --trust --sample 0/' /etc/blkhash-map/vm.conf
        update; stat -c '%U %a' /var/lib/blkhash-map/vm.blkmap
    """)
    assert output.splitlines()[-5:] == ["0", "0", "1", "1", "blksum-check 600"]


HEALTH = """
cp /contrib/blkhash-check@.* /etc/systemd/system
mkdir -p /etc/blkhash-check
printf 'IMAGES=/var/lib/libvirt/images/health-*.qcow2\\nOPTIONS=--threads=1\\n' > /etc/blkhash-check/vms.conf
systemctl daemon-reload
check() { systemctl start blkhash-check@vms 2> /dev/null; systemctl show blkhash-check@vms --value -p ExecMainStatus; }
cd /var/lib/libvirt/images
"""


@pytest.mark.root
def test_the_unit_of_health(systemd, workdir):
    """It checks each image of a pattern, and the journal names what is damaged."""
    folder = workdir / "files/var/lib/libvirt/images"
    (folder / "good.img").touch()
    os.truncate(folder / "good.img", 8 << 20)
    images.run("mke2fs", "-q", "-t", "ext4", "-O", "metadata_csum", str(folder / "good.img"))
    content = bytearray((folder / "good.img").read_bytes())
    content[1024 + 0x78] ^= 1  # The name of the volume, in the superblock.
    (folder / "bad.img").write_bytes(content)
    for name in ("good", "bad"):
        images.convert(folder / f"{name}.img", folder / f"health-{name}.qcow2")
    output = systemd(HEALTH + """
        check
        journalctl -u blkhash-check@vms -o cat --grep 'superblock'
        rm health-bad.qcow2
        check
        systemctl start blkhash-check@vms.timer && systemctl list-timers | grep -o blkhash-check@vms.service
    """)
    failed, damage, whole, timer = output.splitlines()[-4:]
    assert (failed, whole, timer) == ("1", "0", "blkhash-check@vms.service")
    assert "health-bad.qcow2: disk: ext4: superblock" in damage


@pytest.mark.root
def test_drop_ins(systemd):
    output = systemd("""
        sed -i '/b.img/d' /etc/blksum-check/vms.sums
        check
        drop_in "$(cat /contrib/no-capabilities.conf)"; check
        chmod 644 *; check
        # qemu-nbd is a program that needs sockets.
        echo 'OPTIONS=--reader=qemu' >> /etc/blksum-check/vms.conf
        drop_in; check
        drop_in RestrictAddressFamilies=AF_UNIX; check
    """)
    assert output.splitlines()[-5:] == ["0", "3", "0", "3", "0"]


@pytest.mark.root
def test_a_unit_that_is_stopped(systemd):
    output = systemd("""
        printf '#!/bin/sh\\ntouch $RUNTIME_DIRECTORY/mark\\nexec sleep 100\\n' > /usr/bin/blksum
        chmod 755 /usr/bin/blksum
        systemctl start --no-block blksum-check@vms
        while [ ! -e /run/blksum-check/vms/mark ]; do sleep 0.1; done
        systemctl stop blksum-check@vms
        systemctl show blksum-check@vms --value -p ExecMainStatus
        grep ^blksum_check_last_run_interrupted /var/lib/blksum-check/vms.prom
        journalctl -u blksum-check@vms -p info -o cat
    """)
    status, metric, *lines = output.splitlines()[-3:]
    assert (status, metric) == ("3", 'blksum_check_last_run_interrupted{check="vms"} 1')
    assert lines[0].endswith(", stopped before the end")
