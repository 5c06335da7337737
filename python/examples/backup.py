#!/usr/bin/env python3
"""Backs up disk images with block maps, and verifies the backups.

    backup.py IMAGE FOLDER      copies the image to FOLDER as compressed qcow2, with its map
    backup.py --verify FOLDER   compares all backups in FOLDER with their maps

The map is of the original. A backup matches it only if the conversion and the storage kept every byte.
"""

import argparse
import pathlib
import subprocess
import sys

import blkhash


def back_up(image, folder):
    """Copies an image. Nothing remains if that fails."""
    target = folder / (image.stem + ".qcow2")
    map_path = target.with_suffix(".blkmap")
    blkhash.create_map(image, map_path, progress=show)
    try:
        subprocess.run(
            ["qemu-img", "convert", "-c", "-O", "qcow2", image, target], check=True, stdin=subprocess.DEVNULL
        )
        differences = blkhash.Map(map_path).verify(target)
        if differences:
            raise blkhash.Error(f"{target} is not what {image} was: {differences[0]}")
    except BaseException:
        map_path.unlink()
        target.unlink(missing_ok=True)
        raise
    print(f"{target}: {blkhash.Map(map_path).checksum()}")


def verify(folder):
    """Returns whether all backups match their maps."""
    good = True
    for map_path in sorted(folder.glob("*.blkmap")):
        backup = map_path.with_suffix(".qcow2")
        try:
            differences = blkhash.Map(map_path).verify(backup)
        except blkhash.Error as error:
            print(f"{backup}: {error}", file=sys.stderr)
            good = False
            continue
        print(f"{backup}: {'OK' if not differences else 'FAILED'}")
        for difference in differences:
            print(f"  {difference.kind} at {difference.offset}, {difference.length} bytes")
        good = good and not differences
    return good


def show(done, total):
    if sys.stderr.isatty() and total:
        print(f"\r{100 * done // total} %", end="" if done < total else "\n", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description="Backs up disk images, and verifies the backups.")
    parser.add_argument("--verify", action="store_true", help="compare the backups with their maps")
    parser.add_argument("image", nargs="?", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    args = parser.parse_args()
    if args.verify:
        return 0 if verify(args.folder) else 1
    if args.image is None:
        parser.error("IMAGE is missing")
    try:
        back_up(args.image, args.folder)
    except (blkhash.Error, OSError, subprocess.CalledProcessError) as error:
        print(f"backup.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
