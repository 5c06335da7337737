# Fish completion for blkhash(1), generated from its argument parser.

function __blkhash_path
    set -l words (commandline -opc)
    set -l path blkhash
    for word in $words[2..]
        contains -- "$path $word" 'blkhash' 'blkhash algorithms' 'blkhash bench' 'blkhash bench image' 'blkhash btrfs' 'blkhash btrfs verify' 'blkhash btrfs info' 'blkhash btrfs algorithms' 'blkhash btrfs obscure-name' 'blkhash btrfs help' 'blkhash btrfs help verify' 'blkhash btrfs help info' 'blkhash btrfs help algorithms' 'blkhash btrfs help obscure-name' 'blkhash btrfs help help' 'blkhash help' 'blkhash help algorithms' 'blkhash help bench' 'blkhash help bench image' 'blkhash help btrfs' 'blkhash help btrfs verify' 'blkhash help btrfs info' 'blkhash help btrfs algorithms' 'blkhash help btrfs obscure-name' 'blkhash help help'
        or break
        set path "$path $word"
    end
    echo $path
end

# Whether the cursor is among the arguments of a command.
function __blkhash_at
    test (__blkhash_path) = "$argv"
end

# Whether the cursor is at the first argument of a command.
function __blkhash_ends_at
    __blkhash_at $argv
    and test (count (commandline -opc)) = (count $argv)
end

complete -c blkhash -n '__blkhash_at blkhash' -f
complete -c blkhash -n '__blkhash_ends_at blkhash' -a algorithms -d 'List the digest algorithms and their implementations, and say which are used and why'
complete -c blkhash -n '__blkhash_ends_at blkhash' -a bench -d 'Measure every implementation of every algorithm, or what digests cost on an image'
complete -c blkhash -n '__blkhash_ends_at blkhash' -a btrfs -d 'Verify the checksums of btrfs file systems, and explain them'
complete -c blkhash -n '__blkhash_ends_at blkhash' -a help -d 'Print this message or the help of the given subcommand(s)'
complete -c blkhash -n '__blkhash_at blkhash' -s h -l help -d 'Print this help'
complete -c blkhash -n '__blkhash_at blkhash' -s V -l version -d 'Print the version'
complete -c blkhash -n '__blkhash_at blkhash algorithms' -f -a 'null crc32 crc32c crc64 crc64nvme xxh64 xxh3 xxh128 siphash md5 sha1 sha224 sha256 sha384 sha512 sha512-224 sha512-256 sha3-224 sha3-256 sha3-384 sha3-512 blake2b256 blake2b512 blake2s256 blake3'
complete -c blkhash -n '__blkhash_at blkhash algorithms' -l kernel -d 'Show beside it what the kernel has, from /proc/crypto'
complete -c blkhash -n '__blkhash_at blkhash algorithms' -l json -d 'Write a JSON object a line'
complete -c blkhash -n '__blkhash_at blkhash algorithms' -s h -l help -d 'Print this help'
complete -c blkhash -n '__blkhash_at blkhash bench' -f
complete -c blkhash -n '__blkhash_ends_at blkhash bench' -a image -d 'Measure what the storage of an image gives, what digests cost on it, and which of the two a checksum waits for'
complete -c blkhash -n '__blkhash_at blkhash bench' -l filter -r -f -d 'Measure only implementations or algorithms that match GLOB, in any case; may be repeated'
complete -c blkhash -n '__blkhash_at blkhash bench' -l block-size -r -f -d 'Hash blocks of SIZE, from 512 to 64M'
complete -c blkhash -n '__blkhash_at blkhash bench' -l batch -r -f -d 'Hand over N blocks at a time'
complete -c blkhash -n '__blkhash_at blkhash bench' -l threads -r -f -d 'Measure on so many threads at a time, or all; may be a list'
complete -c blkhash -n '__blkhash_at blkhash bench' -l cold -d 'Measure also blocks that come from memory, not from the cache'
complete -c blkhash -n '__blkhash_at blkhash bench' -l time -r -f -d 'Spend so many seconds on each row'
complete -c blkhash -n '__blkhash_at blkhash bench' -l iterations -r -f -d 'Hash N blocks for each row'
complete -c blkhash -n '__blkhash_at blkhash bench' -l format -r -f -a 'docs hash-speedtest csv json' -d 'Print the table of the documentation of btrfs (docs), the lines of btrfs-progs\' hash-speedtest, csv or json'
complete -c blkhash -n '__blkhash_at blkhash bench' -l json -d 'The same as --format json: an object a line'
complete -c blkhash -n '__blkhash_at blkhash bench' -l csv -d 'The same as --format csv'
complete -c blkhash -n '__blkhash_at blkhash bench' -l svg -r -F -d 'Write a bar chart to FILE, too'
complete -c blkhash -n '__blkhash_at blkhash bench' -l quality -d 'Measure not the speed but which errors the checksums detect'
complete -c blkhash -n '__blkhash_at blkhash bench' -s h -l help -d 'Print this help'
complete -c blkhash -n '__blkhash_at blkhash bench image' -s d -l digest -r -f -a 'null crc32 crc32c crc64 crc64nvme xxh64 xxh3 xxh128 md5 sha1 sha224 sha256 sha384 sha512 sha512-224 sha512-256 sha3-224 sha3-256 sha3-384 sha3-512 blake2b256 blake2b512 blake2s256 blake3' -d 'Measure the digest algorithm NAME; may be repeated'
complete -c blkhash -n '__blkhash_at blkhash bench image' -l threads -r -f -d 'Measure on so many threads at a time, or all; may be a list'
complete -c blkhash -n '__blkhash_at blkhash bench image' -l time -r -f -d 'Read as much as takes so many seconds'
complete -c blkhash -n '__blkhash_at blkhash bench image' -s f -l format -r -f -a 'raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg' -d 'Read the image as FORMAT, whatever it looks like'
complete -c blkhash -n '__blkhash_at blkhash bench image' -l no-sandbox -d 'Do not restrict the process to reading the image, as blksum does'
complete -c blkhash -n '__blkhash_at blkhash bench image' -l json -d 'Write a JSON object a line'
complete -c blkhash -n '__blkhash_at blkhash bench image' -s h -l help -d 'Print this help'
complete -c blkhash -n '__blkhash_at blkhash btrfs' -f
complete -c blkhash -n '__blkhash_ends_at blkhash btrfs' -a verify -d 'Verify every checksum of file systems on devices or in images'
complete -c blkhash -n '__blkhash_ends_at blkhash btrfs' -a info -d 'Show what a file system\'s checksums are, and what computes them'
complete -c blkhash -n '__blkhash_ends_at blkhash btrfs' -a algorithms -d 'Compare the checksums that btrfs offers, on this CPU'
complete -c blkhash -n '__blkhash_ends_at blkhash btrfs' -a obscure-name -d 'Find another name of the same length with the same CRC-32C'
complete -c blkhash -n '__blkhash_ends_at blkhash btrfs' -a help -d 'Print this message or the help of the given subcommand(s)'
complete -c blkhash -n '__blkhash_at blkhash btrfs' -s h -l help -d 'Print this help'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l partition -r -f -d 'Look at partition N alone'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l offset -r -f -d 'Look for the file system at this byte'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -s f -l format -r -f -a 'raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg' -d 'Read images as FORMAT, whatever they look like'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l snapshot -r -f -d 'Read the internal snapshot that has this name or id'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l cache -f -a 'auto yes no' -d 'Read through the page cache: auto, yes or no'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l holes -r -f -a 'trust verify ignore' -d 'What to make of holes in raw files: trust, verify or ignore'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l follow -r -f -a 'beneath any none' -d 'Which files an image may name: beneath (its own folder), any or none'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l untrusted -d 'Do not trust images: the same as --follow=none'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -s U -l force-share -d 'Read images although they are in use'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l backing-format -r -f -a 'raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg' -d 'Read backing files whose format is not recorded as FORMAT'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l secret-file -r -F -d 'Unlock encrypted images with the content of FILE, all of it'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l nbd-server -r -f -a '(__fish_complete_command)' -d 'Run PROGRAM for formats other than raw and qcow2'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l timeout -r -f -d 'Give up on a server that says nothing for SECONDS; 0 waits for ever'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l tls-certificates -r -f -a '(__fish_complete_directories (commandline -ct))' -d 'The folder of the certificates for nbds URIs'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l no-sandbox -d 'Do not restrict the process to reading the images'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l threads -r -f -d 'Work on N threads'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l implementation -r -f -d 'Hash with the implementation NAME alone, as blkhash algorithms names it'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l max-files -r -f -d 'Name at most N files for each error'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l max-errors -r -f -d 'Print at most N errors, and count the rest; 0 prints all'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l json -d 'Write a JSON object a line'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -s p -d 'Show progress on the terminal: auto, always or never; json writes an object a second'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l progress -f -a 'auto always never json' -d 'Show progress on the terminal: auto, always or never; json writes an object a second'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -s h -l help -d 'Print this help'
complete -c blkhash -n '__blkhash_at blkhash btrfs info' -l partition -r -f -d 'Look at partition N alone'
complete -c blkhash -n '__blkhash_at blkhash btrfs info' -l offset -r -f -d 'Look for the file system at this byte'
complete -c blkhash -n '__blkhash_at blkhash btrfs info' -s f -l format -r -f -a 'raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg' -d 'Read images as FORMAT, whatever they look like'
complete -c blkhash -n '__blkhash_at blkhash btrfs info' -l snapshot -r -f -d 'Read the internal snapshot that has this name or id'
complete -c blkhash -n '__blkhash_at blkhash btrfs info' -l cache -f -a 'auto yes no' -d 'Read through the page cache: auto, yes or no'
complete -c blkhash -n '__blkhash_at blkhash btrfs info' -l holes -r -f -a 'trust verify ignore' -d 'What to make of holes in raw files: trust, verify or ignore'
complete -c blkhash -n '__blkhash_at blkhash btrfs info' -l follow -r -f -a 'beneath any none' -d 'Which files an image may name: beneath (its own folder), any or none'
complete -c blkhash -n '__blkhash_at blkhash btrfs info' -l untrusted -d 'Do not trust images: the same as --follow=none'
complete -c blkhash -n '__blkhash_at blkhash btrfs info' -s U -l force-share -d 'Read images although they are in use'
complete -c blkhash -n '__blkhash_at blkhash btrfs info' -l backing-format -r -f -a 'raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg' -d 'Read backing files whose format is not recorded as FORMAT'
complete -c blkhash -n '__blkhash_at blkhash btrfs info' -l secret-file -r -F -d 'Unlock encrypted images with the content of FILE, all of it'
complete -c blkhash -n '__blkhash_at blkhash btrfs info' -l nbd-server -r -f -a '(__fish_complete_command)' -d 'Run PROGRAM for formats other than raw and qcow2'
complete -c blkhash -n '__blkhash_at blkhash btrfs info' -l timeout -r -f -d 'Give up on a server that says nothing for SECONDS; 0 waits for ever'
complete -c blkhash -n '__blkhash_at blkhash btrfs info' -l tls-certificates -r -f -a '(__fish_complete_directories (commandline -ct))' -d 'The folder of the certificates for nbds URIs'
complete -c blkhash -n '__blkhash_at blkhash btrfs info' -l no-sandbox -d 'Do not restrict the process to reading the images'
complete -c blkhash -n '__blkhash_at blkhash btrfs info' -l json -d 'Write a JSON object a line'
complete -c blkhash -n '__blkhash_at blkhash btrfs info' -s h -l help -d 'Print this help'
complete -c blkhash -n '__blkhash_at blkhash btrfs algorithms' -f
complete -c blkhash -n '__blkhash_at blkhash btrfs algorithms' -l data -r -f -d 'Tell what the checksums of SIZE of data take'
complete -c blkhash -n '__blkhash_at blkhash btrfs algorithms' -l json -d 'Write a JSON object a line'
complete -c blkhash -n '__blkhash_at blkhash btrfs algorithms' -s h -l help -d 'Print this help'
complete -c blkhash -n '__blkhash_at blkhash btrfs obscure-name' -f
complete -c blkhash -n '__blkhash_at blkhash btrfs obscure-name' -s h -l help -d 'Print this help'
complete -c blkhash -n '__blkhash_at blkhash btrfs help' -f
complete -c blkhash -n '__blkhash_ends_at blkhash btrfs help' -a verify -d 'Verify every checksum of file systems on devices or in images'
complete -c blkhash -n '__blkhash_ends_at blkhash btrfs help' -a info -d 'Show what a file system\'s checksums are, and what computes them'
complete -c blkhash -n '__blkhash_ends_at blkhash btrfs help' -a algorithms -d 'Compare the checksums that btrfs offers, on this CPU'
complete -c blkhash -n '__blkhash_ends_at blkhash btrfs help' -a obscure-name -d 'Find another name of the same length with the same CRC-32C'
complete -c blkhash -n '__blkhash_ends_at blkhash btrfs help' -a help -d 'Print this message or the help of the given subcommand(s)'
complete -c blkhash -n '__blkhash_at blkhash btrfs help verify' -f
complete -c blkhash -n '__blkhash_at blkhash btrfs help info' -f
complete -c blkhash -n '__blkhash_at blkhash btrfs help algorithms' -f
complete -c blkhash -n '__blkhash_at blkhash btrfs help obscure-name' -f
complete -c blkhash -n '__blkhash_at blkhash btrfs help help' -f
complete -c blkhash -n '__blkhash_at blkhash help' -f
complete -c blkhash -n '__blkhash_ends_at blkhash help' -a algorithms -d 'List the digest algorithms and their implementations, and say which are used and why'
complete -c blkhash -n '__blkhash_ends_at blkhash help' -a bench -d 'Measure every implementation of every algorithm, or what digests cost on an image'
complete -c blkhash -n '__blkhash_ends_at blkhash help' -a btrfs -d 'Verify the checksums of btrfs file systems, and explain them'
complete -c blkhash -n '__blkhash_ends_at blkhash help' -a help -d 'Print this message or the help of the given subcommand(s)'
complete -c blkhash -n '__blkhash_at blkhash help algorithms' -f
complete -c blkhash -n '__blkhash_at blkhash help bench' -f
complete -c blkhash -n '__blkhash_ends_at blkhash help bench' -a image -d 'Measure what the storage of an image gives, what digests cost on it, and which of the two a checksum waits for'
complete -c blkhash -n '__blkhash_at blkhash help bench image' -f
complete -c blkhash -n '__blkhash_at blkhash help btrfs' -f
complete -c blkhash -n '__blkhash_ends_at blkhash help btrfs' -a verify -d 'Verify every checksum of file systems on devices or in images'
complete -c blkhash -n '__blkhash_ends_at blkhash help btrfs' -a info -d 'Show what a file system\'s checksums are, and what computes them'
complete -c blkhash -n '__blkhash_ends_at blkhash help btrfs' -a algorithms -d 'Compare the checksums that btrfs offers, on this CPU'
complete -c blkhash -n '__blkhash_ends_at blkhash help btrfs' -a obscure-name -d 'Find another name of the same length with the same CRC-32C'
complete -c blkhash -n '__blkhash_at blkhash help btrfs verify' -f
complete -c blkhash -n '__blkhash_at blkhash help btrfs info' -f
complete -c blkhash -n '__blkhash_at blkhash help btrfs algorithms' -f
complete -c blkhash -n '__blkhash_at blkhash help btrfs obscure-name' -f
complete -c blkhash -n '__blkhash_at blkhash help help' -f
