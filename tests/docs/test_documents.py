"""The commands of the documentation do what it says."""

import pathlib
import re

import pytest

import blkhash
import documents
import imagespec
from commands import ROOT, blksum_path

MANUALS = [page for page in documents.pages() if page.startswith("crates/cli/man/")]
MARKDOWN = [page for page in documents.pages() if page not in MANUALS]


def checksum(**parameters):
    return blkhash.checksum(imagespec.chunks(documents.CONTENT), **parameters).hex()


STREAMS, FLAT, RAW = checksum(), checksum(construction="flat"), checksum(construction="linear")
BLAKE3 = checksum(digest="blake3")
DM_VERITY = checksum(construction="dm-verity", block_size=4096)
DM_VERITY_64K = checksum(construction="dm-verity")
FS_VERITY = checksum(construction="fs-verity", block_size=4096)
# A small image has fewer pages than a week has days.
NO_DIFFERENCES = r"(no differences in \d+ blocks|nothing to compare: this part has no blocks)\n"
ONE_DIFFERENCE = r"1 of 128 blocks differs, 64\.00 KiB, in 1 range; 4 equal, 123 zeros in both\n"
DIFFERENCES = r" *offset +length\n *2097152 +65536 "
HISTORY = r"disk\.blkmap\n( +\d+  [^\n]+ blocks[^\n]*\n)+"

READ = r"of 128 blocks read, [0-9.]+ [KMG]?i?B, and \d+ of the \d+ others for comparison\n"
HEALTHY = r"UUID\n.*\n  errors        none\n"

# What the manual pages say comes out of their examples. Amounts and times are apart (documents.normalized).
EXAMPLES = {
    "blksum disk.raw disk.qcow2": rf"{STREAMS}  disk\.raw\n{STREAMS}  disk\.qcow2\n",
    "blksum --tag *.qcow2 > CHECKSUMS": "",
    "blksum -c CHECKSUMS": r"([a-z]+\.qcow2: OK\n){7}",
    "blksum -d blake3 -d sha256:linear disk.qcow2": (
        rf"BLKSUM-BLAKE3-STREAMS4-64K \(disk\.qcow2\) = {BLAKE3}\n"
        rf"BLKSUM-SHA256-LINEAR \(disk\.qcow2\) = {RAW}\n"
    ),
    "blksum -c --bytes --ignore-missing SHA256SUMS": r"disk\.img: OK\ndisk\.qcow2: OK\n",
    "blksum -v --length 0 overlay.qcow2": (
        r".*: overlay\.qcow2: qcow2, virtual size 8\.00 MiB .* N stored, read so"
        r".*: overlay\.qcow2: backing file: qcow2, .*disk\.qcow2: .*"
    ),
    "find /srv -name '*.qcow2' -print0 | blksum --tag --files0-from=-": (
        rf"BLKSUM-SHA256-STREAMS4-64K \(/srv/c\.qcow2\) = {STREAMS}\n"
    ),
    "blksum --construction flat disk.qcow2": rf"{FLAT}  disk\.qcow2\n",
    "blkcopy disk.qcow2 disk.raw": rf"{STREAMS}  disk\.raw\n",
    "blkcopy --force disk.qcow2 /dev/sdX": rf"{STREAMS}  /dev/sdX\n",
    "blkcopy --update disk.qcow2 /dev/sdX": rf"{STREAMS}  /dev/sdX\n",
    f"blkcopy --expect {STREAMS} --map disk.blkmap disk.qcow2 nbd://host/disk": rf"{STREAMS}  nbd://host/disk\n",
    "blkcopy --force --map copy.blkmap --resume disk.qcow2 /dev/sdX": rf"{STREAMS}  /dev/sdX\n",
    "blkcopy --delta-from disk.blkmap disk.qcow2 - | ssh host 'blkcopy --apply - disk.raw'": (
        rf"{STREAMS}  (-|disk\.raw)\n{STREAMS}  (-|disk\.raw)\n"
    ),
    "blkcopy --force disk.raw.zst /dev/sdX": rf"{STREAMS}  /dev/sdX\n",
    "blksum --untrusted upload.qcow2": rf"{STREAMS}  upload\.qcow2\n",
    "blksum --timeout 10 nbd://localhost/disk": rf"{STREAMS}  nbd://localhost/disk\n",
    "blksum -r --json /var/lib/images": (
        rf"(\{{'name': '/var/lib/images/[abc]\.\w+', 'checksum': '{STREAMS}'[^\n]*\n){{3}}"
    ),
    "blkhash help": r"Show and measure .*Commands:\n.*",
    "blkhash help btrfs verify": r"Verify .*Usage: blkhash btrfs verify .*",
    "blkhash algorithms": r"Algorithm +Bits .*\ncrc32c .*\nsha256 .*",
    "blkhash algorithms sha256": r"name +: sha256\n.*\bsoft\b.*",
    "blkhash algorithms --kernel sha256": r"name +: sha256\n.*\bsoft\b.*\nkernel .*",
    "blkhash algorithms --measure sha256": (
        r"name +: sha256\n.*\nmeasured +: \d+ MiB/s on this CPU\n.*\nMeasured: .*"
    ),
    "blkhash algorithms --json | jq -r 'select(.strength == \"cryptographic\").name'": (
        r"(?!.*(crc32|xxh|md5|sha1\n))(.*\n)?sha256\n.*"
    ),
    "blkhash bench image /var/lib/images/disk.qcow2": r"/var/lib/images/disk\.qcow2: qcow2, .*\nblake3 .*",
    "blkhash bench image -d sha256 -d blake3 --threads 1,2,4 disk.qcow2": (
        r"disk\.qcow2: qcow2, .*\ndigest +1 thread +2 threads +4 threads\n.*\nsha256 .*\nblake3 .*"
    ),
    "blkhash bench --filter crc32c --filter xxhash --filter sha256 --filter BLAKE2b-256": (
        r"(?=.* crc32c-table\n)(?=.* xxh64-soft\n)(?=.* sha256-soft\n).* blake2b256-soft\n.*"
    ),
    "blkhash bench --format hash-speedtest --batch 1": r".*\n +NULL-NOP: .*\n +CRC32C-SW: .*",
    "blkhash bench --block-size 64k --threads 1,all --cold --svg bench.svg": r".*64 KiB.*sha256-soft.*",
    "blkhash bench --tools": r".*\nsha256sum +\d+ +\d+ +sha256 +\d+ +\d+\n.*\nFastest on this CPU: files sha256.*\n",
    "blkhash bench --quality": r".*crc32.*xxh64.*",
    "BLKHASH_CPU_DISABLE=avx512 blkhash bench --filter sha256": (
        r"(?!.*\nsha256 [^\n]*avx512).* sha256-soft\n.*"
    ),
    "blkhash check ext4.img": r"ext4\.img: OK\n +layer .*\n  disk  ext4 .* OK\n",
    "blkhash check --json ext4.img | jq -r 'select(.type == \"finding\") | .files[].name'": "",
    "blkhash owners ext4.img 12384s": r"  offset   length  owner\n 6340608        1  home/user/mail/archive\n",
    "blkhash owners --json ext4.img | jq -c 'select(.kind == \"free\") | [.offset, .length]'": r"\[6844416,26710016\]\n",
    "blkhash info snapshots.qcow2": (
        r"snapshots\.qcow2\n  format +qcow2\n.*\n +snapshot +taken +size +name\n +1  TIME  8\.00 MiB  before-upgrade\n"
    ),
    "for n in $(blkhash info --json partitioned.qcow2 | jq .partitions[].number); "
    "do blksum --partition $n partitioned.qcow2; done": r"\w{64}  partitioned\.qcow2\n",
    "blkhash btrfs verify disk.qcow2": rf"disk\.qcow2: btrfs {HEALTHY}",
    "blkhash btrfs verify --partition 3 /dev/sda /dev/sdb": rf"/dev/sda: btrfs {HEALTHY}",
    "blkhash btrfs verify --untrusted upload.qcow2": rf"upload\.qcow2: btrfs {HEALTHY}",
    "blkhash btrfs verify --json disk.qcow2 | jq -r '.owners[]?.paths[]?.name'": r"home/user/mail/archive\n",
    "blkhash btrfs info disk.qcow2": r"disk\.qcow2: btrfs UUID\n  checksum +crc32c, .*",
    "blkhash btrfs info /home": r".*: btrfs UUID\n  checksum +crc32c, .*\n  kernel  .*",
    "blkhash btrfs algorithms": r"Checksum .*\ncrc32c .*\nxxhash .*\nsha256 .*\nblake2b .*",
    "blkhash btrfs algorithms --data 10T": (
        r"Checksum .*\ncrc32c [^\n]* 10\.00 GiB\n.*\nsha256 [^\n]* 80\.00 GiB\n.*10\.00 TiB of data.*"
    ),
    "blksum --construction dm-verity disk.qcow2": rf"{DM_VERITY}  disk\.qcow2\n",
    "blkhash verity digest disk.qcow2": (
        rf"blkhash: disk\.qcow2: qcow2: digest of the content; .*\nsha256:{FS_VERITY} disk\.qcow2\n"
    ),
    "blkhash verity digest -f raw disk.qcow2": rf"sha256:(?!{FS_VERITY})\w{{64}} disk\.qcow2\n",
    "blkhash verity digest --out-merkle-tree disk.tree disk.img": rf"sha256:{FS_VERITY} disk\.img\n",
    "blkhash verity format --root-hash-file disk.root disk.qcow2 disk.hash": (
        r"VERITY header information for disk\.hash\nUUID: .*\nRoot hash: .*"
    ),
    "blkhash verity format --salt - --uuid 01234567-89ab-4def-8123-456789abcdef disk.img disk.verity": (
        rf"VERITY .*\nUUID: .*\nSalt: +\t-\nRoot hash: +\t{DM_VERITY}\nHash device size: .*"
    ),
    "blkhash verity format --root-hash-file disk.root disk.img disk.verity > disk.txt": "",
    "blkhash verity verify --root-hash-file disk.root disk.qcow2 disk.verity": (
        r"disk\.qcow2: 2048 blocks: all match\n"
    ),
    "blkhash btrfs obscure-name passwd id_rsa.pub": r"\w{6}\n\w{10}\n",
    "blkhash map create disk.qcow2": "",
    "blkhash map create --if-changed disk.qcow2": "",
    "blkhash map create --resume -o sda.blkmap /dev/sda": "",
    "blkhash map create --checksum disk.img": rf"{STREAMS}  disk\.img\n",
    "blkhash map create --shard 1/2 -o part-{shard}.blkmap disk.img": "",
    "blkhash map create --shard 2/2 -o part-{shard}.blkmap disk.img": "",
    "blkhash map merge -o whole.blkmap part-*.blkmap": "",
    "blkhash map show disk.qcow2.blkmap": r"disk\.qcow2\.blkmap\n  image +disk\.qcow2 \(qcow2\)\n.*",
    "blkhash map show disk.blkmap": r"disk\.blkmap\n  image +disk\.img \(raw\)\n.*",
    "blkhash map show disk.blkmap@1": r"disk\.blkmap@1\n.*\n  commit +1\n",
    "blkhash map show --log disk.blkmap": (
        r"disk\.blkmap\n +2 at \d+: final, 128 of 128 blocks\n +1 at \d+: final, 128 of 128 blocks\n"
    ),
    "blkhash map show --id disk.blkmap": r"\w{64}\n",
    "blkhash map check disk.blkmap": r"disk\.blkmap: OK\n",
    "blkhash map check --key-file backup.key sealed.blkmap": r"sealed\.blkmap: OK \(seal OK\)\n",
    "blkhash map check --key-file backup.key disk.blkmap": r"disk\.blkmap: OK \(seal OK\)\n",
    "(umask 077 && head -c 32 /dev/urandom > backup.key)": "",
    "blkhash map seal --key-file backup.key disk.blkmap": "",
    "blkhash map checksum disk.blkmap | blksum -c": r"disk\.img: OK\n",
    "blkhash map checksum disk.qcow2.blkmap | blksum -c": r"disk\.qcow2: OK\n",
    "blkhash map checksum --construction flat --construction dm-verity disk.blkmap": (
        rf"BLKSUM-SHA256-FLAT-64K \(disk\.img\) = {FLAT}\n"
        rf"BLKSUM-SHA256-DMVERITY-64K \(disk\.img\) = {DM_VERITY_64K}\n"
    ),
    "blkhash map verify disk.qcow2.blkmap restored.qcow2": NO_DIFFERENCES,
    "blkhash map verify --ignore-unknown disk.bmap disk.img": r"no differences in \d+ blocks, \d+ not compared \(.*\)\n",
    "blkhash map verify disk.qcow2.blkmap /var/lib/images/disk.qcow2": NO_DIFFERENCES,
    "blkhash map verify disk.blkmap restored.qcow2": NO_DIFFERENCES,
    "blkhash map verify --shard $(date +%u)/7 disk.blkmap /dev/sda": NO_DIFFERENCES,
    "blkhash map verify --range 0-4M disk.blkmap disk.qcow2": NO_DIFFERENCES,
    "blkhash map verify --picture=where.svg disk.blkmap damaged.img": (
        rf"{ONE_DIFFERENCE}\n{DIFFERENCES} written\n"
    ),
    "blkhash map diff monday.blkmap tuesday.blkmap": rf"{ONE_DIFFERENCE}\n{DIFFERENCES} written\n",
    "blkhash map diff --picture monday.blkmap tuesday.blkmap": (
        rf"{ONE_DIFFERENCE}\n.*\|\n.*# changed .*\n\n{DIFFERENCES} written\n"
    ),
    "blkhash map diff disk.blkmap@1 disk.blkmap": rf"{ONE_DIFFERENCE}\n{DIFFERENCES} zeroed\n",
    "blkhash map diff --quiet disk.img disk.qcow2": "",
    "blkhash map diff --extents monday.blkmap tuesday.img": r"2097152 65536\n",
    "blkhash map bitmaps disk.qcow2": r"disk\.qcow2\n  changes +enabled +blocks of 64\.00 KiB +128\.00 KiB changed\n",
    "blkhash map changes --bitmap changes disk.qcow2": r"65536 131072\n",
    "blkhash map changes --bitmap changes --to nbdinfo disk.qcow2 > changes.json": "",
    "blkhash map changes --overlay vm.qcow2": "",
    "blkhash map history disk.blkmap": HISTORY,
    "blkhash map history --range 0-1G disk.blkmap": HISTORY,
    "blkhash map update --bitmap changes disk.blkmap disk.qcow2": rf"disk\.blkmap: 2 {READ}",
    "blkhash map update --reflink /home/.monday/disk.img /home/monday.blkmap /home/.tuesday/disk.img": (
        rf"/home/monday\.blkmap: 1 {READ}"
    ),
    "blkhash map changes --reflink /home/.monday/disk.img /home/.tuesday/disk.img": r"0 4096\n",
    "blkhash map update --overlay -o vm.blkmap template.blkmap vm.qcow2": rf"vm\.blkmap: 0 {READ}",
    "blkhash map changes --bitmap changes disk.qcow2 | blkhash map update --changes - --sample 1 disk.blkmap disk.qcow2": (
        rf"disk\.blkmap: 2 {READ}"
    ),
    "blkhash map audit --bitmap changes disk.blkmap disk.qcow2": r"every change is listed: 2 blocks changed\n",
    "blkhash map audit --changes list --picture monday.blkmap tuesday.blkmap": (
        r"every change is listed: 2 blocks changed\n\n.*one cell is .*"
    ),
    "blkhash map dups monday.blkmap tuesday.blkmap": r"maps: .*\ndifferent: +3\n.*",
    "blkhash map export --to lines disk.blkmap | grep -v zero": r"(\d+ 65536 \w{64}\n){4}",
    "blkhash map export --to bmap -o disk.bmap disk.blkmap": "",
    "blkhash map export --to fidx -o disk.fidx disk.blkmap": "",
    "blkhash map import -o backup.blkmap backup.fidx": "",
    "blkhash map verify backup.blkmap restored.img": NO_DIFFERENCES,
}


@pytest.mark.parametrize("page", MARKDOWN)
def test_output(workdir, page):
    """Every command of the page, in order, in one folder."""
    with documents.folder_of(page, blksum_path().parent) as shell:
        for command, output in documents.commands(page):
            if not documents.reason_not_run(command):
                found = check_status(shell, command)
                if output is not None:
                    shown = documents.normalized(command, output)
                    assert documents.normalized(command, found) == shown, command


@pytest.mark.parametrize("page", MANUALS)
def test_examples(workdir, page):
    with documents.folder_of(page, blksum_path().parent) as shell:
        for command, _ in documents.commands(page):
            lines = documents.normalized(command, check_status(shell, command))
            text = "".join(f"{line}\n" for line in lines)
            assert re.fullmatch(EXAMPLES[command], text, re.DOTALL), (command, text)
            for name in re.findall(r"(?:--svg |--picture=)(\S+)", command):
                assert pathlib.Path(name).read_text().startswith("<svg")


def test_examples_of_the_help(workdir):
    with documents.folder_of("docs/reference/check-file.md", blksum_path().parent) as shell:
        usage = check_status(shell, "blksum --help")
        section = re.search(r"^Examples:\n((?:  .*\n)+)", usage, re.MULTILINE)[1]
        commands = [re.split(r" {2,}", line.strip())[0] for line in section.splitlines()]
        assert len(commands) > 2
        for command in commands:
            check_status(shell, command)


def test_commands_within_sentences_have_these_options():
    """They are not run, because they often stand for a kind of command."""
    shell = documents.Shell(blksum_path().parent, {})
    usages = {}
    for path in documents.markdown():
        for text in re.findall(r"`(blk(?:sum|hash) [^`]*)`", path.read_text()):
            command = re.match(r"blksum|blkhash( (?!help)[a-z][a-z-]*\b(?![\d.]))*", text)[0]
            if command not in usages:
                usages[command] = check_status(shell, f"{command} --help")
            for option in re.findall(r"(?<=\s)--?[a-zA-Z][a-z0-9-]*", text):
                assert re.search(rf"(?<![\w-]){option}\b", usages[command]), (path, text)


def check_status(shell, command):
    status, found = shell.run(command)
    assert status == documents.STATUS.get(command, 0), (command, found)
    return found


def test_every_page_of_a_command_has_examples():
    assert set(MANUALS) == {f"crates/cli/man/{path.stem}.md" for path in (ROOT / "man").glob("*.1")}


def test_every_example_has_a_result():
    found = {command.text for page in MANUALS for command in documents.commands(page)}
    assert set(EXAMPLES) == found


def test_nothing_is_excused_that_is_not_there():
    """Commands that are not run, stand-ins and others, each belong to a command."""
    found = [command.text for page in documents.pages() for command in documents.commands(page)]
    for beginning in documents.NOT_RUN:
        assert any(command.startswith(beginning) for command in found), beginning
    for text in documents.STAND_INS:
        assert any(text in command for command in found), text
    for command in [*documents.SHORTER, *documents.STATUS]:
        assert command in found, command
    assert set(documents.MORE) <= set(documents.pages())


def test_no_command_of_ours_is_excused():
    for page in documents.pages():
        for command, _ in documents.commands(page):
            is_ours = re.match(r"blk(sum|hash|copy)\b", command)
            assert not (is_ours and documents.reason_not_run(command)), command


def test_commands_are_in_blocks_that_are_run():
    """A command in a block of another language, or after a prompt in the text, would not be run."""
    for path in documents.markdown():
        text = path.read_text()
        fences = re.findall(r"^ *```(.*)$", text, re.MULTILINE)
        assert set(fences[::2]) <= documents.LANGUAGES and not any(fences[1::2]), path
        outside = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
        assert not re.findall(r"^ *[$#]? *(?:blksum|blkhash) -.*$", outside, re.MULTILINE), path
        assert not re.findall(r"^ *\$ .*$", outside, re.MULTILINE), path


def test_equal_content_has_equal_checksums():
    """The pages show one checksum for the images of one content."""
    _, output = documents.commands("README.md")[0]
    assert [line.split()[0] for line in output.splitlines()] == [STREAMS] * 4
