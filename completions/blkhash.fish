# Fish completion for blkhash(1), generated from its argument parser.

function __blkhash_path
    set -l words (commandline -opc)
    set -l path blkhash
    for word in $words[2..]
        contains -- "$path $word" 'blkhash' 'blkhash algorithms' 'blkhash bench' 'blkhash bench image' 'blkhash btrfs' 'blkhash btrfs verify' 'blkhash btrfs info' 'blkhash btrfs algorithms' 'blkhash btrfs obscure-name' 'blkhash btrfs help' 'blkhash btrfs help verify' 'blkhash btrfs help info' 'blkhash btrfs help algorithms' 'blkhash btrfs help obscure-name' 'blkhash btrfs help help' 'blkhash verity' 'blkhash verity digest' 'blkhash verity format' 'blkhash verity verify' 'blkhash verity help' 'blkhash verity help digest' 'blkhash verity help format' 'blkhash verity help verify' 'blkhash verity help help' 'blkhash help' 'blkhash help algorithms' 'blkhash help bench' 'blkhash help bench image' 'blkhash help btrfs' 'blkhash help btrfs verify' 'blkhash help btrfs info' 'blkhash help btrfs algorithms' 'blkhash help btrfs obscure-name' 'blkhash help verity' 'blkhash help verity digest' 'blkhash help verity format' 'blkhash help verity verify' 'blkhash help help'
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
complete -c blkhash -n '__blkhash_ends_at blkhash' -a algorithms -d 'List digest algorithms, their implementations, and which of them are used'
complete -c blkhash -n '__blkhash_ends_at blkhash' -a bench -d 'Measure all implementations, or the speed of digests on an image'
complete -c blkhash -n '__blkhash_ends_at blkhash' -a btrfs -d 'Verify and explain the checksums of btrfs file systems'
complete -c blkhash -n '__blkhash_ends_at blkhash' -a verity -d 'Make and verify trees of fs-verity and dm-verity for any image'
complete -c blkhash -n '__blkhash_ends_at blkhash' -a help -d 'Print this message or the help of the given subcommand(s)'
complete -c blkhash -n '__blkhash_at blkhash' -s h -l help -d 'Print this help'
complete -c blkhash -n '__blkhash_at blkhash' -s V -l version -d 'Print the version'
complete -c blkhash -n '__blkhash_at blkhash algorithms' -f -a 'null crc32 crc32c crc64 crc64nvme xxh64 xxh3 xxh128 siphash md5 sha1 sha224 sha256 sha384 sha512 sha512-224 sha512-256 sha3-224 sha3-256 sha3-384 sha3-512 blake2b256 blake2b512 blake2s256 blake3'
complete -c blkhash -n '__blkhash_at blkhash algorithms' -l kernel -d 'Also show the kernel\'s drivers, from /proc/crypto'
complete -c blkhash -n '__blkhash_at blkhash algorithms' -l json -d 'Write one JSON object per line'
complete -c blkhash -n '__blkhash_at blkhash algorithms' -s h -l help -d 'Print this help'
complete -c blkhash -n '__blkhash_at blkhash bench' -f
complete -c blkhash -n '__blkhash_ends_at blkhash bench' -a image -d 'Measure the storage of an image and digests on it, and show which of them is the limit'
complete -c blkhash -n '__blkhash_at blkhash bench' -l filter -r -f -d 'Measure only implementations or algorithms that match GLOB, ignoring case'
complete -c blkhash -n '__blkhash_at blkhash bench' -l block-size -r -f -d 'Block size, from 512 to 64M'
complete -c blkhash -n '__blkhash_at blkhash bench' -l batch -r -f -d 'Number of blocks hashed in one call'
complete -c blkhash -n '__blkhash_at blkhash bench' -l threads -r -f -d 'Numbers of threads to measure, or all; a list with commas'
complete -c blkhash -n '__blkhash_at blkhash bench' -l cold -d 'Also measure blocks from memory, in addition to those in the cache'
complete -c blkhash -n '__blkhash_at blkhash bench' -l time -r -f -d 'Seconds for each row'
complete -c blkhash -n '__blkhash_at blkhash bench' -l iterations -r -f -d 'Number of blocks for each row'
complete -c blkhash -n '__blkhash_at blkhash bench' -l format -r -f -a 'docs hash-speedtest csv json' -d 'Output format: docs (the table in the documentation of btrfs), hash-speedtest (the lines of btrfs-progs), csv or json'
complete -c blkhash -n '__blkhash_at blkhash bench' -l json -d 'Same as --format json: one object per line'
complete -c blkhash -n '__blkhash_at blkhash bench' -l csv -d 'Same as --format csv'
complete -c blkhash -n '__blkhash_at blkhash bench' -l svg -r -F -d 'Also write a bar chart to FILE'
complete -c blkhash -n '__blkhash_at blkhash bench' -l quality -d 'Measure which errors the checksums detect, instead of their speed'
complete -c blkhash -n '__blkhash_at blkhash bench' -s h -l help -d 'Print this help'
complete -c blkhash -n '__blkhash_at blkhash bench image' -s d -l digest -r -f -a 'null crc32 crc32c crc64 crc64nvme xxh64 xxh3 xxh128 md5 sha1 sha224 sha256 sha384 sha512 sha512-224 sha512-256 sha3-224 sha3-256 sha3-384 sha3-512 blake2b256 blake2b512 blake2s256 blake3' -d 'Digest algorithm to measure'
complete -c blkhash -n '__blkhash_at blkhash bench image' -l threads -r -f -d 'Numbers of threads to measure, or all; a list with commas'
complete -c blkhash -n '__blkhash_at blkhash bench image' -l time -r -f -d 'Seconds of reading for each measurement'
complete -c blkhash -n '__blkhash_at blkhash bench image' -s f -l format -r -f -a 'raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg' -d 'Format of the image'
complete -c blkhash -n '__blkhash_at blkhash bench image' -l no-sandbox -d 'Disable the sandbox'
complete -c blkhash -n '__blkhash_at blkhash bench image' -l json -d 'Write one JSON object per line'
complete -c blkhash -n '__blkhash_at blkhash bench image' -s h -l help -d 'Print this help'
complete -c blkhash -n '__blkhash_at blkhash btrfs' -f
complete -c blkhash -n '__blkhash_ends_at blkhash btrfs' -a verify -d 'Verify every checksum of file systems on devices or in images'
complete -c blkhash -n '__blkhash_ends_at blkhash btrfs' -a info -d 'Show the checksums of a file system, and what computes them'
complete -c blkhash -n '__blkhash_ends_at blkhash btrfs' -a algorithms -d 'Compare the checksums that btrfs offers, on this CPU'
complete -c blkhash -n '__blkhash_ends_at blkhash btrfs' -a obscure-name -d 'Find another name of the same length with the same CRC-32C'
complete -c blkhash -n '__blkhash_ends_at blkhash btrfs' -a help -d 'Print this message or the help of the given subcommand(s)'
complete -c blkhash -n '__blkhash_at blkhash btrfs' -s h -l help -d 'Print this help'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l partition -r -f -d 'Look only at partition N'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l offset -r -f -d 'Look for the file system at this byte'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -s f -l format -r -f -a 'raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg' -d 'Format of the images'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l snapshot -r -f -d 'Read the internal snapshot with this name or id'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l cache -f -a 'auto yes no' -d 'Read through the page cache: auto, yes or no'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l holes -r -f -a 'trust verify ignore' -d 'How to treat holes in raw files: trust, verify or ignore'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l follow -r -f -a 'beneath any none' -d 'Files that an image may refer to: beneath (its own folder), any or none'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l untrusted -d 'For images from unknown sources: the same as --follow=none'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -s U -l force-share -d 'Read images that are in use'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l backing-format -r -f -a 'raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg' -d 'Format of backing files whose format is not recorded'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l secret-file -r -F -d 'Unlock encrypted (luks) images with the content of FILE'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l nbd-server -r -f -a '(__fish_complete_command)' -d 'Program that reads formats other than raw and qcow2'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l timeout -r -f -d 'Fail if a server is silent for SECONDS; 0 waits forever'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l tls-certificates -r -f -a '(__fish_complete_directories (commandline -ct))' -d 'Folder of the certificates for nbds:// URIs'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l no-sandbox -d 'Disable the sandbox'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l threads -r -f -d 'Number of threads'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l implementation -r -f -d 'Hash with this implementation only; blkhash algorithms lists them'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l max-files -r -f -d 'Name at most N files for each error'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l max-errors -r -f -d 'Print at most N errors, and count the rest; 0 prints all'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l json -d 'Write one JSON object per line'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -s p -d 'Show progress on the terminal: auto, always or never; json writes an object a second'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -l progress -f -a 'auto always never json' -d 'Show progress on the terminal: auto, always or never; json writes an object a second'
complete -c blkhash -n '__blkhash_at blkhash btrfs verify' -s h -l help -d 'Print this help'
complete -c blkhash -n '__blkhash_at blkhash btrfs info' -l partition -r -f -d 'Look only at partition N'
complete -c blkhash -n '__blkhash_at blkhash btrfs info' -l offset -r -f -d 'Look for the file system at this byte'
complete -c blkhash -n '__blkhash_at blkhash btrfs info' -s f -l format -r -f -a 'raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg' -d 'Format of the images'
complete -c blkhash -n '__blkhash_at blkhash btrfs info' -l snapshot -r -f -d 'Read the internal snapshot with this name or id'
complete -c blkhash -n '__blkhash_at blkhash btrfs info' -l cache -f -a 'auto yes no' -d 'Read through the page cache: auto, yes or no'
complete -c blkhash -n '__blkhash_at blkhash btrfs info' -l holes -r -f -a 'trust verify ignore' -d 'How to treat holes in raw files: trust, verify or ignore'
complete -c blkhash -n '__blkhash_at blkhash btrfs info' -l follow -r -f -a 'beneath any none' -d 'Files that an image may refer to: beneath (its own folder), any or none'
complete -c blkhash -n '__blkhash_at blkhash btrfs info' -l untrusted -d 'For images from unknown sources: the same as --follow=none'
complete -c blkhash -n '__blkhash_at blkhash btrfs info' -s U -l force-share -d 'Read images that are in use'
complete -c blkhash -n '__blkhash_at blkhash btrfs info' -l backing-format -r -f -a 'raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg' -d 'Format of backing files whose format is not recorded'
complete -c blkhash -n '__blkhash_at blkhash btrfs info' -l secret-file -r -F -d 'Unlock encrypted (luks) images with the content of FILE'
complete -c blkhash -n '__blkhash_at blkhash btrfs info' -l nbd-server -r -f -a '(__fish_complete_command)' -d 'Program that reads formats other than raw and qcow2'
complete -c blkhash -n '__blkhash_at blkhash btrfs info' -l timeout -r -f -d 'Fail if a server is silent for SECONDS; 0 waits forever'
complete -c blkhash -n '__blkhash_at blkhash btrfs info' -l tls-certificates -r -f -a '(__fish_complete_directories (commandline -ct))' -d 'Folder of the certificates for nbds:// URIs'
complete -c blkhash -n '__blkhash_at blkhash btrfs info' -l no-sandbox -d 'Disable the sandbox'
complete -c blkhash -n '__blkhash_at blkhash btrfs info' -l json -d 'Write one JSON object per line'
complete -c blkhash -n '__blkhash_at blkhash btrfs info' -s h -l help -d 'Print this help'
complete -c blkhash -n '__blkhash_at blkhash btrfs algorithms' -f
complete -c blkhash -n '__blkhash_at blkhash btrfs algorithms' -l data -r -f -d 'Also show the space that the checksums of SIZE of data take'
complete -c blkhash -n '__blkhash_at blkhash btrfs algorithms' -l json -d 'Write one JSON object per line'
complete -c blkhash -n '__blkhash_at blkhash btrfs algorithms' -s h -l help -d 'Print this help'
complete -c blkhash -n '__blkhash_at blkhash btrfs obscure-name' -f
complete -c blkhash -n '__blkhash_at blkhash btrfs obscure-name' -s h -l help -d 'Print this help'
complete -c blkhash -n '__blkhash_at blkhash btrfs help' -f
complete -c blkhash -n '__blkhash_ends_at blkhash btrfs help' -a verify -d 'Verify every checksum of file systems on devices or in images'
complete -c blkhash -n '__blkhash_ends_at blkhash btrfs help' -a info -d 'Show the checksums of a file system, and what computes them'
complete -c blkhash -n '__blkhash_ends_at blkhash btrfs help' -a algorithms -d 'Compare the checksums that btrfs offers, on this CPU'
complete -c blkhash -n '__blkhash_ends_at blkhash btrfs help' -a obscure-name -d 'Find another name of the same length with the same CRC-32C'
complete -c blkhash -n '__blkhash_ends_at blkhash btrfs help' -a help -d 'Print this message or the help of the given subcommand(s)'
complete -c blkhash -n '__blkhash_at blkhash btrfs help verify' -f
complete -c blkhash -n '__blkhash_at blkhash btrfs help info' -f
complete -c blkhash -n '__blkhash_at blkhash btrfs help algorithms' -f
complete -c blkhash -n '__blkhash_at blkhash btrfs help obscure-name' -f
complete -c blkhash -n '__blkhash_at blkhash btrfs help help' -f
complete -c blkhash -n '__blkhash_at blkhash verity' -f
complete -c blkhash -n '__blkhash_ends_at blkhash verity' -a digest -d 'Print the fs-verity digest of images, like fsverity digest'
complete -c blkhash -n '__blkhash_ends_at blkhash verity' -a format -d 'Make the hash file of dm-verity for an image, like veritysetup format'
complete -c blkhash -n '__blkhash_ends_at blkhash verity' -a verify -d 'Verify an image against a hash file of dm-verity or a tree of fs-verity, and find every bad block'
complete -c blkhash -n '__blkhash_ends_at blkhash verity' -a help -d 'Print this message or the help of the given subcommand(s)'
complete -c blkhash -n '__blkhash_at blkhash verity' -s h -l help -d 'Print this help'
complete -c blkhash -n '__blkhash_at blkhash verity digest' -l hash-alg -r -f -a 'sha256 sha512' -d 'Digest algorithm of fs-verity: sha256 or sha512'
complete -c blkhash -n '__blkhash_at blkhash verity digest' -l block-size -r -f -d 'Size of the blocks of fs-verity, a power of two from 512 to 64M'
complete -c blkhash -n '__blkhash_at blkhash verity digest' -l out-merkle-tree -r -F -d 'Write the Merkle tree to FILE'
complete -c blkhash -n '__blkhash_at blkhash verity digest' -l out-descriptor -r -F -d 'Write the descriptor to FILE'
complete -c blkhash -n '__blkhash_at blkhash verity digest' -l compact -d 'Print only the digest'
complete -c blkhash -n '__blkhash_at blkhash verity digest' -l for-builtin-sig -d 'Print the digest in the form that the kernel\'s built-in signatures sign'
complete -c blkhash -n '__blkhash_at blkhash verity digest' -l json -d 'Write one JSON object per line'
complete -c blkhash -n '__blkhash_at blkhash verity digest' -s s -l salt -r -f -d 'Salt in hexadecimal: up to 32 bytes for fs-verity, 256 for dm-verity; - is none'
complete -c blkhash -n '__blkhash_at blkhash verity digest' -l partition -r -f -d 'Only partition N of the image'
complete -c blkhash -n '__blkhash_at blkhash verity digest' -l threads -r -f -d 'Number of threads'
complete -c blkhash -n '__blkhash_at blkhash verity digest' -l max-zeros -r -f -d 'Refuse images with more zeros than SIZE that they do not store'
complete -c blkhash -n '__blkhash_at blkhash verity digest' -s f -l format -r -f -a 'raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg' -d 'Format of the images'
complete -c blkhash -n '__blkhash_at blkhash verity digest' -l snapshot -r -f -d 'Read the internal snapshot with this name or id'
complete -c blkhash -n '__blkhash_at blkhash verity digest' -l cache -f -a 'auto yes no' -d 'Read through the page cache: auto, yes or no'
complete -c blkhash -n '__blkhash_at blkhash verity digest' -l holes -r -f -a 'trust verify ignore' -d 'How to treat holes in raw files: trust, verify or ignore'
complete -c blkhash -n '__blkhash_at blkhash verity digest' -l follow -r -f -a 'beneath any none' -d 'Files that an image may refer to: beneath (its own folder), any or none'
complete -c blkhash -n '__blkhash_at blkhash verity digest' -l untrusted -d 'For images from unknown sources: the same as --follow=none'
complete -c blkhash -n '__blkhash_at blkhash verity digest' -s U -l force-share -d 'Read images that are in use'
complete -c blkhash -n '__blkhash_at blkhash verity digest' -l backing-format -r -f -a 'raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg' -d 'Format of backing files whose format is not recorded'
complete -c blkhash -n '__blkhash_at blkhash verity digest' -l secret-file -r -F -d 'Unlock encrypted (luks) images with the content of FILE'
complete -c blkhash -n '__blkhash_at blkhash verity digest' -l nbd-server -r -f -a '(__fish_complete_command)' -d 'Program that reads formats other than raw and qcow2'
complete -c blkhash -n '__blkhash_at blkhash verity digest' -l timeout -r -f -d 'Fail if a server is silent for SECONDS; 0 waits forever'
complete -c blkhash -n '__blkhash_at blkhash verity digest' -l tls-certificates -r -f -a '(__fish_complete_directories (commandline -ct))' -d 'Folder of the certificates for nbds:// URIs'
complete -c blkhash -n '__blkhash_at blkhash verity digest' -l no-sandbox -d 'Disable the sandbox'
complete -c blkhash -n '__blkhash_at blkhash verity digest' -s p -d 'Show progress on the terminal: auto, always or never; json writes an object a second'
complete -c blkhash -n '__blkhash_at blkhash verity digest' -l progress -f -a 'auto always never json' -d 'Show progress on the terminal: auto, always or never; json writes an object a second'
complete -c blkhash -n '__blkhash_at blkhash verity digest' -s h -l help -d 'Print this help'
complete -c blkhash -n '__blkhash_at blkhash verity format' -l hash -r -f -a 'md5 sha1 sha224 sha256 sha384 sha512 sha512-224 sha512-256 sha3-224 sha3-256 sha3-384 sha3-512 blake2b256 blake2b512 blake2s256 blake3' -d 'Digest algorithm of dm-verity'
complete -c blkhash -n '__blkhash_at blkhash verity format' -l data-block-size -r -f -d 'Size of a block of data, a power of two from 512 to 512K'
complete -c blkhash -n '__blkhash_at blkhash verity format' -l hash-block-size -r -f -d 'Size of a block of hashes, a power of two from 512 to 512K'
complete -c blkhash -n '__blkhash_at blkhash verity format' -l data-blocks -r -f -d 'Number of blocks of data'
complete -c blkhash -n '__blkhash_at blkhash verity format' -l hash-offset -r -f -d 'Offset of the hashes in HASH'
complete -c blkhash -n '__blkhash_at blkhash verity format' -l no-superblock -d 'HASH has no superblock, only the tree'
complete -c blkhash -n '__blkhash_at blkhash verity format' -l uuid -r -f -d 'UUID of the hash file'
complete -c blkhash -n '__blkhash_at blkhash verity format' -l root-hash-file -r -F -d 'Write the root hash to FILE'
complete -c blkhash -n '__blkhash_at blkhash verity format' -l force -d 'Overwrite HASH although it has other content'
complete -c blkhash -n '__blkhash_at blkhash verity format' -l json -d 'Write a JSON object'
complete -c blkhash -n '__blkhash_at blkhash verity format' -s s -l salt -r -f -d 'Salt in hexadecimal: up to 32 bytes for fs-verity, 256 for dm-verity; - is none'
complete -c blkhash -n '__blkhash_at blkhash verity format' -l partition -r -f -d 'Only partition N of the image'
complete -c blkhash -n '__blkhash_at blkhash verity format' -l threads -r -f -d 'Number of threads'
complete -c blkhash -n '__blkhash_at blkhash verity format' -l max-zeros -r -f -d 'Refuse images with more zeros than SIZE that they do not store'
complete -c blkhash -n '__blkhash_at blkhash verity format' -s f -l format -r -f -a 'raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg' -d 'Format of the images'
complete -c blkhash -n '__blkhash_at blkhash verity format' -l snapshot -r -f -d 'Read the internal snapshot with this name or id'
complete -c blkhash -n '__blkhash_at blkhash verity format' -l cache -f -a 'auto yes no' -d 'Read through the page cache: auto, yes or no'
complete -c blkhash -n '__blkhash_at blkhash verity format' -l holes -r -f -a 'trust verify ignore' -d 'How to treat holes in raw files: trust, verify or ignore'
complete -c blkhash -n '__blkhash_at blkhash verity format' -l follow -r -f -a 'beneath any none' -d 'Files that an image may refer to: beneath (its own folder), any or none'
complete -c blkhash -n '__blkhash_at blkhash verity format' -l untrusted -d 'For images from unknown sources: the same as --follow=none'
complete -c blkhash -n '__blkhash_at blkhash verity format' -s U -l force-share -d 'Read images that are in use'
complete -c blkhash -n '__blkhash_at blkhash verity format' -l backing-format -r -f -a 'raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg' -d 'Format of backing files whose format is not recorded'
complete -c blkhash -n '__blkhash_at blkhash verity format' -l secret-file -r -F -d 'Unlock encrypted (luks) images with the content of FILE'
complete -c blkhash -n '__blkhash_at blkhash verity format' -l nbd-server -r -f -a '(__fish_complete_command)' -d 'Program that reads formats other than raw and qcow2'
complete -c blkhash -n '__blkhash_at blkhash verity format' -l timeout -r -f -d 'Fail if a server is silent for SECONDS; 0 waits forever'
complete -c blkhash -n '__blkhash_at blkhash verity format' -l tls-certificates -r -f -a '(__fish_complete_directories (commandline -ct))' -d 'Folder of the certificates for nbds:// URIs'
complete -c blkhash -n '__blkhash_at blkhash verity format' -l no-sandbox -d 'Disable the sandbox'
complete -c blkhash -n '__blkhash_at blkhash verity format' -s p -d 'Show progress on the terminal: auto, always or never; json writes an object a second'
complete -c blkhash -n '__blkhash_at blkhash verity format' -l progress -f -a 'auto always never json' -d 'Show progress on the terminal: auto, always or never; json writes an object a second'
complete -c blkhash -n '__blkhash_at blkhash verity format' -s h -l help -d 'Print this help'
complete -c blkhash -n '__blkhash_at blkhash verity verify' -l root-hash-file -r -F -d 'Read the root hash from FILE'
complete -c blkhash -n '__blkhash_at blkhash verity verify' -l hash -r -f -a 'md5 sha1 sha224 sha256 sha384 sha512 sha512-224 sha512-256 sha3-224 sha3-256 sha3-384 sha3-512 blake2b256 blake2b512 blake2s256 blake3' -d 'Digest algorithm of dm-verity'
complete -c blkhash -n '__blkhash_at blkhash verity verify' -l data-block-size -r -f -d 'Size of a block of data, a power of two from 512 to 512K'
complete -c blkhash -n '__blkhash_at blkhash verity verify' -l hash-block-size -r -f -d 'Size of a block of hashes, a power of two from 512 to 512K'
complete -c blkhash -n '__blkhash_at blkhash verity verify' -l data-blocks -r -f -d 'Number of blocks of data'
complete -c blkhash -n '__blkhash_at blkhash verity verify' -l hash-offset -r -f -d 'Offset of the hashes in HASH'
complete -c blkhash -n '__blkhash_at blkhash verity verify' -l no-superblock -d 'HASH has no superblock, only the tree'
complete -c blkhash -n '__blkhash_at blkhash verity verify' -l fs-verity -d 'HASH is a Merkle tree of fs-verity, and ROOT the fs-verity digest'
complete -c blkhash -n '__blkhash_at blkhash verity verify' -l hash-alg -r -f -a 'sha256 sha512' -d 'Digest algorithm of fs-verity: sha256 or sha512'
complete -c blkhash -n '__blkhash_at blkhash verity verify' -l block-size -r -f -d 'Size of the blocks of fs-verity, a power of two from 512 to 64M'
complete -c blkhash -n '__blkhash_at blkhash verity verify' -l max-errors -r -f -d 'Print at most N errors, and count the rest; 0 prints all'
complete -c blkhash -n '__blkhash_at blkhash verity verify' -l json -d 'Write one JSON object per line'
complete -c blkhash -n '__blkhash_at blkhash verity verify' -s s -l salt -r -f -d 'Salt in hexadecimal: up to 32 bytes for fs-verity, 256 for dm-verity; - is none'
complete -c blkhash -n '__blkhash_at blkhash verity verify' -l partition -r -f -d 'Only partition N of the image'
complete -c blkhash -n '__blkhash_at blkhash verity verify' -l threads -r -f -d 'Number of threads'
complete -c blkhash -n '__blkhash_at blkhash verity verify' -l max-zeros -r -f -d 'Refuse images with more zeros than SIZE that they do not store'
complete -c blkhash -n '__blkhash_at blkhash verity verify' -s f -l format -r -f -a 'raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg' -d 'Format of the images'
complete -c blkhash -n '__blkhash_at blkhash verity verify' -l snapshot -r -f -d 'Read the internal snapshot with this name or id'
complete -c blkhash -n '__blkhash_at blkhash verity verify' -l cache -f -a 'auto yes no' -d 'Read through the page cache: auto, yes or no'
complete -c blkhash -n '__blkhash_at blkhash verity verify' -l holes -r -f -a 'trust verify ignore' -d 'How to treat holes in raw files: trust, verify or ignore'
complete -c blkhash -n '__blkhash_at blkhash verity verify' -l follow -r -f -a 'beneath any none' -d 'Files that an image may refer to: beneath (its own folder), any or none'
complete -c blkhash -n '__blkhash_at blkhash verity verify' -l untrusted -d 'For images from unknown sources: the same as --follow=none'
complete -c blkhash -n '__blkhash_at blkhash verity verify' -s U -l force-share -d 'Read images that are in use'
complete -c blkhash -n '__blkhash_at blkhash verity verify' -l backing-format -r -f -a 'raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg' -d 'Format of backing files whose format is not recorded'
complete -c blkhash -n '__blkhash_at blkhash verity verify' -l secret-file -r -F -d 'Unlock encrypted (luks) images with the content of FILE'
complete -c blkhash -n '__blkhash_at blkhash verity verify' -l nbd-server -r -f -a '(__fish_complete_command)' -d 'Program that reads formats other than raw and qcow2'
complete -c blkhash -n '__blkhash_at blkhash verity verify' -l timeout -r -f -d 'Fail if a server is silent for SECONDS; 0 waits forever'
complete -c blkhash -n '__blkhash_at blkhash verity verify' -l tls-certificates -r -f -a '(__fish_complete_directories (commandline -ct))' -d 'Folder of the certificates for nbds:// URIs'
complete -c blkhash -n '__blkhash_at blkhash verity verify' -l no-sandbox -d 'Disable the sandbox'
complete -c blkhash -n '__blkhash_at blkhash verity verify' -s p -d 'Show progress on the terminal: auto, always or never; json writes an object a second'
complete -c blkhash -n '__blkhash_at blkhash verity verify' -l progress -f -a 'auto always never json' -d 'Show progress on the terminal: auto, always or never; json writes an object a second'
complete -c blkhash -n '__blkhash_at blkhash verity verify' -s h -l help -d 'Print this help'
complete -c blkhash -n '__blkhash_at blkhash verity help' -f
complete -c blkhash -n '__blkhash_ends_at blkhash verity help' -a digest -d 'Print the fs-verity digest of images, like fsverity digest'
complete -c blkhash -n '__blkhash_ends_at blkhash verity help' -a format -d 'Make the hash file of dm-verity for an image, like veritysetup format'
complete -c blkhash -n '__blkhash_ends_at blkhash verity help' -a verify -d 'Verify an image against a hash file of dm-verity or a tree of fs-verity, and find every bad block'
complete -c blkhash -n '__blkhash_ends_at blkhash verity help' -a help -d 'Print this message or the help of the given subcommand(s)'
complete -c blkhash -n '__blkhash_at blkhash verity help digest' -f
complete -c blkhash -n '__blkhash_at blkhash verity help format' -f
complete -c blkhash -n '__blkhash_at blkhash verity help verify' -f
complete -c blkhash -n '__blkhash_at blkhash verity help help' -f
complete -c blkhash -n '__blkhash_at blkhash help' -f
complete -c blkhash -n '__blkhash_ends_at blkhash help' -a algorithms -d 'List digest algorithms, their implementations, and which of them are used'
complete -c blkhash -n '__blkhash_ends_at blkhash help' -a bench -d 'Measure all implementations, or the speed of digests on an image'
complete -c blkhash -n '__blkhash_ends_at blkhash help' -a btrfs -d 'Verify and explain the checksums of btrfs file systems'
complete -c blkhash -n '__blkhash_ends_at blkhash help' -a verity -d 'Make and verify trees of fs-verity and dm-verity for any image'
complete -c blkhash -n '__blkhash_ends_at blkhash help' -a help -d 'Print this message or the help of the given subcommand(s)'
complete -c blkhash -n '__blkhash_at blkhash help algorithms' -f
complete -c blkhash -n '__blkhash_at blkhash help bench' -f
complete -c blkhash -n '__blkhash_ends_at blkhash help bench' -a image -d 'Measure the storage of an image and digests on it, and show which of them is the limit'
complete -c blkhash -n '__blkhash_at blkhash help bench image' -f
complete -c blkhash -n '__blkhash_at blkhash help btrfs' -f
complete -c blkhash -n '__blkhash_ends_at blkhash help btrfs' -a verify -d 'Verify every checksum of file systems on devices or in images'
complete -c blkhash -n '__blkhash_ends_at blkhash help btrfs' -a info -d 'Show the checksums of a file system, and what computes them'
complete -c blkhash -n '__blkhash_ends_at blkhash help btrfs' -a algorithms -d 'Compare the checksums that btrfs offers, on this CPU'
complete -c blkhash -n '__blkhash_ends_at blkhash help btrfs' -a obscure-name -d 'Find another name of the same length with the same CRC-32C'
complete -c blkhash -n '__blkhash_at blkhash help btrfs verify' -f
complete -c blkhash -n '__blkhash_at blkhash help btrfs info' -f
complete -c blkhash -n '__blkhash_at blkhash help btrfs algorithms' -f
complete -c blkhash -n '__blkhash_at blkhash help btrfs obscure-name' -f
complete -c blkhash -n '__blkhash_at blkhash help verity' -f
complete -c blkhash -n '__blkhash_ends_at blkhash help verity' -a digest -d 'Print the fs-verity digest of images, like fsverity digest'
complete -c blkhash -n '__blkhash_ends_at blkhash help verity' -a format -d 'Make the hash file of dm-verity for an image, like veritysetup format'
complete -c blkhash -n '__blkhash_ends_at blkhash help verity' -a verify -d 'Verify an image against a hash file of dm-verity or a tree of fs-verity, and find every bad block'
complete -c blkhash -n '__blkhash_at blkhash help verity digest' -f
complete -c blkhash -n '__blkhash_at blkhash help verity format' -f
complete -c blkhash -n '__blkhash_at blkhash help verity verify' -f
complete -c blkhash -n '__blkhash_at blkhash help help' -f
