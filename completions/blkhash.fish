# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_blkhash_global_optspecs
    string join \n h/help V/version
end

function __fish_blkhash_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_blkhash_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_blkhash_using_subcommand
    set -l cmd (__fish_blkhash_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c blkhash -n "__fish_blkhash_needs_command" -s h -l help -d 'Print this help'
complete -c blkhash -n "__fish_blkhash_needs_command" -s V -l version -d 'Print the version'
complete -c blkhash -n "__fish_blkhash_needs_command" -f -a "algorithms" -d 'List the digest algorithms and their implementations, and say which are used and why'
complete -c blkhash -n "__fish_blkhash_needs_command" -f -a "bench" -d 'Measure every implementation of every algorithm, or what digests cost on an image'
complete -c blkhash -n "__fish_blkhash_needs_command" -f -a "btrfs" -d 'Verify the checksums of btrfs file systems, and explain them'
complete -c blkhash -n "__fish_blkhash_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c blkhash -n "__fish_blkhash_using_subcommand algorithms" -l kernel -d 'Show beside it what the kernel has, from /proc/crypto'
complete -c blkhash -n "__fish_blkhash_using_subcommand algorithms" -l json -d 'Write a JSON object a line'
complete -c blkhash -n "__fish_blkhash_using_subcommand algorithms" -s h -l help -d 'Print this help'
complete -c blkhash -n "__fish_blkhash_using_subcommand bench; and not __fish_seen_subcommand_from image" -l filter -d 'Measure only implementations or algorithms that match GLOB, in any case; may be repeated' -r
complete -c blkhash -n "__fish_blkhash_using_subcommand bench; and not __fish_seen_subcommand_from image" -l block-size -d 'Hash blocks of SIZE, from 512 to 64M [default: 4K]' -r
complete -c blkhash -n "__fish_blkhash_using_subcommand bench; and not __fish_seen_subcommand_from image" -l batch -d 'Hand over N blocks at a time [default: 16, fewer if they are large]' -r
complete -c blkhash -n "__fish_blkhash_using_subcommand bench; and not __fish_seen_subcommand_from image" -l threads -d 'Measure on so many threads at a time, or all; may be a list [default: 1]' -r
complete -c blkhash -n "__fish_blkhash_using_subcommand bench; and not __fish_seen_subcommand_from image" -l time -d 'Spend so many seconds on each row [default: 0.4]' -r
complete -c blkhash -n "__fish_blkhash_using_subcommand bench; and not __fish_seen_subcommand_from image" -l iterations -d 'Hash N blocks for each row [default with --format hash-speedtest: 100000]' -r
complete -c blkhash -n "__fish_blkhash_using_subcommand bench; and not __fish_seen_subcommand_from image" -l format -d 'Print the table of the documentation of btrfs (docs), the lines of btrfs-progs\' hash-speedtest, csv or json [default: docs]' -r -f -a "docs\t''
hash-speedtest\t''
csv\t''
json\t''"
complete -c blkhash -n "__fish_blkhash_using_subcommand bench; and not __fish_seen_subcommand_from image" -l svg -d 'Write a bar chart to FILE, too' -r -F
complete -c blkhash -n "__fish_blkhash_using_subcommand bench; and not __fish_seen_subcommand_from image" -l cold -d 'Measure also blocks that come from memory, not from the cache'
complete -c blkhash -n "__fish_blkhash_using_subcommand bench; and not __fish_seen_subcommand_from image" -l json -d 'The same as --format json: an object a line'
complete -c blkhash -n "__fish_blkhash_using_subcommand bench; and not __fish_seen_subcommand_from image" -l csv -d 'The same as --format csv'
complete -c blkhash -n "__fish_blkhash_using_subcommand bench; and not __fish_seen_subcommand_from image" -l quality -d 'Measure not the speed but which errors the checksums detect'
complete -c blkhash -n "__fish_blkhash_using_subcommand bench; and not __fish_seen_subcommand_from image" -s h -l help -d 'Print this help'
complete -c blkhash -n "__fish_blkhash_using_subcommand bench; and not __fish_seen_subcommand_from image" -f -a "image" -d 'Measure what the storage of an image gives, what digests cost on it, and which of the two a checksum waits for'
complete -c blkhash -n "__fish_blkhash_using_subcommand bench; and __fish_seen_subcommand_from image" -s d -l digest -d 'Measure the digest algorithm NAME; may be repeated [default: crc32c, xxh3, blake3, blake2b256, sha256 and sha512]' -r -f -a "null\t''
crc32\t''
crc32c\t''
crc64\t''
crc64nvme\t''
xxh64\t''
xxh3\t''
xxh128\t''
md5\t''
sha1\t''
sha224\t''
sha256\t''
sha384\t''
sha512\t''
sha512-224\t''
sha512-256\t''
sha3-224\t''
sha3-256\t''
sha3-384\t''
sha3-512\t''
blake2b256\t''
blake2b512\t''
blake2s256\t''
blake3\t''"
complete -c blkhash -n "__fish_blkhash_using_subcommand bench; and __fish_seen_subcommand_from image" -l threads -d 'Measure on so many threads at a time, or all; may be a list [default: 1,all]' -r
complete -c blkhash -n "__fish_blkhash_using_subcommand bench; and __fish_seen_subcommand_from image" -l time -d 'Read as much as takes so many seconds [default: 0.5]' -r
complete -c blkhash -n "__fish_blkhash_using_subcommand bench; and __fish_seen_subcommand_from image" -s f -l format -d 'Read the image as FORMAT, whatever it looks like' -r -f -a "raw\t''
qcow2\t''
qcow\t''
vmdk\t''
vdi\t''
vhdx\t''
vpc\t''
qed\t''
parallels\t''
luks\t''
bochs\t''
cloop\t''
dmg\t''"
complete -c blkhash -n "__fish_blkhash_using_subcommand bench; and __fish_seen_subcommand_from image" -l no-sandbox -d 'Do not restrict the process to reading the image, as blksum does'
complete -c blkhash -n "__fish_blkhash_using_subcommand bench; and __fish_seen_subcommand_from image" -l json -d 'Write a JSON object a line'
complete -c blkhash -n "__fish_blkhash_using_subcommand bench; and __fish_seen_subcommand_from image" -s h -l help -d 'Print this help'
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and not __fish_seen_subcommand_from verify info algorithms obscure-name help" -s h -l help -d 'Print this help'
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and not __fish_seen_subcommand_from verify info algorithms obscure-name help" -f -a "verify" -d 'Verify every checksum of file systems on devices or in images'
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and not __fish_seen_subcommand_from verify info algorithms obscure-name help" -f -a "info" -d 'Show what a file system\'s checksums are, and what computes them'
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and not __fish_seen_subcommand_from verify info algorithms obscure-name help" -f -a "algorithms" -d 'Compare the checksums that btrfs offers, on this CPU'
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and not __fish_seen_subcommand_from verify info algorithms obscure-name help" -f -a "obscure-name" -d 'Find another name of the same length with the same CRC-32C'
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and not __fish_seen_subcommand_from verify info algorithms obscure-name help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from verify" -l partition -d 'Look at partition N alone [default: every one that has btrfs]' -r
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from verify" -l offset -d 'Look for the file system at this byte' -r
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from verify" -s f -l format -d 'Read images as FORMAT, whatever they look like' -r -f -a "raw\t''
qcow2\t''
qcow\t''
vmdk\t''
vdi\t''
vhdx\t''
vpc\t''
qed\t''
parallels\t''
luks\t''
bochs\t''
cloop\t''
dmg\t''"
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from verify" -l snapshot -d 'Read the internal snapshot that has this name or id' -r
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from verify" -l cache -d 'Read through the page cache: auto, yes or no [default: auto; without a value: yes]' -r -f -a "auto\t''
yes\t''
no\t''"
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from verify" -l holes -d 'What to make of holes in raw files: trust, verify or ignore [default: trust]' -r -f -a "trust\t''
verify\t''
ignore\t''"
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from verify" -l follow -d 'Which files an image may name: beneath (its own folder), any or none [default: beneath]' -r -f -a "beneath\t''
any\t''
none\t''"
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from verify" -l backing-format -d 'Read backing files whose format is not recorded as FORMAT' -r -f -a "raw\t''
qcow2\t''
qcow\t''
vmdk\t''
vdi\t''
vhdx\t''
vpc\t''
qed\t''
parallels\t''
luks\t''
bochs\t''
cloop\t''
dmg\t''"
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from verify" -l secret-file -d 'Unlock encrypted images with the content of FILE, all of it' -r -F
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from verify" -l nbd-server -d 'Run PROGRAM for formats other than raw and qcow2 [default: qemu-nbd]' -r -f -a "(__fish_complete_command)"
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from verify" -l timeout -d 'Give up on a server that says nothing for SECONDS; 0 waits for ever [default: 60]' -r
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from verify" -l tls-certificates -d 'The folder of the certificates for nbds URIs [default: that of libnbd]' -r -f -a "(__fish_complete_directories)"
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from verify" -l threads -d 'Work on N threads [default: one for each processor]' -r
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from verify" -l implementation -d 'Hash with the implementation NAME alone, as blkhash algorithms names it' -r
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from verify" -l max-files -d 'Name at most N files for each error [default: 16]' -r
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from verify" -l max-errors -d 'Print at most N errors, and count the rest; 0 prints all [default: 100, and no more than 64 KiB of them]' -r
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from verify" -s p -l progress -d 'Show progress on the terminal: auto, always or never [default: auto, where it takes longer than a second; without a value: always]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from verify" -l untrusted -d 'Do not trust images: the same as --follow=none'
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from verify" -s U -l force-share -d 'Read images although they are in use'
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from verify" -l no-sandbox -d 'Do not restrict the process to reading the images'
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from verify" -l json -d 'Write a JSON object a line'
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from verify" -s h -l help -d 'Print this help'
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from info" -l partition -d 'Look at partition N alone [default: every one that has btrfs]' -r
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from info" -l offset -d 'Look for the file system at this byte' -r
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from info" -s f -l format -d 'Read images as FORMAT, whatever they look like' -r -f -a "raw\t''
qcow2\t''
qcow\t''
vmdk\t''
vdi\t''
vhdx\t''
vpc\t''
qed\t''
parallels\t''
luks\t''
bochs\t''
cloop\t''
dmg\t''"
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from info" -l snapshot -d 'Read the internal snapshot that has this name or id' -r
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from info" -l cache -d 'Read through the page cache: auto, yes or no [default: auto; without a value: yes]' -r -f -a "auto\t''
yes\t''
no\t''"
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from info" -l holes -d 'What to make of holes in raw files: trust, verify or ignore [default: trust]' -r -f -a "trust\t''
verify\t''
ignore\t''"
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from info" -l follow -d 'Which files an image may name: beneath (its own folder), any or none [default: beneath]' -r -f -a "beneath\t''
any\t''
none\t''"
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from info" -l backing-format -d 'Read backing files whose format is not recorded as FORMAT' -r -f -a "raw\t''
qcow2\t''
qcow\t''
vmdk\t''
vdi\t''
vhdx\t''
vpc\t''
qed\t''
parallels\t''
luks\t''
bochs\t''
cloop\t''
dmg\t''"
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from info" -l secret-file -d 'Unlock encrypted images with the content of FILE, all of it' -r -F
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from info" -l nbd-server -d 'Run PROGRAM for formats other than raw and qcow2 [default: qemu-nbd]' -r -f -a "(__fish_complete_command)"
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from info" -l timeout -d 'Give up on a server that says nothing for SECONDS; 0 waits for ever [default: 60]' -r
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from info" -l tls-certificates -d 'The folder of the certificates for nbds URIs [default: that of libnbd]' -r -f -a "(__fish_complete_directories)"
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from info" -l untrusted -d 'Do not trust images: the same as --follow=none'
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from info" -s U -l force-share -d 'Read images although they are in use'
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from info" -l no-sandbox -d 'Do not restrict the process to reading the images'
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from info" -l json -d 'Write a JSON object a line'
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from info" -s h -l help -d 'Print this help'
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from algorithms" -l data -d 'Tell what the checksums of SIZE of data take' -r
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from algorithms" -l json -d 'Write a JSON object a line'
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from algorithms" -s h -l help -d 'Print this help'
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from obscure-name" -s h -l help -d 'Print this help'
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from help" -f -a "verify" -d 'Verify every checksum of file systems on devices or in images'
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from help" -f -a "info" -d 'Show what a file system\'s checksums are, and what computes them'
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from help" -f -a "algorithms" -d 'Compare the checksums that btrfs offers, on this CPU'
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from help" -f -a "obscure-name" -d 'Find another name of the same length with the same CRC-32C'
complete -c blkhash -n "__fish_blkhash_using_subcommand btrfs; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c blkhash -n "__fish_blkhash_using_subcommand help; and not __fish_seen_subcommand_from algorithms bench btrfs help" -f -a "algorithms" -d 'List the digest algorithms and their implementations, and say which are used and why'
complete -c blkhash -n "__fish_blkhash_using_subcommand help; and not __fish_seen_subcommand_from algorithms bench btrfs help" -f -a "bench" -d 'Measure every implementation of every algorithm, or what digests cost on an image'
complete -c blkhash -n "__fish_blkhash_using_subcommand help; and not __fish_seen_subcommand_from algorithms bench btrfs help" -f -a "btrfs" -d 'Verify the checksums of btrfs file systems, and explain them'
complete -c blkhash -n "__fish_blkhash_using_subcommand help; and not __fish_seen_subcommand_from algorithms bench btrfs help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c blkhash -n "__fish_blkhash_using_subcommand help; and __fish_seen_subcommand_from bench" -f -a "image" -d 'Measure what the storage of an image gives, what digests cost on it, and which of the two a checksum waits for'
complete -c blkhash -n "__fish_blkhash_using_subcommand help; and __fish_seen_subcommand_from btrfs" -f -a "verify" -d 'Verify every checksum of file systems on devices or in images'
complete -c blkhash -n "__fish_blkhash_using_subcommand help; and __fish_seen_subcommand_from btrfs" -f -a "info" -d 'Show what a file system\'s checksums are, and what computes them'
complete -c blkhash -n "__fish_blkhash_using_subcommand help; and __fish_seen_subcommand_from btrfs" -f -a "algorithms" -d 'Compare the checksums that btrfs offers, on this CPU'
complete -c blkhash -n "__fish_blkhash_using_subcommand help; and __fish_seen_subcommand_from btrfs" -f -a "obscure-name" -d 'Find another name of the same length with the same CRC-32C'
