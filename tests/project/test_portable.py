"""docs/use/platforms.md has a row for each promise that is weaker without Linux, and the tests of tests/helpers/portable.py exist."""

import re

import portable
from commands import ROOT

PAGE = (ROOT / "docs/use/platforms.md").read_text()


def test_every_weaker_promise_is_explained():
    assert re.findall(r"^\| `([\w-]+)`: ", PAGE, re.MULTILINE) == list(portable.WEAKER)


def test_every_listed_test_is_there():
    listed = [name for names in portable.WEAKER.values() for name in names]
    assert len(listed) == len(set(listed)) > 50
    for name in listed:
        file, _, test = name.partition("::")
        text = next(path for folder in ("tests", "python/tests") for path in (ROOT / folder).rglob(file)).read_text()
        assert re.search(rf"^def {test.partition('[')[0]}\(", text, re.MULTILINE), name


def test_only_some_parameters_are_expected_to_fail():
    assert portable.promise_of("tests/copy/test_copy.py::test_files[0]") == "holes"
    assert portable.promise_of("tests/copy/test_copy.py::test_files[2]") is None
    assert portable.promise_of("tests/copy/test_copy.py::test_devices[0-512]") == "devices"
    assert portable.promise_of("tests/safety/test_attacks.py::test_a_listed_file_turns_into_something_else[/proc/version]") == "made-up"


def test_tests_of_rust_name_a_promise():
    marks = r"^ *#(?:\[cfg_attr\(blkhash_portable, should_panic\)\]|!\[cfg\(not\(blkhash_portable\)\)\])(.*)$"
    texts = [path.read_text() for path in (ROOT / "crates").rglob("*.rs")]
    named = [name for text in texts for name in re.findall(marks, text, re.MULTILINE)]
    assert len(named) > 10
    assert {name.removeprefix(" // ") for name in named} <= set(portable.WEAKER)


def test_one_place_knows_the_system():
    """Crates ask blksys, so that a new system is added in one place."""
    asking = [
        path.relative_to(ROOT)
        for folder in ("crates", "python/src")
        for path in sorted((ROOT / folder).rglob("*.rs"))
        if "target_os" in path.read_text() and path.relative_to(ROOT).parts[1] not in ("blksys", "blksandbox", "blkconfine")
    ]
    assert [str(path) for path in asking] == [
        "crates/blkbench/src/counter/mod.rs",
        "crates/blkimage/src/formats/served/mod.rs",
    ]
