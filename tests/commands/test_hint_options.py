"""Options that messages name: the command that prints the message, or that the message names, has them."""

import re
import subprocess

import pytest

from commands import ROOT, blksum_path

SOURCES = ROOT / "crates/cli/src"

OPTION = re.compile(r"(?<![\w-])(?:--[a-z][a-z0-9-]*[a-z0-9]|-[A-Za-z])(?![\w-])")

# Options in messages of programs that are not these.
OTHERS = {"--upload-file"}

# A command in a text, with its arguments up to punctuation.
COMMAND = re.compile(r"\b(blksum|blkcopy|blkhash)((?: [a-z]+)*)((?: [^ ,;:\"]+)+)")


def run(command):
    program = blksum_path().with_name(command[0])
    return subprocess.run([program, *command[1:]], capture_output=True, text=True)


@pytest.fixture(scope="module")
def options():
    """The options of each command, by its words."""
    found = {}

    def add(command):
        page = run([*command, "--help"]).stdout
        found[command] = set(OPTION.findall(page))
        listed = re.search(r"^Commands:\n((?:  .*\n)+)", page, re.MULTILINE)
        for name in re.findall(r"^  ([a-z]+)", listed[1] if listed else "", re.MULTILINE):
            if name != "help":
                add((*command, name))

    for program in ("blksum", "blkcopy", "blkhash"):
        add((program,))
    assert len(found) > 20
    return found


def texts():
    """The texts in the sources of the commands, and the file of each."""
    for path in sorted(SOURCES.rglob("*.rs")):
        source = path.read_text().split("#[cfg(test)]")[0]
        source = re.sub(r"^\s*//.*$", "", source, flags=re.MULTILINE)
        for text in re.findall(r'"((?:[^"\\]|\\.)*)"', source, re.DOTALL):
            yield path.relative_to(SOURCES), re.sub(r"\\\n\s*", "", text)


def test_long_options_exist(options):
    """Messages name options of their own program. Options of shared code are of some program."""
    of_program = {
        program: set().union(*(named for command, named in options.items() if command[0] == program))
        for program in ("blksum", "blkcopy", "blkhash")
    }
    everything = set().union(*of_program.values())
    checked = 0
    for path, text in texts():
        known = of_program.get(path.parts[0], everything)
        for option in OPTION.findall(text):
            if option.startswith("--") and option not in OTHERS:
                checked += 1
                assert option in known, (path, text)
    assert checked > 300


def test_commands_in_messages_have_their_options(options):
    checked = 0
    for path, text in texts():
        for program, words, arguments in COMMAND.findall(text):
            command = (program,)
            for word in words.split():
                command = (*command, word) if (*command, word) in options else command
            for argument in arguments.split():
                for option in OPTION.findall(argument):
                    checked += 1
                    assert option in options[command], (path, text)
    assert checked > 30
