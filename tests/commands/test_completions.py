"""Shell completions: keys pressed in bash, with and without bash-completion, in zsh and in fish."""

import os

import pytest

from shells import START, Shell

FILES = ["disk.img", "other.qcow2", "my disk.raw", "-dash.img", "key", "cert.pem", "folder/x.img", "certs/ca"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder with several files, and one with a single file."""
    folders = {"several": FILES, "single": ["only.img"]}
    root = tmp_path_factory.mktemp("images")
    for folder, names in folders.items():
        for name in names:
            path = root / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"")
    return root


@pytest.fixture(scope="module", params=list(START))
def press(request, folders, tmp_path_factory):
    """Presses keys in one kind of shell."""
    shells = {}

    def press(keys, folder="several"):
        if folder not in shells:
            home = tmp_path_factory.mktemp("home")
            shells[folder] = Shell(request.param, folders / folder, home)
        return shells[folder].press(keys)

    yield press
    for shell in shells.values():
        shell.close()


# A tab at the end of the first gives the second.
INSERTED = [
    # Images.
    ("blksum disk", "blksum disk.img "),
    ("blksum my", r"blksum my\ disk.raw "),
    ('blksum "my', 'blksum "my disk.raw" '),
    ("blksum $PWD/disk", "blksum $PWD/disk.img "),
    ("blksum ./di", "blksum ./disk.img "),
    ("blksum fold", "blksum folder/"),
    ("blksum folder/", "blksum folder/x.img "),
    ("blksum other.qcow2 dis", "blksum other.qcow2 disk.img "),
    ("blksum -rz --json dis", "blksum -rz --json disk.img "),
    ("blksum -d sha256 dis", "blksum -d sha256 disk.img "),
    ("blksum --threads=2 dis", "blksum --threads=2 disk.img "),
    ("blksum --threads 2 dis", "blksum --threads 2 disk.img "),
    ("blksum -- -da", "blksum -- -dash.img "),
    ("blksum -c dis", "blksum -c disk.img "),
    ("blksum disk.img > oth", "blksum disk.img > other.qcow2 "),
    ("true | blksum --follow=b", "true | blksum --follow=beneath "),
    ("true; A=b blksum --follow b", "true; A=b blksum --follow beneath "),
    # An optional value has no word of its own.
    ("blksum --cache dis", "blksum --cache disk.img "),
    ("blksum --progress dis", "blksum --progress disk.img "),
    # Files and folders of options.
    ("blksum --secret-file ke", "blksum --secret-file key "),
    ("blksum --secret-file=ke", "blksum --secret-file=key "),
    ("blksum --tls-certificates cer", "blksum --tls-certificates certs/"),
    ("blksum --tls-certificates=cer", "blksum --tls-certificates=certs/"),
    ("blksum --nbd-server qemu-nb", "blksum --nbd-server qemu-nbd "),
    # Values.
    ("blksum --follow=b", "blksum --follow=beneath "),
    ("blksum --follow b", "blksum --follow beneath "),
    ("blksum --cache=n", "blksum --cache=no "),
    ("blksum -f vmd", "blksum -f vmdk "),
    ("blksum -Uf vmd", "blksum -Uf vmdk "),
    ("blksum --digest sha512-22", "blksum --digest sha512-224 "),
    ("blksum -d sha1 -d md", "blksum -d sha1 -d md5 "),
    ("blksum -d sha1 --digest=md", "blksum -d sha1 --digest=md5 "),
    ("blksum -a sha1 -a md", "blksum -a sha1 -a md5 "),
    ("blksum --construction fl", "blksum --construction flat "),
    ("blksum --construction streams:6", "blksum --construction streams:64 "),
    ("blksum --construction=streams:6", "blksum --construction=streams:64 "),
    # Subcommands.
    ("blkhash alg", "blkhash algorithms "),
    ("blkhash bench im", "blkhash bench image "),
    ("blkhash bench ", "blkhash bench image "),
    ("blkhash btrfs ver", "blkhash btrfs verify "),
    ("blkhash help ben", "blkhash help bench "),
    ("blkhash help btrfs ver", "blkhash help btrfs verify "),
    ("blkhash bench image dis", "blkhash bench image disk.img "),
    ("blkhash bench --svg=oth", "blkhash bench --svg=other.qcow2 "),
    ("blkhash bench --format hash", "blkhash bench --format hash-speedtest "),
    ("blkhash btrfs verify dis", "blkhash btrfs verify disk.img "),
    ("blkhash verity ver", "blkhash verity verify "),
    ("blkhash verity format dis", "blkhash verity format disk.img "),
    ("blkhash verity digest --hash-alg=sha5", "blkhash verity digest --hash-alg=sha512 "),
    ("blkhash map mer", "blkhash map merge "),
    ("blkhash map create dis", "blkhash map create disk.img "),
    ("blkhash map verify disk.img oth", "blkhash map verify disk.img other.qcow2 "),
    ("blkhash map diff --picture=oth", "blkhash map diff --picture=other.qcow2 "),
    ("blkhash map merge -o oth", "blkhash map merge -o other.qcow2 "),
    ("blkhash map seal --key-file=ke", "blkhash map seal --key-file=key "),
    ("blkhash map export --to bm", "blkhash map export --to bmap "),
    ("blkhash map create -d sha3-25", "blkhash map create -d sha3-256 "),
    ("blkhash btrfs verify --follow=n", "blkhash btrfs verify --follow=none "),
    ("blkhash btrfs info --cache=n", "blkhash btrfs info --cache=no "),
    ("blkhash algorithms --json crc64n", "blkhash algorithms --json crc64nvme "),
]


@pytest.mark.parametrize("keys, line", INSERTED)
def test_inserted(press, keys, line):
    assert press(keys + "\t")[0] == line


@pytest.mark.parametrize(
    "keys, option",
    [
        ("blksum --foll", "blksum --follow"),
        ("blksum disk.img --json --parti", "blksum disk.img --json --partition"),
        ("blkhash bench --sv", "blkhash bench --svg"),
        ("blkhash btrfs verify --max-f", "blkhash btrfs verify --max-files"),
        ("blkhash map create --if", "blkhash map create --if-changed"),
    ],
)
def test_options(press, keys, option):
    # zsh adds = to an option with a value, the others a space.
    assert press(keys + "\t")[0].rstrip(" =") == option


@pytest.mark.parametrize("command", ["blksum ", "blksum --json ", "blkhash btrfs verify "])
def test_the_only_file(press, command):
    assert press(command + "\t", "single")[0] == command + "only.img "


@pytest.mark.parametrize(
    "keys",
    [
        "blksum --threads ",
        "blksum --threads=",
        "blksum --block-size ",
        "blksum --max-zeros=",
        "blksum --partition ",
        "blksum --snapshot ",
        "blkhash bench --threads ",
        "blkhash btrfs obscure-name ",
        "blkhash btrfs algorithms --data ",
        "blkhash help bench image ",
    ],
)
def test_nothing(press, keys):
    assert press(keys + "\t", "single")[0] == keys


LISTED = [
    ("blksum ", {"disk.img", "other.qcow2", "key", "folder/"}),
    ("blksum -d ", {"sha256", "blake3", "md5", "crc32c"}),
    ("blksum --digest=", {"sha256", "blake3", "md5", "crc32c"}),
    ("blksum --follow=", {"beneath", "any", "none"}),
    ("blksum --follow ", {"beneath", "any", "none"}),
    ("blksum --cache=", {"auto", "yes", "no"}),
    ("blksum --progress=", {"auto", "always", "never"}),
    ("blksum -f ", {"raw", "qcow2", "vmdk"}),
    ("blksum --", {"--digest", "--algorithm", "--follow", "--json", "--check"}),
    ("blksum -d md5 disk.img --", {"--digest", "--json"}),
    ("blkhash ", {"algorithms", "bench", "btrfs", "verity", "help"}),
    ("blkhash btrfs ", {"verify", "info", "algorithms", "obscure-name", "help"}),
    ("blkhash help ", {"algorithms", "bench", "btrfs", "verity"}),
    ("blkhash bench --", {"--quality", "--svg", "--filter"}),
    ("blkhash btrfs verify --", {"--max-errors", "--partition", "--json"}),
]


@pytest.mark.parametrize("keys, words", LISTED)
def test_listed(press, keys, words):
    line, shown = press(keys + "\t")
    assert line.startswith(keys.rstrip("-")), (line, shown)
    # fish lists values after = with their option.
    listed = {word.rpartition("=")[2] for word in shown.removeprefix(keys).split()}
    assert words <= listed, shown
    is_about_files = "disk.img" in words
    assert is_about_files or not listed & {"other.qcow2", "key", "folder/"}, shown


def test_words_of_the_user_are_not_evaluated(press, folders):
    for word in ["$(touch evil)", "`touch evil`", "a[$(touch evil)]", "'a b"]:
        press(f"blksum {word} --follow=\t")
        press(f"blksum {word} --secret-file \t")
        press(f"blkhash {word} \t")
    assert "evil" not in os.listdir(folders / "several")
