"""Interactive shells on a terminal of their own, for tests that press keys."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

import commands

COMPLETIONS = commands.ROOT / "completions"

PROMPT = "ready> "

# The key that writes the line into a file, and clears it.
TAKE = b"\x1d"

# Sequences that move the cursor, set colours or the title.
ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)|\x1b[ -/]*[0-~]|[\x00-\x08\x0e-\x1f]")

# Enough for every list without paging.
ROWS, COLUMNS = 200, 200

BASH = r"""
PS1='ready> '
bind 'set show-all-if-ambiguous on'
bind 'set completion-query-items 0'
bind 'set page-completions off'
bind -x '"\C-]": printf "%s\n" "$READLINE_LINE" > "$LINE"; READLINE_LINE='
"""

BASH_ALONE = r"""
for name in blksum blkhash; do
    . "$SHARE/bash-completion/completions/$name"
done
set -u
IFS=:
shopt -s nocasematch failglob
"""

ZSH = r"""
PS1='ready> '
LISTMAX=0
fpath=($SHARE/zsh/site-functions $fpath)
autoload -Uz compinit
compinit -u -D
take() { print -r -- $BUFFER > $LINE; BUFFER= }
zle -N take
bindkey '^]' take
"""

FISH = r"""
set -g fish_greeting
set -g fish_autosuggestion_enabled 0
function fish_prompt
    echo -n 'ready> '
end
function take
    commandline > $LINE
    commandline ''
end
function fish_user_key_bindings
    bind \c] take
end
"""


class Shell:
    """A shell that waits for keys in `folder`; `home` is an empty folder for its own files.

    It finds completions in `share`, by default the sources'.
    """

    def __init__(self, kind, folder, home, share=None):
        self.line = home / "line"
        self.shown = ""
        if share is None:
            share = home / "share"
            link_completions(share)
        environment = {
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "LINE": str(self.line),
            "SHARE": str(share),
            "PATH": f"{commands.BLKSUM.parent}:{os.environ['PATH']}",
            "TERM": "xterm",
            "XDG_DATA_DIRS": f"{share}:/usr/share",
            "XDG_RUNTIME_DIR": str(home),
        }
        terminal, inner = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.terminal = terminal
        self.process = subprocess.Popen(
            ["setsid", "--ctty", *START[kind](home)],
            stdin=inner,
            stdout=inner,
            stderr=inner,
            cwd=folder,
            env=environment,
        )
        os.close(inner)
        self._wait(lambda: PROMPT in self.shown)

    def press(self, keys):
        """Presses keys on an empty line. Returns the line, and the text that the shell printed."""
        self.line.unlink(missing_ok=True)
        self.shown = ""
        os.write(self.terminal, keys.encode() + TAKE)
        self._wait(lambda: self.line.exists() and self.line.read_text().endswith("\n"))
        self._read(0)
        return self.line.read_text()[:-1], ESCAPES.sub("", self.shown)

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.terminal)

    def _wait(self, is_done):
        deadline = time.monotonic() + commands.HANG
        while not is_done():
            assert time.monotonic() < deadline, self.shown
            assert self.process.poll() is None, self.shown
            self._read(0.01)

    def _read(self, seconds):
        """Reads all output, after waiting for the first of it."""
        while select.select([self.terminal], [], [], seconds)[0]:
            try:
                self.shown += os.read(self.terminal, 65536).decode(errors="replace")
            except OSError:  # EIO: the shell is gone.
                return
            seconds = 0


def link_completions(share):
    """Makes the layout of `make install`."""
    for name in ["blksum", "blkhash"]:
        for source, link in [
            (f"{name}.bash", f"bash-completion/completions/{name}"),
            (f"{name}.fish", f"fish/vendor_completions.d/{name}.fish"),
            (f"_{name}", f"zsh/site-functions/_{name}"),
        ]:
            (share / link).parent.mkdir(parents=True, exist_ok=True)
            (share / link).symlink_to(COMPLETIONS / source)


def _bash(home, load):
    (home / "bashrc").write_text(BASH + load)
    return ["bash", "--noprofile", "--rcfile", str(home / "bashrc"), "-i"]


def bash_alone(home):
    """Without the package bash-completion, and with settings of a user that scripts stumble over."""
    return _bash(home, BASH_ALONE)


def bash_with_package(home):
    """With the package bash-completion, which finds completions by the names of commands."""
    return _bash(home, ". /usr/share/bash-completion/bash_completion\n")


def zsh(home):
    (home / ".zshrc").write_text(ZSH)
    return ["zsh", "-o", "no_global_rcs", "-i"]


def fish(home):
    (home / ".config/fish").mkdir(parents=True)
    (home / ".config/fish/config.fish").write_text(FISH)
    return ["fish", "--private"]


# The command line that starts a shell.
START = {
    "bash": bash_alone,
    "bash-completion": bash_with_package,
    "zsh": zsh,
    "fish": fish,
}
