"""Marks the tests here and in python/tests that took long in a measured run as slow. tests/helpers/slow.txt lists them.

Run as a program, lists them anew, from reports of a run on the debug build: `slow.py REPORT.xml... > slow.txt`, after
`make pytest-quick python-quick PYTEST_ARGS='-m "not soak and not release and not qemu" --junitxml=REPORT.xml'`.
"""

import pathlib
import sys
import xml.etree.ElementTree

import pytest

# Seconds.
LIMIT = 3

LIST = pathlib.Path(__file__).with_suffix(".txt")


def mark(config, items):
    """Marks the tests that the list names. Fails if it names tests that a collected file does not have."""
    listed = set(LIST.read_text().splitlines())
    files = set()
    for item in items:
        # Parameters can have slashes.
        name = f"{item.path.name}::{item.nodeid.partition('::')[2]}"
        files.add(item.path.name)
        if name in listed:
            listed.remove(name)
            item.add_marker(pytest.mark.slow)
    is_part = config.option.keyword or any("::" in argument for argument in config.args)
    unknown = sorted(name for name in listed if name.partition("::")[0] in files)
    if unknown and not is_part:
        raise pytest.UsageError(f"{LIST.name} lists tests that there are not: {', '.join(unknown)}")


def measured(reports):
    """Returns the names of the tests in JUnit reports that took longer than the limit."""
    for report in reports:
        for case in xml.etree.ElementTree.parse(report).iter("testcase"):
            module, name, seconds = map(case.attrib.get, ("classname", "name", "time"))
            if float(seconds) > LIMIT:
                yield f"{module.rpartition('.')[2]}.py::{name}"


if __name__ == "__main__":
    print("\n".join(sorted(set(measured(sys.argv[1:])))))
