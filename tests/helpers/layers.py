"""LUKS headers, and physical volumes of LVM on loop devices."""

import contextlib

import filesystems
import images

MIB = 1 << 20
LVM_CONFIG = (
    'devices {{ use_devicesfile=0 scan="/dev" filter=[{}"r|.*|"] }} '
    "activation {{ udev_sync=0 udev_rules=0 }} global {{ event_activation=0 }} "
    "backup {{ backup=0 archive=0 }}"
)


# Options for LVM that keep it away from other devices, and from the device mapper.
LVM = ["--driverloaded", "n", "--config"]


def blank(path, size):
    with open(path, "wb") as file:
        file.truncate(size)
    return path


def luks(path, *options, size=32 * MIB):
    blank(path, size)
    fast = ["--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000"]
    fast = fast if "luks1" not in options else ["--pbkdf-force-iterations", "1000"]
    command = ["cryptsetup", "luksFormat", "-q", "--key-file", "-", *fast, *options, str(path)]
    images.run(*command, input=b"secret", stdin=None)
    return path


class Lvm:
    """Physical volumes on loop devices, without the device mapper."""

    def __init__(self, *devices):
        self.config = LVM_CONFIG.format("".join(f'"a|^{device}$|",' for device in devices))

    def __call__(self, command, *args):
        return images.run("lvm", command, *LVM, self.config, *args)

    def attempt(self, command, *args):
        return images.attempt("lvm", command, *LVM, self.config, *args)

    def create(self, name, *args):
        self("lvcreate", "-q", "-an", "-Zn", "-Wn", "-n", name, *args)

    def objects(self, device):
        """Returns whether LVM finds something wrong with a physical volume."""
        result = self.attempt("pvck", "--dump", "headers", device)
        output = result.stdout + result.stderr
        words = [b"CHECK", b"Failed", b"WARNING: wrong", b"incorrect", b"No label", b"bad", b"rror"]
        if result.returncode != 0 or any(word in output for word in words):
            return True
        return self.attempt("pvs", device).returncode != 0 or self.attempt("vgck", "vg").returncode != 0


@contextlib.contextmanager
def physical_volumes(*paths, size=64 * MIB):
    """Creates a group of several physical volumes."""
    with contextlib.ExitStack() as stack:
        devices = [stack.enter_context(filesystems.attached(blank(path, size))) for path in paths]
        lvm = Lvm(*devices)
        lvm("pvcreate", "-q", *devices)
        lvm("vgcreate", "-q", "vg", *devices)
        yield lvm, devices


@contextlib.contextmanager
def physical_volume(path, *options, size=64 * MIB):
    blank(path, size)
    with filesystems.attached(path) as device:
        lvm = Lvm(device)
        lvm("pvcreate", "-q", *options, device)
        lvm("vgcreate", "-q", "vg", device)
        yield lvm, device
