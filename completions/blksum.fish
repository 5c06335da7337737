complete -c blksum -s d -s a -l digest -l algorithm -d 'Use the digest algorithm NAME [default: sha256]. Given more than once, each image is read once for all of them; NAME:HOW has a construction of its own' -r -f -a "null\t''
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
complete -c blksum -l construction -d 'Make the checksum as HOW says: streams[:N], flat, concat or linear [default: streams:4]' -r -f -a "streams:4\t''
streams:32\t''
streams:64\t''
flat\t''
concat\t''
linear\t''"
complete -c blksum -l block-size -d 'Hash blocks of SIZE, a power of two from 512 to 64M [default: 64K]' -r
complete -c blksum -s f -l format -d 'Read images as FORMAT, as QEMU names it, whatever they look like' -r -f -a "raw\t''
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
complete -c blksum -l secret-file -d 'Unlock encrypted images with the content of FILE, all of it' -r -F
complete -c blksum -l snapshot -d 'Read the internal snapshot that has this name or id, at the size it had when it was taken' -r
complete -c blksum -l partition -d 'Hash partition N of each image alone (GPT, MBR)' -r
complete -c blksum -l offset -d 'Hash each image from this byte of its content on' -r
complete -c blksum -l length -d 'Hash as many bytes of each image [default: up to its end]' -r
complete -c blksum -l include -d 'With --recursive hash only files that match GLOB: their names, or their paths if GLOB has a slash. Repeatable' -r
complete -c blksum -l exclude -d 'With --recursive leave out files and folders that match GLOB. Repeatable' -r
complete -c blksum -l files0-from -d 'Read the names of images from FILE, each ended by NUL; - is standard input' -r -F
complete -c blksum -l threads -d 'Work on N threads [default: one for each processor]' -r
complete -c blksum -l cache -d 'Read through the page cache: auto, yes or no [default: auto; without a value: yes]' -r -f -a "auto\t''
yes\t''
no\t''"
complete -c blksum -l holes -d 'What to make of holes in raw files: trust, verify or ignore [default: trust]' -r -f -a "trust\t''
verify\t''
ignore\t''"
complete -c blksum -l nbd-server -d 'Run PROGRAM for formats other than raw and qcow2 [default: qemu-nbd]' -r -f -a "(__fish_complete_command)"
complete -c blksum -l queue-depth -d 'Let N reads be ahead of the first that is not done' -r
complete -c blksum -l implementation -d 'Hash with the implementation NAME alone, as blkhash algorithms names it' -r
complete -c blksum -l read-size -d 'Read SIZE bytes at a time' -r
complete -c blksum -l timeout -d 'Give up on a server that says nothing for SECONDS; 0 waits for ever [default: 60]' -r
complete -c blksum -l max-zeros -d 'Refuse images with more than SIZE of zeros that they do not store [default: 2^32 blocks, 256T with the default block size; 4T with linear; 1T where the format hides what is stored]' -r
complete -c blksum -l follow -d 'Which files an image may name: beneath (its own folder), any or none [default: beneath]' -r -f -a "beneath\t''
any\t''
none\t''"
complete -c blksum -l tls-certificates -d 'The folder of the certificates for nbds URIs [default: that of libnbd]' -r -f -a "(__fish_complete_directories)"
complete -c blksum -l backing-format -d 'Read backing files whose format is not recorded as FORMAT' -r -f -a "raw\t''
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
complete -c blksum -s p -l progress -d 'Show progress on the terminal: auto, always or never [default: auto, where it takes longer than a second; without a value: always]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c blksum -s B -l bytes -d 'Hash the bytes of the file itself, as sha256sum does; with --check take untagged lines for such digests. The same as --format raw --construction linear'
complete -c blksum -s r -l recursive -d 'Hash the regular files in folders, in the order of their names'
complete -c blksum -s l -l list-digests -d 'List the names of the digest algorithms'
complete -c blksum -l untrusted -d 'Do not trust images: the same as --follow=none'
complete -c blksum -s U -l force-share -d 'Read images although they are in use'
complete -c blksum -l no-sandbox -d 'Do without the sandbox, on systems where it is in the way'
complete -c blksum -l tag -d 'Write lines that say what the checksum is: TAG (IMAGE) = CHECKSUM'
complete -c blksum -s z -l zero -d 'End lines with NUL, not newline, and do not escape names'
complete -c blksum -l json -d 'Write a JSON object a line'
complete -c blksum -s v -l verbose -d 'Describe each image (format, backing chain, sizes), how it is read and hashed, and the sandbox'
complete -c blksum -s q -l quiet -d 'Print no notes; with --check no OK for each image that matches'
complete -c blksum -s b -l binary -d 'Mark names with an asterisk, as sha256sum does for files that were read in binary mode'
complete -c blksum -s t -l text -d 'Do not mark names (the default)'
complete -c blksum -s c -l check -d 'Read checksums from the files and check them'
complete -c blksum -l ignore-missing -d 'Neither fail for nor report missing images'
complete -c blksum -l status -d 'Print nothing, the exit status tells'
complete -c blksum -l strict -d 'Fail for improperly formatted lines'
complete -c blksum -s w -l warn -d 'Warn about each improperly formatted line'
complete -c blksum -l allow-uri -d 'Allow URIs as names'
complete -c blksum -s h -l help -d 'Print this help'
complete -c blksum -s V -l version -d 'Print the version'
