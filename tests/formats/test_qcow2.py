"""qcow2 images that QEMU wrote at random, in chains and with snapshots: the content is QEMU's."""

import collections
import random

import pytest

import guest_view
from random_qcow2 import create, create_base

KIB = 1 << 10
MIB = 1 << 20
SECTOR = 512
# 20 chains each.
PARTS = [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 15))]


@pytest.mark.parametrize("part", PARTS)
def test_chains_and_snapshots(blksum, workdir, part):
    """Every image of every chain, as it is and at each of its snapshots."""
    rng = random.Random(part)
    paths, at_snapshot = [], collections.defaultdict(list)
    for case in range(guest_view.count(20)):
        below = None
        if rng.randrange(2):
            below = (f"{case}.base", create_base(rng, f"{case}.base"))
        for level in range(rng.randint(1, 3)):
            path = f"{case}.{level}.qcow2"
            for snapshot in create(rng, path, below):
                at_snapshot[snapshot].append(path)
            paths.append(path)
            below = (path, "qcow2")
    guest_view.assert_same(blksum, paths, "qcow2")
    for snapshot, those in at_snapshot.items():
        expected = [guest_view.theirs(path, "qcow2", "-l", f"snapshot.name={snapshot}") for path in those]
        assert guest_view.ours(blksum, those, f"--snapshot={snapshot}") == [(value, None) for value in expected]
