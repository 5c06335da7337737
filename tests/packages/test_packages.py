"""The packages of `make deb`, `rpm`, `tarball` and `container`, installed where nothing else is, and run."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

import booted
import c_project
import commands
import images
import roots
from commands import ROOT
from roots import SLOW

# The user of the container.
NOBODY = 65532

# Of a small Debian, with what the packages are used with.
TOOLS = ["bash-completion", "gcc", "libc6-dev", "libnbd-dev", "man-db", "pkg-config", "qemu-utils", "systemd", "zsh"]

# Files that every installation changes.
CHANGING = ("etc/ld.so.cache", "var/lib/dpkg", "var/cache", "var/log", "var/lib/apt", "tmp", "proc", "sys", "dev", "run")

# Packages of libraries.
LIBRARIES = ("libblkhash-dev", "libblkhash0", "libblksum-dev", "libblksum0")

# Files with the users of a system. A package leaves the user that it made.
USERS = ("etc/group", "etc/gshadow", "etc/passwd", "etc/shadow")

pytestmark = [pytest.mark.slow, pytest.mark.release, pytest.mark.network, pytest.mark.root]


def run(*command, **options):
    """Runs a command and returns its output."""
    done = subprocess.run(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SLOW, **options
    )
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout.decode(errors='replace')}"
    return done.stdout.decode()


def chroot(root, *command, **options):
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
    return run("chroot", root, *command, env=environment, **options)


def build(kind, folder):
    """Returns the packages of one kind, made of the build that the other tests use."""
    assert commands.BLKSUM.parent.name == "release", "packages are made of a release build"
    environment = {**os.environ, "TARGET_DIR": str(commands.BLKSUM.parent.parent)}
    for name in [name for name in environment if name.startswith("MAKE")]:
        del environment[name]
    run(ROOT / "packaging" / kind / "build", folder, env=environment)
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def debs(tmp_path_factory):
    return build("deb", tmp_path_factory.mktemp("deb"))


@pytest.fixture(scope="module")
def debian(tmp_path_factory):
    """A root with Debian, without our packages. It has the processes and devices of this machine."""
    root = tmp_path_factory.mktemp("debian") / "root"
    roots.make("bookworm", root, *TOOLS)
    (root / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
    return root


def listing(root):
    """The names in a root file system, and the content of small files."""
    found = {}
    for folder, folders, files in os.walk(root):
        place = os.path.relpath(folder, root)
        if place.startswith(CHANGING):
            folders.clear()
            continue
        for name in files:
            path = pathlib.Path(folder, name)
            is_file = path.is_file() and not path.is_symlink()
            found[os.path.join(place, name)] = hashlib.sha256(path.read_bytes()).hexdigest() if is_file else ""
        found.update({os.path.join(place, name): "folder" for name in folders})
    return {name: value for name, value in found.items() if not name.startswith(CHANGING)}


def make_images(folder, blksum):
    """Makes images of the same content and a check file that names them."""
    folder.mkdir()
    raw = folder / "disk.raw"
    with open(raw, "wb") as file:
        file.truncate(64 << 20)
        for offset in (0, 5 << 20, 40 << 20):
            file.seek(offset)
            file.write(os.urandom(1 << 20))
    names = ["disk.raw"]
    for form in ("qcow2", "vmdk", "vhdx", "vdi"):
        images.qemu_img("convert", "-O", form, raw, folder / f"disk.{form}")
        names.append(f"disk.{form}")
    with open(folder / "SUMS", "wb") as sums:
        subprocess.run([blksum, *names], cwd=folder, check=True, stdout=sums, timeout=commands.HANG)
    lines = (folder / "SUMS").read_text().splitlines()
    assert len({line.split()[0] for line in lines}) == 1, lines
    return names


def nightly_check(root, result):
    """Runs the nightly check of the images as its user, and looks at its textfile."""
    place = "/var/lib/blksum-check"
    chroot(root, "sh", "-c", f"mkdir -p {place} && chown blksum-check:blksum-check {place}")
    settings = ["CHECK_FILE=/images/SUMS", "SLICES=1", f"STATE_DIRECTORY={place}", f"RUNTIME_DIRECTORY={place}"]
    user = ["setpriv", "--reuid=blksum-check", "--regid=blksum-check", "--clear-groups"]
    answer = chroot(root, *user, "env", *settings, "blksum-check", "images")
    assert answer.splitlines()[0].startswith(f"slice 1 of 1: {result} match, 0 FAILED")
    assert f'result="ok"}} {result}\n' in (root / "var/lib/blksum-check/images.prom").read_text()


def test_lintian_finds_nothing(debs):
    assert [path.name.split("_")[0] for path in debs] == ["blksum-check", "blksum", *LIBRARIES]
    run("lintian", "--fail-on=error,warning", "--suppress-tags=bad-distribution-in-changes-file", *debs)


def test_debian(debs, debian, tmp_path):
    before = listing(debian)
    users = (debian / "etc/passwd").read_text()
    names = make_images(debian / "images", commands.BLKSUM)
    (debian / "debs").mkdir()
    for deb in debs:
        shutil.copy(deb, debian / "debs")
    installed = [f"./{path.name}" for path in debs]
    install = ["apt-get", "install", "-q", "-y", "--no-install-recommends", *installed]
    chroot(debian, "sh", "-c", 'cd /debs && exec "$@"', "sh", *install)

    answer = chroot(debian, "sh", "-c", "cd /images && blksum -c SUMS")
    assert answer == "".join(f"{name}: OK\n" for name in names)
    assert chroot(debian, "blkhash", "--version").startswith("blkhash ")
    for page, title in [("blksum", "BLKSUM(1)"), ("blkhash-map-diff", "BLKHASH-MAP-DIFF(1)"), ("blkhash", "blkhash"),
                        ("blksum-check", "BLKSUM-CHECK(8)")]:
        section = ["3"] if title == "blkhash" else []
        assert title.upper() in chroot(debian, "man", *section, page).upper()
    complete = ". /usr/share/bash-completion/bash_completion; __load_completion {0}; complete -p {0}"
    for name in ("blksum", "blkhash", "blkcopy"):
        assert name in chroot(debian, "bash", "-c", complete.format(name))
        assert chroot(debian, "zsh", "-c", f"autoload -Uz compinit; compinit -u -D; print $_comps[{name}]") == f"_{name}\n"

    # The example of the documentation, on an image in it.
    example = "/usr/share/doc/libblkhash-dev/examples/image-checksum.c"
    flags = chroot(debian, "pkg-config", "--cflags", "--libs", "blkhash", "libnbd").split()
    chroot(debian, "gcc", "-Wall", "-Werror", "-o", "/images/example", example, *flags)
    checksum = chroot(debian, "/images/example", "/images/disk.raw").split()[0]
    assert checksum == (debian / "images/SUMS").read_text().split()[0]
    example = "/usr/share/doc/libblksum-dev/examples/checksum.c"
    flags = chroot(debian, "pkg-config", "--cflags", "--libs", "blksum").split()
    chroot(debian, "gcc", "-Wall", "-Werror", "-o", "/images/example", example, *flags)
    # Progress comes before it.
    assert chroot(debian, "/images/example", "/images/disk.qcow2").split()[-2] == checksum

    for kind in ("service", "timer"):
        chroot(debian, "systemd-analyze", "verify", "--man=no", f"/usr/lib/systemd/system/blksum-check@.{kind}")
    chroot(debian, "systemctl", "enable", "blksum-check@images.timer")
    nightly_check(debian, len(names))

    shutil.rmtree(debian / "images")
    shutil.rmtree(debian / "debs")
    chroot(debian, "apt-get", "purge", "-q", "-y", "blksum", "blksum-check", *LIBRARIES)
    after = listing(debian)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert {name.removesuffix("-") for name in changed} <= set(USERS), changed
    added = (debian / "etc/passwd").read_text().removeprefix(users)
    assert added.startswith("blksum-check:") and added.count("\n") == 1


def test_debian_has_one_of_both_projects(debs, debian, tmp_path):
    """apt replaces packages of the C project by ours and ours by these. dpkg refuses what has its file names."""
    place = debian / "both"
    place.mkdir()
    for deb in [*debs, *c_project.debs(tmp_path)]:
        shutil.copy(deb, place)
    theirs = {"blkhash", "blkhash-libs", "blkhash-devel"}
    ours = {"blksum", "libblkhash0", "libblkhash-dev"}

    def apt_install(*names):
        wanted = [f"./{next(place.glob(f'{name}_*.deb')).name}" for name in names]
        install = ["apt-get", "install", "-q", "-y", "--no-install-recommends", "--allow-downgrades", *wanted]
        chroot(debian, "sh", "-c", 'cd /both && exec "$@"', "sh", *install)

    def installed():
        lines = chroot(debian, "dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n").splitlines()
        return {line.split()[0] for line in lines if line.endswith(" installed")} & (theirs | ours)

    def assert_refused(name, other):
        [deb] = place.glob(f"{name}_*.deb")
        done = subprocess.run(["chroot", debian, "dpkg", "-i", f"/both/{deb.name}"], capture_output=True, text=True)
        assert done.returncode == 1 and f" {other} conflicts with {name}" in done.stderr.replace(":amd64", ""), done
        assert name not in installed()

    apt_install(*theirs)
    assert installed() == theirs
    assert chroot(debian, "blksum") == "0 digests\n"
    # The command of the C project stays, since what it needs is there, and runs with our library.
    apt_install("libblkhash0")
    assert installed() == {"blkhash", "libblkhash0"}
    assert int(chroot(debian, "blksum").split()[0]) > 20
    apt_install(*ours)
    assert installed() == ours
    assert chroot(debian, "blksum", "--version").startswith("blksum ")
    for name, other in [("blkhash", "blksum"), ("blkhash-libs", "libblkhash0")]:
        assert_refused(name, other)
    apt_install(*theirs)
    assert installed() == theirs
    chroot(debian, "apt-get", "purge", "-q", "-y", *theirs)
    shutil.rmtree(place)


def older(deb, folder, version):
    """Makes of a package one of an older version, and of its libraries as well."""
    root = folder / deb.name.split("_")[0]
    run("dpkg-deb", "-R", deb, root)
    control = root / "DEBIAN/control"
    current = re.search(r"^Version: (.*)$", control.read_text(), re.MULTILINE)[1]
    control.write_text(control.read_text().replace(current, version))
    # Lists of files that are not these any more.
    for name in ("md5sums", "symbols", "shlibs"):
        (root / "DEBIAN" / name).unlink(missing_ok=True)
    for library in root.rglob(f"lib*.so.{current}"):
        library.rename(library.with_name(library.name.replace(current, version)))
        link = library.with_name(library.name.replace(f".{current}", ".0"))
        link.unlink()
        link.symlink_to(library.name.replace(current, version))
    result = folder / deb.name.replace(f"_{current}_", f"_{version}_")
    run("dpkg-deb", "-b", "-Znone", "--root-owner-group", root, result)
    return result


def test_debian_upgrades_from_an_older_version(debs, debian, tmp_path):
    """Packages of an older version, or of a real one in OLD_PACKAGES, become these. Timers stay enabled."""
    before = listing(debian)
    if "OLD_PACKAGES" in os.environ:
        old = sorted(pathlib.Path(os.environ["OLD_PACKAGES"]).glob("*.deb"))
        assert len(old) == len(debs), old
    else:
        old = [older(deb, tmp_path, "0.0.1") for deb in debs]
    install = "exec apt-get install -q -y --no-install-recommends ./*.deb"

    def versions():
        show = ["dpkg-query", "-W", "-f", "${Package} ${Version} ${db:Status-Status}\n", "blksum", "blksum-check", *LIBRARIES]
        return set(chroot(debian, *show).splitlines())

    def expected(packages):
        return {f"{name} {version} installed" for name, version, _ in (path.name.split("_") for path in packages)}

    for place, packages in (("old", old), ("new", debs)):
        (debian / place).mkdir()
        for deb in packages:
            shutil.copy(deb, debian / place)
        chroot(debian, "sh", "-c", f"cd /{place} && {install}")
        assert versions() == expected(packages)
        if place == "old":
            chroot(debian, "systemctl", "enable", "blksum-check@images.timer")
    assert chroot(debian, "systemctl", "is-enabled", "blksum-check@images.timer") == "enabled\n"
    # Each library is there once, and is what its link leads to.
    for name in ("blkhash", "blksum"):
        [library] = debian.glob(f"usr/lib/*/lib{name}.so.*.*")
        assert os.readlink(library.with_name(f"lib{name}.so.0")) == library.name
    names = make_images(debian / "images", commands.BLKSUM)
    assert chroot(debian, "sh", "-c", "cd /images && blksum -c SUMS").count(": OK\n") == len(names)

    for place in ("images", "old", "new"):
        shutil.rmtree(debian / place)
    chroot(debian, "apt-get", "purge", "-q", "-y", "blksum", "blksum-check", *LIBRARIES)
    after = listing(debian)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert {name.removesuffix("-") for name in changed} <= set(USERS), changed


def test_removal_stops_the_nightly_check(debs, workdir):
    """An upgrade leaves the timer and a running check alone. Removal stops both, and purging forgets them."""
    booted.require()
    files = workdir / "files"
    (files / "debs").mkdir(parents=True)
    for deb in debs:
        shutil.copy(deb, files / "debs")
    (files / "etc/blksum-check").mkdir(parents=True)
    (files / "etc/blksum-check/vms.conf").write_text("CHECK_FILE=/etc/blksum-check/vms.sums\nFOLDER=/images\nSLICES=1\n")
    (files / "images").mkdir()
    with open(files / "images/long", "wb") as image:
        image.truncate(8 << 40)
    output = booted.output(workdir, """
        set -e
        rm -f /usr/sbin/policy-rc.d
        cd /debs
        dpkg -i --force-depends blksum_*.deb blksum-check_*.deb
        # A check that does not end before the package is removed.
        printf '%064d  long\n' 0 > /etc/blksum-check/vms.sums
        mkdir -p /etc/systemd/system/blksum-check@vms.service.d
        printf '[Service]\nCPUQuota=1%%\n' > /etc/systemd/system/blksum-check@vms.service.d/slow.conf
        systemctl daemon-reload
        systemctl enable --now blksum-check@vms.timer
        systemctl start --no-block blksum-check@vms.service
        state() { echo "$1: $(systemctl is-active blksum-check@vms.timer blksum-check@vms.service | tr '\\n' ' ')"; }
        while [ "$(systemctl is-active blksum-check@vms.service)" != activating ]; do sleep 0.1; done
        state installed
        echo '# changed' >> /lib/systemd/system/blksum-check@.timer
        systemctl daemon-reload
        dpkg -i --force-depends blksum-check_*.deb
        state upgraded
        echo "stale: $(systemctl show --value -p NeedDaemonReload blksum-check@vms.timer)"
        dpkg -r blksum-check
        state removed
        dpkg -P blksum-check
        ls /etc/blksum-check
        find /etc /usr /var/lib -name '*blksum-check*' | sort
    """)
    lines = output.splitlines()
    assert "installed: active activating " in lines and "upgraded: active activating " in lines, output
    assert "stale: no" in lines and "removed: inactive inactive " in lines, output
    left = lines[lines.index("vms.conf"):]
    assert left == ["vms.conf", "vms.sums", "/etc/blksum-check", "/etc/systemd/system/blksum-check@vms.service.d"], output


def test_a_release_is_of_a_commit(tmp_path):
    """Cargo compiles a build.rs because it is there."""
    run("git", "clone", "-q", ROOT, tmp_path / "clone")
    (tmp_path / "clone/crates/cli/build.rs").write_text("fn main() {}\n")
    release = [tmp_path / "clone/packaging/release", tmp_path / "release"]
    done = subprocess.run(release, capture_output=True, text=True, timeout=commands.HANG)
    assert done.returncode == 1 and "files differ from the commit " in done.stderr, done
    assert not (tmp_path / "release").exists()


@pytest.mark.soak
def test_newer_debian(debs, tmp_path):
    """The packages for Debian 12 install on Debian 13, and run."""
    root = tmp_path / "root"
    roots.make("trixie", root, "systemd")
    (root / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
    names = make_images(root / "images", commands.BLKSUM)
    (root / "debs").mkdir()
    for deb in debs:
        shutil.copy(deb, root / "debs")
    chroot(root, "sh", "-c", "cd /debs && exec apt-get install -q -y --no-install-recommends ./*.deb")
    answer = chroot(root, "sh", "-c", "cd /images && blksum -c SUMS")
    assert answer == "".join(f"{name}: OK\n" for name in names)
    nightly_check(root, len(names))


@pytest.fixture(scope="module")
def rpms(tmp_path_factory):
    return build("rpm", tmp_path_factory.mktemp("rpm"))


def test_rpm(rpms, tmp_path):
    packages = [path.name.rsplit("-", 2)[0] for path in rpms]
    assert packages == ["blksum", "blksum-check", "libblkhash", "libblkhash-devel", "libblksum", "libblksum-devel"]
    root = tmp_path / "root"
    root.mkdir()
    # The libraries that the packages ask for come from this machine.
    run(ROOT / "contrib/kubernetes/root-fs", root, commands.BLKSUM, shutil.which("sh"))
    (root / "usr/bin/blksum").unlink()
    (root / "bin").symlink_to("usr/bin")
    before = listing(root)
    rpm = ["rpm", "--root", root, "--dbpath", "/var/lib/rpm"]
    run(*rpm, "--initdb")
    wanted = {line for line in run(*rpm, "-qpR", *rpms).splitlines() if "GLIBC" in line or ".so" in line}
    provided = {f"{path.name}()(64bit)" for path in root.rglob("*.so*")} | {f"lib{name}.so.0()(64bit)" for name in ("blkhash", "blksum")}
    assert {name for name in wanted if name.endswith("()(64bit)")} <= provided
    assert ".a\n" not in run(*rpm, "-qpl", *rpms)
    run(*rpm, "-i", "--nodeps", *rpms)
    run(*rpm, "-V", "--nodeps", *packages)

    names = make_images(root / "images", commands.BLKSUM)
    answer = chroot(root, "/usr/bin/sh", "-c", "cd /images && exec blksum -c SUMS")
    assert answer == "".join(f"{name}: OK\n" for name in names)
    shutil.rmtree(root / "images")
    run(*rpm, "-e", "--nodeps", *packages)
    # Folders that a real root has stay, since no package of ours owns them.
    after = {name: value for name, value in listing(root).items() if not name.startswith("var/lib/rpm")}
    assert {name for name in after if after[name] != "folder"} == {name for name in before if before[name] != "folder"}
    assert not any("blksum" in name or "blkhash" in name for name in after)


def test_rpm_has_one_of_both_projects(rpms, tmp_path):
    """rpm refuses to install both and names them. dnf swaps them if it may erase."""
    theirs = {path.name.rsplit("-", 2)[0]: path for path in c_project.rpms(tmp_path)}
    ours = {path.name.rsplit("-", 2)[0]: path for path in rpms if path.name.startswith(("blksum-0", "libblkhash-"))}
    pairs = {"blkhash": "blksum", "blkhash-libs": "libblkhash", "blkhash-devel": "libblkhash-devel"}
    assert (theirs.keys(), ours.keys()) == (pairs.keys(), set(pairs.values()))
    root = tmp_path / "root"
    root.mkdir()
    # The database is where dnf looks for it.
    rpm = ["rpm", "--root", str(root)]
    run(*rpm, "--initdb")
    # A package that provides what both need of the system.
    everything = [*theirs.values(), *ours.values()]
    own = {line.split()[0] for line in run("rpm", "-qp", "--provides", *everything).splitlines()}
    needed = {line for line in run("rpm", "-qpR", *everything).splitlines()}
    system = [f"Provides: {line}" for line in sorted(needed) if not line.startswith("rpmlib(") and line.split()[0] not in own]
    run(*rpm, "-i", *c_project.rpm_of(tmp_path, "system", "1", [*system, "%description", "Stand-in.", "%files"]))

    def assert_refused(installed, refused):
        """Returns the message with which a package is refused next to another one."""
        run(*rpm, "-i", "--nodeps", installed)
        done = subprocess.run([*rpm, "-i", "--test", refused], capture_output=True, text=True)
        assert done.returncode != 0, done
        run(*rpm, "-e", "--nodeps", installed.name.rsplit("-", 2)[0])
        return done.stderr

    for their_name, our_name in pairs.items():
        for installed, refused in [(theirs[their_name], ours[our_name]), (ours[our_name], theirs[their_name])]:
            message = assert_refused(installed, refused).replace("(installed) ", "")
            assert f"\t{their_name} conflicts with {our_name}-" in message, message

    def dnf_install(*paths):
        dnf = ["dnf", "-q", "-y", f"--installroot={root}", "--disablerepo=*", "--setopt=install_weak_deps=0", "--nogpgcheck",
               "--releasever=1"]
        run(*dnf, "--allowerasing", "install", *paths)
        return set(run(*rpm, "-qa", "--qf", "%{NAME}\n").split()) - {"system"}

    assert dnf_install(*theirs.values()) == set(theirs)
    # The command of the C project has the library that it was linked with.
    assert dnf_install(ours["libblkhash"]) == {"blkhash", "libblkhash"}
    assert dnf_install(*ours.values()) == set(ours)
    assert dnf_install(*theirs.values()) == set(theirs)


def test_tarball(tmp_path):
    [archive] = build("tar", tmp_path / "tar")
    place = tmp_path / "a place with spaces"
    place.mkdir()
    run("tar", "-xf", archive, "-C", place)
    [tree] = place.iterdir()
    assert tree.name == archive.name.removesuffix(".tar.gz")
    names = make_images(tmp_path / "images", tree / "bin/blksum")
    assert run(tree / "bin/blksum", "-c", "SUMS", cwd=tmp_path / "images").count(": OK\n") == len(names)

    link = tmp_path / "here"
    link.symlink_to(tree)
    environment = {**os.environ, "PKG_CONFIG_PATH": str(link / "lib/pkgconfig")}
    flags = run("pkg-config", "--cflags", "--libs", "blkhash", "libnbd", env=environment).split()
    example = tmp_path / "example"
    run("gcc", "-o", example, ROOT / "contrib/image-checksum.c", *flags)
    environment["LD_LIBRARY_PATH"] = str(link / "lib")
    checksum = run(example, tmp_path / "images/disk.raw", env=environment).split()[0]
    assert checksum == (tmp_path / "images/SUMS").read_text().split()[0]


def unpack(archive, folder):
    """Unpacks the image in an OCI archive, and returns its configuration and its root."""
    layout, root = folder / "layout", folder / "root"
    layout.mkdir(parents=True)
    run("tar", "-xf", archive, "-C", layout)

    def blob(descriptor):
        path = layout / "blobs" / descriptor["digest"].replace(":", "/")
        assert hashlib.sha256(path.read_bytes()).hexdigest() == path.name
        return path

    [image] = json.loads((layout / "index.json").read_text())["manifests"]
    manifest = json.loads(blob(image).read_text())
    root.mkdir()
    for layer in manifest["layers"]:
        run("tar", "-xf", blob(layer), "-C", root)
    return json.loads(blob(manifest["config"]).read_text())["config"], root


def contained(root, folder, *command):
    """Runs a command as a container does: a read-only root with a volume, an unprivileged user, no network."""
    script = """
        set -e
        mount --bind "$ROOT" "$ROOT"
        mount -t proc proc "$ROOT/proc"
        mount -t tmpfs tmpfs "$ROOT/dev"
        touch "$ROOT/dev/null"
        mount --bind /dev/null "$ROOT/dev/null"
        ln -s /proc/self/fd "$ROOT/dev/fd"
        mount --bind "$FOLDER" "$ROOT/images"
        mount -o remount,bind,ro "$ROOT/images"
        mount -o remount,bind,ro "$ROOT"
        cd /
        exec chroot --userspec=$USER:$USER --groups= "$ROOT" "$@"
    """
    environment = {"ROOT": str(root), "FOLDER": str(folder), "USER": str(NOBODY), "PATH": os.environ["PATH"]}
    return run("unshare", "--mount", "--net", "--pid", "--fork", "sh", "-c", script, "sh", *command, env=environment)


@pytest.fixture(scope="module")
def containers(tmp_path_factory):
    return {path.name.rsplit("-", 2)[0]: path for path in build("container", tmp_path_factory.mktemp("container"))}


@pytest.mark.parametrize("name", ["blkhash", "blkhash-full"])
def test_container(containers, name, tmp_path):
    folder = tmp_path / "images"
    names = make_images(folder, commands.BLKSUM)
    images.qemu_img("create", "--object", "secret,id=s,data=k", "-f", "luks", "-o", "key-secret=s,iter-time=10",
                    folder / "disk.luks", "1M")
    tmp_path.chmod(0o755)
    config, root = unpack(containers[name], tmp_path / "unpacked")
    assert (config["User"], config["Cmd"]) == (f"{NOBODY}:{NOBODY}", ["/usr/bin/blksum", "--help"])
    assert not (root / "bin/sh").exists() and not (root / "usr/bin/sh").exists()
    for place in ("dev", "images", "proc"):
        (root / place).mkdir(exist_ok=True)
    assert contained(root, folder, *config["Cmd"]).startswith("Usage: blksum ")
    answer = contained(root, folder, "/usr/bin/blksum", *(f"/images/{name}" for name in names))
    expected = (folder / "SUMS").read_text().split()[0]
    assert answer == "".join(f"{expected}  /images/{name}\n" for name in names)
    assert contained(root, folder, "/usr/bin/blkhash", "--version").startswith("blkhash ")
    assert (root / "usr/bin/qemu-nbd").exists() == (name == "blkhash-full")
    if name == "blkhash-full":
        answer = contained(root, folder, "/usr/bin/blksum", "--reader=qemu", "/images/disk.vmdk")
        assert answer.startswith(expected)
