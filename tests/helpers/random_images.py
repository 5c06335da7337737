"""Random images of every format that QEMU writes and this project reads."""

import random_parallels
import random_qcow1
import random_qcow2
import random_qed
import random_vdi
import random_vhdx
import random_vmdk
import random_vpc

# `create(rng, path)` makes a random image. Functions of OVERLAYS take the name and the format
# of a backing file as well.
GENERATORS = {
    "parallels": random_parallels.create,
    "qcow": random_qcow1.create,
    "qcow2": random_qcow2.create,
    "qed": random_qed.create,
    "vdi": random_vdi.create,
    "vhdx": random_vhdx.create_written,
    "vmdk": random_vmdk.random_disk,
    "vpc": random_vpc.create,
}

# The format, and those that it records.
OVERLAYS = [("qcow", []), ("qcow2", ["raw", "qcow2", "vdi"]), ("qed", ["raw"])]
