# Bash completion for blkhash(1), generated from its argument parser.

_blkhash() {
    # The subcommands and options of each COMMAND. The keys of values are "COMMAND" for operands,
    # "COMMAND OPTION" for the value of an option, and "COMMAND OPTION=" for one that must follow =.
    local -A subcommands=(
        ["blkhash"]="algorithms bench info btrfs map verity help"
        ["blkhash bench"]="image"
        ["blkhash btrfs"]="verify info algorithms obscure-name help"
        ["blkhash btrfs help"]="verify info algorithms obscure-name help"
        ["blkhash map"]="create show history check checksum verify diff update audit changes bitmaps merge seal dups export help"
        ["blkhash map help"]="create show history check checksum verify diff update audit changes bitmaps merge seal dups export help"
        ["blkhash verity"]="digest format verify help"
        ["blkhash verity help"]="digest format verify help"
        ["blkhash help"]="algorithms bench info btrfs map verity help"
        ["blkhash help bench"]="image"
        ["blkhash help btrfs"]="verify info algorithms obscure-name"
        ["blkhash help map"]="create show history check checksum verify diff update audit changes bitmaps merge seal dups export"
        ["blkhash help verity"]="digest format verify"
    )
    local -A options=(
        ["blkhash"]="-h --help -V --version"
        ["blkhash algorithms"]="--kernel --measure --json -h --help"
        ["blkhash bench"]="--filter --block-size --batch --threads --cold --time --iterations --format --json --csv --svg --tools --quality -h --help"
        ["blkhash bench image"]="-d --digest --threads --time -f --format --snapshot --vpc-size --secret-file --untrusted --follow --backing-format -U --force-share --tls-certificates --no-sandbox --max-zeros --cache --cache= --holes --reader --nbd-server --timeout --json -h --help"
        ["blkhash info"]="-f --format --snapshot --vpc-size --secret-file --untrusted --follow --backing-format -U --force-share --tls-certificates --no-sandbox --max-zeros --cache --cache= --holes --reader --nbd-server --timeout --json -h --help"
        ["blkhash btrfs"]="-h --help"
        ["blkhash btrfs verify"]="--partition --offset -f --format --snapshot --vpc-size --secret-file --untrusted --follow --backing-format -U --force-share --tls-certificates --no-sandbox --max-zeros --cache --cache= --holes --reader --nbd-server --timeout --threads --implementation --max-files --max-errors -q --quiet --json -p --progress --progress= -h --help"
        ["blkhash btrfs info"]="--partition --offset -f --format --snapshot --vpc-size --secret-file --untrusted --follow --backing-format -U --force-share --tls-certificates --no-sandbox --max-zeros --cache --cache= --holes --reader --nbd-server --timeout --json -h --help"
        ["blkhash btrfs algorithms"]="--data --json -h --help"
        ["blkhash btrfs obscure-name"]="-h --help"
        ["blkhash map"]="-h --help"
        ["blkhash map create"]="-o --output -d --digest --block-size --shard --resume --if-changed --force --checksum --checksum= --key-file --no-source --checkpoint --partition --threads -f --format --snapshot --vpc-size --secret-file --untrusted --follow --backing-format -U --force-share --tls-certificates --no-sandbox --cache --cache= --holes --reader --nbd-server --timeout -p --progress --progress= -s --salt --max-zeros -h --help"
        ["blkhash map show"]="--log --list --id --json -h --help"
        ["blkhash map history"]="--range --json -h --help"
        ["blkhash map check"]="--key-file -q --quiet -p --progress --progress= -h --help"
        ["blkhash map checksum"]="--construction --tag --key-file -h --help"
        ["blkhash map verify"]="--shard --range --key-file --ignore-zero-tail -q --quiet --extents --picture --picture= --max-errors --json --partition --threads -f --format --snapshot --vpc-size --secret-file --untrusted --follow --backing-format -U --force-share --tls-certificates --no-sandbox --cache --cache= --holes --reader --nbd-server --timeout -p --progress --progress= --max-zeros -h --help"
        ["blkhash map diff"]="--block-size --ignore-zero-tail -q --quiet --extents --picture --picture= --max-errors --json --partition --threads -f --format --snapshot --vpc-size --secret-file --untrusted --follow --backing-format -U --force-share --tls-certificates --no-sandbox --cache --cache= --holes --reader --nbd-server --timeout -p --progress --progress= --max-zeros -h --help"
        ["blkhash map update"]="--bitmap --changes --changes-format --overlay -o --output --sample --trust --force --key-file --no-source -q --quiet --json --partition --threads -f --format --snapshot --vpc-size --secret-file --untrusted --follow --backing-format -U --force-share --tls-certificates --no-sandbox --cache --cache= --holes --reader --nbd-server --timeout -p --progress --progress= --max-zeros -h --help"
        ["blkhash map audit"]="--bitmap --changes --changes-format --overlay -q --quiet --extents --picture --picture= --max-errors --json --partition --threads -f --format --snapshot --vpc-size --secret-file --untrusted --follow --backing-format -U --force-share --tls-certificates --no-sandbox --cache --cache= --holes --reader --nbd-server --timeout -p --progress --progress= --max-zeros -h --help"
        ["blkhash map changes"]="--bitmap --changes --changes-format --overlay --to --json --partition --threads -f --format --snapshot --vpc-size --secret-file --untrusted --follow --backing-format -U --force-share --tls-certificates --no-sandbox --cache --cache= --holes --reader --nbd-server --timeout -p --progress --progress= -h --help"
        ["blkhash map bitmaps"]="--json -f --format --snapshot --vpc-size --secret-file --untrusted --follow --backing-format -U --force-share --tls-certificates --no-sandbox --max-zeros --cache --cache= --holes --reader --nbd-server --timeout -h --help"
        ["blkhash map merge"]="--shards -o --output --force --key-file -p --progress --progress= -h --help"
        ["blkhash map seal"]="--key-file -h --help"
        ["blkhash map dups"]="--json -h --help"
        ["blkhash map export"]="--to -o --output -h --help"
        ["blkhash verity"]="-h --help"
        ["blkhash verity digest"]="--hash-alg --block-size --out-merkle-tree --out-descriptor --compact --for-builtin-sig --json -q --quiet -s --salt --partition --threads -f --format --snapshot --vpc-size --secret-file --untrusted --follow --backing-format -U --force-share --tls-certificates --no-sandbox --cache --cache= --holes --reader --nbd-server --timeout -p --progress --progress= --max-zeros -h --help"
        ["blkhash verity format"]="--hash --data-block-size --hash-block-size --data-blocks --hash-offset --no-superblock --uuid --root-hash-file --force --json -s --salt --partition --threads -f --format --snapshot --vpc-size --secret-file --untrusted --follow --backing-format -U --force-share --tls-certificates --no-sandbox --cache --cache= --holes --reader --nbd-server --timeout -p --progress --progress= --max-zeros -h --help"
        ["blkhash verity verify"]="--root-hash-file --hash --data-block-size --hash-block-size --data-blocks --hash-offset --no-superblock --fs-verity --hash-alg --block-size --max-errors -q --quiet --json -s --salt --partition --threads -f --format --snapshot --vpc-size --secret-file --untrusted --follow --backing-format -U --force-share --tls-certificates --no-sandbox --cache --cache= --holes --reader --nbd-server --timeout -p --progress --progress= --max-zeros -h --help"
    )
    local -A values=(
        ["blkhash algorithms"]="null crc32 crc32c crc64 crc64nvme xxh64 xxh3 xxh128 siphash md5 sha1 sha224 sha256 sha384 sha512 sha512-224 sha512-256 sha3-224 sha3-256 sha3-384 sha3-512 blake2b256 blake2b512 blake2s256 blake3"
        ["blkhash bench --filter"]="<other>"
        ["blkhash bench --block-size"]="<other>"
        ["blkhash bench --batch"]="<other>"
        ["blkhash bench --threads"]="<other>"
        ["blkhash bench --time"]="<other>"
        ["blkhash bench --iterations"]="<other>"
        ["blkhash bench --format"]="docs hash-speedtest csv json"
        ["blkhash bench --svg"]="<files>"
        ["blkhash bench image"]="<files>"
        ["blkhash bench image -d"]="null crc32 crc32c crc64 crc64nvme xxh64 xxh3 xxh128 md5 sha1 sha224 sha256 sha384 sha512 sha512-224 sha512-256 sha3-224 sha3-256 sha3-384 sha3-512 blake2b256 blake2b512 blake2s256 blake3"
        ["blkhash bench image --digest"]="null crc32 crc32c crc64 crc64nvme xxh64 xxh3 xxh128 md5 sha1 sha224 sha256 sha384 sha512 sha512-224 sha512-256 sha3-224 sha3-256 sha3-384 sha3-512 blake2b256 blake2b512 blake2s256 blake3"
        ["blkhash bench image --threads"]="<other>"
        ["blkhash bench image --time"]="<other>"
        ["blkhash bench image -f"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash bench image --format"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash bench image --snapshot"]="<other>"
        ["blkhash bench image --vpc-size"]="auto geometry current"
        ["blkhash bench image --secret-file"]="<files>"
        ["blkhash bench image --follow"]="beneath any none"
        ["blkhash bench image --backing-format"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash bench image --tls-certificates"]="<folders>"
        ["blkhash bench image --max-zeros"]="<other>"
        ["blkhash bench image --cache="]="auto yes no"
        ["blkhash bench image --holes"]="trust verify ignore"
        ["blkhash bench image --reader"]="auto qemu"
        ["blkhash bench image --nbd-server"]="<programs>"
        ["blkhash bench image --timeout"]="<other>"
        ["blkhash info"]="<files>"
        ["blkhash info -f"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash info --format"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash info --snapshot"]="<other>"
        ["blkhash info --vpc-size"]="auto geometry current"
        ["blkhash info --secret-file"]="<files>"
        ["blkhash info --follow"]="beneath any none"
        ["blkhash info --backing-format"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash info --tls-certificates"]="<folders>"
        ["blkhash info --max-zeros"]="<other>"
        ["blkhash info --cache="]="auto yes no"
        ["blkhash info --holes"]="trust verify ignore"
        ["blkhash info --reader"]="auto qemu"
        ["blkhash info --nbd-server"]="<programs>"
        ["blkhash info --timeout"]="<other>"
        ["blkhash btrfs verify"]="<files>"
        ["blkhash btrfs verify --partition"]="<other>"
        ["blkhash btrfs verify --offset"]="<other>"
        ["blkhash btrfs verify -f"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash btrfs verify --format"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash btrfs verify --snapshot"]="<other>"
        ["blkhash btrfs verify --vpc-size"]="auto geometry current"
        ["blkhash btrfs verify --secret-file"]="<files>"
        ["blkhash btrfs verify --follow"]="beneath any none"
        ["blkhash btrfs verify --backing-format"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash btrfs verify --tls-certificates"]="<folders>"
        ["blkhash btrfs verify --max-zeros"]="<other>"
        ["blkhash btrfs verify --cache="]="auto yes no"
        ["blkhash btrfs verify --holes"]="trust verify ignore"
        ["blkhash btrfs verify --reader"]="auto qemu"
        ["blkhash btrfs verify --nbd-server"]="<programs>"
        ["blkhash btrfs verify --timeout"]="<other>"
        ["blkhash btrfs verify --threads"]="<other>"
        ["blkhash btrfs verify --implementation"]="<other>"
        ["blkhash btrfs verify --max-files"]="<other>"
        ["blkhash btrfs verify --max-errors"]="<other>"
        ["blkhash btrfs verify -p="]="auto always never json"
        ["blkhash btrfs verify --progress="]="auto always never json"
        ["blkhash btrfs info"]="<files>"
        ["blkhash btrfs info --partition"]="<other>"
        ["blkhash btrfs info --offset"]="<other>"
        ["blkhash btrfs info -f"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash btrfs info --format"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash btrfs info --snapshot"]="<other>"
        ["blkhash btrfs info --vpc-size"]="auto geometry current"
        ["blkhash btrfs info --secret-file"]="<files>"
        ["blkhash btrfs info --follow"]="beneath any none"
        ["blkhash btrfs info --backing-format"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash btrfs info --tls-certificates"]="<folders>"
        ["blkhash btrfs info --max-zeros"]="<other>"
        ["blkhash btrfs info --cache="]="auto yes no"
        ["blkhash btrfs info --holes"]="trust verify ignore"
        ["blkhash btrfs info --reader"]="auto qemu"
        ["blkhash btrfs info --nbd-server"]="<programs>"
        ["blkhash btrfs info --timeout"]="<other>"
        ["blkhash btrfs algorithms --data"]="<other>"
        ["blkhash btrfs obscure-name"]="<other>"
        ["blkhash map create"]="<files>"
        ["blkhash map create -o"]="<files>"
        ["blkhash map create --output"]="<files>"
        ["blkhash map create -d"]="crc32 crc32c crc64 crc64nvme xxh64 xxh3 xxh128 md5 sha1 sha224 sha256 sha384 sha512 sha512-224 sha512-256 sha3-224 sha3-256 sha3-384 sha3-512 blake2b256 blake2b512 blake2s256 blake3"
        ["blkhash map create --digest"]="crc32 crc32c crc64 crc64nvme xxh64 xxh3 xxh128 md5 sha1 sha224 sha256 sha384 sha512 sha512-224 sha512-256 sha3-224 sha3-256 sha3-384 sha3-512 blake2b256 blake2b512 blake2s256 blake3"
        ["blkhash map create --block-size"]="<other>"
        ["blkhash map create --shard"]="<other>"
        ["blkhash map create --checksum="]="<other>"
        ["blkhash map create --key-file"]="<files>"
        ["blkhash map create --checkpoint"]="<other>"
        ["blkhash map create --partition"]="<other>"
        ["blkhash map create --threads"]="<other>"
        ["blkhash map create -f"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash map create --format"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash map create --snapshot"]="<other>"
        ["blkhash map create --vpc-size"]="auto geometry current"
        ["blkhash map create --secret-file"]="<files>"
        ["blkhash map create --follow"]="beneath any none"
        ["blkhash map create --backing-format"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash map create --tls-certificates"]="<folders>"
        ["blkhash map create --cache="]="auto yes no"
        ["blkhash map create --holes"]="trust verify ignore"
        ["blkhash map create --reader"]="auto qemu"
        ["blkhash map create --nbd-server"]="<programs>"
        ["blkhash map create --timeout"]="<other>"
        ["blkhash map create -p="]="auto always never json"
        ["blkhash map create --progress="]="auto always never json"
        ["blkhash map create -s"]="<other>"
        ["blkhash map create --salt"]="<other>"
        ["blkhash map create --max-zeros"]="<other>"
        ["blkhash map show"]="<files>"
        ["blkhash map history"]="<files>"
        ["blkhash map history --range"]="<other>"
        ["blkhash map check"]="<files>"
        ["blkhash map check --key-file"]="<files>"
        ["blkhash map check -p="]="auto always never json"
        ["blkhash map check --progress="]="auto always never json"
        ["blkhash map checksum"]="<files>"
        ["blkhash map checksum --construction"]="<other>"
        ["blkhash map checksum --key-file"]="<files>"
        ["blkhash map verify"]="<files>"
        ["blkhash map verify --shard"]="<other>"
        ["blkhash map verify --range"]="<other>"
        ["blkhash map verify --key-file"]="<files>"
        ["blkhash map verify --picture="]="<files>"
        ["blkhash map verify --max-errors"]="<other>"
        ["blkhash map verify --partition"]="<other>"
        ["blkhash map verify --threads"]="<other>"
        ["blkhash map verify -f"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash map verify --format"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash map verify --snapshot"]="<other>"
        ["blkhash map verify --vpc-size"]="auto geometry current"
        ["blkhash map verify --secret-file"]="<files>"
        ["blkhash map verify --follow"]="beneath any none"
        ["blkhash map verify --backing-format"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash map verify --tls-certificates"]="<folders>"
        ["blkhash map verify --cache="]="auto yes no"
        ["blkhash map verify --holes"]="trust verify ignore"
        ["blkhash map verify --reader"]="auto qemu"
        ["blkhash map verify --nbd-server"]="<programs>"
        ["blkhash map verify --timeout"]="<other>"
        ["blkhash map verify -p="]="auto always never json"
        ["blkhash map verify --progress="]="auto always never json"
        ["blkhash map verify --max-zeros"]="<other>"
        ["blkhash map diff"]="<files>"
        ["blkhash map diff --block-size"]="<other>"
        ["blkhash map diff --picture="]="<files>"
        ["blkhash map diff --max-errors"]="<other>"
        ["blkhash map diff --partition"]="<other>"
        ["blkhash map diff --threads"]="<other>"
        ["blkhash map diff -f"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash map diff --format"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash map diff --snapshot"]="<other>"
        ["blkhash map diff --vpc-size"]="auto geometry current"
        ["blkhash map diff --secret-file"]="<files>"
        ["blkhash map diff --follow"]="beneath any none"
        ["blkhash map diff --backing-format"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash map diff --tls-certificates"]="<folders>"
        ["blkhash map diff --cache="]="auto yes no"
        ["blkhash map diff --holes"]="trust verify ignore"
        ["blkhash map diff --reader"]="auto qemu"
        ["blkhash map diff --nbd-server"]="<programs>"
        ["blkhash map diff --timeout"]="<other>"
        ["blkhash map diff -p="]="auto always never json"
        ["blkhash map diff --progress="]="auto always never json"
        ["blkhash map diff --max-zeros"]="<other>"
        ["blkhash map update"]="<files>"
        ["blkhash map update --bitmap"]="<other>"
        ["blkhash map update --changes"]="<files>"
        ["blkhash map update --changes-format"]="csi nbdinfo rbd ebs thin-delta json csv lines"
        ["blkhash map update -o"]="<files>"
        ["blkhash map update --output"]="<files>"
        ["blkhash map update --sample"]="<other>"
        ["blkhash map update --key-file"]="<files>"
        ["blkhash map update --partition"]="<other>"
        ["blkhash map update --threads"]="<other>"
        ["blkhash map update -f"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash map update --format"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash map update --snapshot"]="<other>"
        ["blkhash map update --vpc-size"]="auto geometry current"
        ["blkhash map update --secret-file"]="<files>"
        ["blkhash map update --follow"]="beneath any none"
        ["blkhash map update --backing-format"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash map update --tls-certificates"]="<folders>"
        ["blkhash map update --cache="]="auto yes no"
        ["blkhash map update --holes"]="trust verify ignore"
        ["blkhash map update --reader"]="auto qemu"
        ["blkhash map update --nbd-server"]="<programs>"
        ["blkhash map update --timeout"]="<other>"
        ["blkhash map update -p="]="auto always never json"
        ["blkhash map update --progress="]="auto always never json"
        ["blkhash map update --max-zeros"]="<other>"
        ["blkhash map audit"]="<files>"
        ["blkhash map audit --bitmap"]="<other>"
        ["blkhash map audit --changes"]="<files>"
        ["blkhash map audit --changes-format"]="csi nbdinfo rbd ebs thin-delta json csv lines"
        ["blkhash map audit --picture="]="<files>"
        ["blkhash map audit --max-errors"]="<other>"
        ["blkhash map audit --partition"]="<other>"
        ["blkhash map audit --threads"]="<other>"
        ["blkhash map audit -f"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash map audit --format"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash map audit --snapshot"]="<other>"
        ["blkhash map audit --vpc-size"]="auto geometry current"
        ["blkhash map audit --secret-file"]="<files>"
        ["blkhash map audit --follow"]="beneath any none"
        ["blkhash map audit --backing-format"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash map audit --tls-certificates"]="<folders>"
        ["blkhash map audit --cache="]="auto yes no"
        ["blkhash map audit --holes"]="trust verify ignore"
        ["blkhash map audit --reader"]="auto qemu"
        ["blkhash map audit --nbd-server"]="<programs>"
        ["blkhash map audit --timeout"]="<other>"
        ["blkhash map audit -p="]="auto always never json"
        ["blkhash map audit --progress="]="auto always never json"
        ["blkhash map audit --max-zeros"]="<other>"
        ["blkhash map changes"]="<files>"
        ["blkhash map changes --bitmap"]="<other>"
        ["blkhash map changes --changes"]="<files>"
        ["blkhash map changes --changes-format"]="csi nbdinfo rbd ebs thin-delta json csv lines"
        ["blkhash map changes --to"]="lines json nbdinfo"
        ["blkhash map changes --partition"]="<other>"
        ["blkhash map changes --threads"]="<other>"
        ["blkhash map changes -f"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash map changes --format"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash map changes --snapshot"]="<other>"
        ["blkhash map changes --vpc-size"]="auto geometry current"
        ["blkhash map changes --secret-file"]="<files>"
        ["blkhash map changes --follow"]="beneath any none"
        ["blkhash map changes --backing-format"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash map changes --tls-certificates"]="<folders>"
        ["blkhash map changes --cache="]="auto yes no"
        ["blkhash map changes --holes"]="trust verify ignore"
        ["blkhash map changes --reader"]="auto qemu"
        ["blkhash map changes --nbd-server"]="<programs>"
        ["blkhash map changes --timeout"]="<other>"
        ["blkhash map changes -p="]="auto always never json"
        ["blkhash map changes --progress="]="auto always never json"
        ["blkhash map bitmaps"]="<files>"
        ["blkhash map bitmaps -f"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash map bitmaps --format"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash map bitmaps --snapshot"]="<other>"
        ["blkhash map bitmaps --vpc-size"]="auto geometry current"
        ["blkhash map bitmaps --secret-file"]="<files>"
        ["blkhash map bitmaps --follow"]="beneath any none"
        ["blkhash map bitmaps --backing-format"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash map bitmaps --tls-certificates"]="<folders>"
        ["blkhash map bitmaps --max-zeros"]="<other>"
        ["blkhash map bitmaps --cache="]="auto yes no"
        ["blkhash map bitmaps --holes"]="trust verify ignore"
        ["blkhash map bitmaps --reader"]="auto qemu"
        ["blkhash map bitmaps --nbd-server"]="<programs>"
        ["blkhash map bitmaps --timeout"]="<other>"
        ["blkhash map merge"]="<files>"
        ["blkhash map merge --shards"]="<other>"
        ["blkhash map merge -o"]="<files>"
        ["blkhash map merge --output"]="<files>"
        ["blkhash map merge --key-file"]="<files>"
        ["blkhash map merge -p="]="auto always never json"
        ["blkhash map merge --progress="]="auto always never json"
        ["blkhash map seal"]="<files>"
        ["blkhash map seal --key-file"]="<files>"
        ["blkhash map dups"]="<files>"
        ["blkhash map export"]="<files>"
        ["blkhash map export --to"]="lines csv json bmap"
        ["blkhash map export -o"]="<files>"
        ["blkhash map export --output"]="<files>"
        ["blkhash verity digest"]="<files>"
        ["blkhash verity digest --hash-alg"]="sha256 sha512"
        ["blkhash verity digest --block-size"]="<other>"
        ["blkhash verity digest --out-merkle-tree"]="<files>"
        ["blkhash verity digest --out-descriptor"]="<files>"
        ["blkhash verity digest -s"]="<other>"
        ["blkhash verity digest --salt"]="<other>"
        ["blkhash verity digest --partition"]="<other>"
        ["blkhash verity digest --threads"]="<other>"
        ["blkhash verity digest -f"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash verity digest --format"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash verity digest --snapshot"]="<other>"
        ["blkhash verity digest --vpc-size"]="auto geometry current"
        ["blkhash verity digest --secret-file"]="<files>"
        ["blkhash verity digest --follow"]="beneath any none"
        ["blkhash verity digest --backing-format"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash verity digest --tls-certificates"]="<folders>"
        ["blkhash verity digest --cache="]="auto yes no"
        ["blkhash verity digest --holes"]="trust verify ignore"
        ["blkhash verity digest --reader"]="auto qemu"
        ["blkhash verity digest --nbd-server"]="<programs>"
        ["blkhash verity digest --timeout"]="<other>"
        ["blkhash verity digest -p="]="auto always never json"
        ["blkhash verity digest --progress="]="auto always never json"
        ["blkhash verity digest --max-zeros"]="<other>"
        ["blkhash verity format"]="<files>"
        ["blkhash verity format --hash"]="md5 sha1 sha224 sha256 sha384 sha512 sha512-224 sha512-256 sha3-224 sha3-256 sha3-384 sha3-512 blake2b256 blake2b512 blake2s256 blake3"
        ["blkhash verity format --data-block-size"]="<other>"
        ["blkhash verity format --hash-block-size"]="<other>"
        ["blkhash verity format --data-blocks"]="<other>"
        ["blkhash verity format --hash-offset"]="<other>"
        ["blkhash verity format --uuid"]="<other>"
        ["blkhash verity format --root-hash-file"]="<files>"
        ["blkhash verity format -s"]="<other>"
        ["blkhash verity format --salt"]="<other>"
        ["blkhash verity format --partition"]="<other>"
        ["blkhash verity format --threads"]="<other>"
        ["blkhash verity format -f"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash verity format --format"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash verity format --snapshot"]="<other>"
        ["blkhash verity format --vpc-size"]="auto geometry current"
        ["blkhash verity format --secret-file"]="<files>"
        ["blkhash verity format --follow"]="beneath any none"
        ["blkhash verity format --backing-format"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash verity format --tls-certificates"]="<folders>"
        ["blkhash verity format --cache="]="auto yes no"
        ["blkhash verity format --holes"]="trust verify ignore"
        ["blkhash verity format --reader"]="auto qemu"
        ["blkhash verity format --nbd-server"]="<programs>"
        ["blkhash verity format --timeout"]="<other>"
        ["blkhash verity format -p="]="auto always never json"
        ["blkhash verity format --progress="]="auto always never json"
        ["blkhash verity format --max-zeros"]="<other>"
        ["blkhash verity verify"]="<files>"
        ["blkhash verity verify --root-hash-file"]="<files>"
        ["blkhash verity verify --hash"]="md5 sha1 sha224 sha256 sha384 sha512 sha512-224 sha512-256 sha3-224 sha3-256 sha3-384 sha3-512 blake2b256 blake2b512 blake2s256 blake3"
        ["blkhash verity verify --data-block-size"]="<other>"
        ["blkhash verity verify --hash-block-size"]="<other>"
        ["blkhash verity verify --data-blocks"]="<other>"
        ["blkhash verity verify --hash-offset"]="<other>"
        ["blkhash verity verify --hash-alg"]="sha256 sha512"
        ["blkhash verity verify --block-size"]="<other>"
        ["blkhash verity verify --max-errors"]="<other>"
        ["blkhash verity verify -s"]="<other>"
        ["blkhash verity verify --salt"]="<other>"
        ["blkhash verity verify --partition"]="<other>"
        ["blkhash verity verify --threads"]="<other>"
        ["blkhash verity verify -f"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash verity verify --format"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash verity verify --snapshot"]="<other>"
        ["blkhash verity verify --vpc-size"]="auto geometry current"
        ["blkhash verity verify --secret-file"]="<files>"
        ["blkhash verity verify --follow"]="beneath any none"
        ["blkhash verity verify --backing-format"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash verity verify --tls-certificates"]="<folders>"
        ["blkhash verity verify --cache="]="auto yes no"
        ["blkhash verity verify --holes"]="trust verify ignore"
        ["blkhash verity verify --reader"]="auto qemu"
        ["blkhash verity verify --nbd-server"]="<programs>"
        ["blkhash verity verify --timeout"]="<other>"
        ["blkhash verity verify -p="]="auto always never json"
        ["blkhash verity verify --progress="]="auto always never json"
        ["blkhash verity verify --max-zeros"]="<other>"
    )

    # Join the words up to the cursor: Bash splits them at = and : as well.
    local IFS=$' \t\n' words=() line=${COMP_LINE:0:COMP_POINT} word rest i
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        rest=${line#"${line%%[![:space:]]*}"}
        if ((i == COMP_CWORD)); then
            word=$rest
        fi
        if ((i > 0)) && [[ $rest == "$line" && $rest == "$word"* ]]; then
            words[-1]+=$word
        else
            words+=("$word")
        fi
        line=${rest#"$word"}
    done
    local current=${words[-1]} last=$((${#words[@]} - 1))

    # Find the command.
    local command=blkhash
    for ((i = 1; i < last; i++)); do
        if [[ ! ${words[i]} || " ${subcommands[$command]-} " != *" ${words[i]} "* ]]; then
            break
        fi
        command+=" ${words[i]}"
    done
    local first=$i

    # Find the option whose value is at the cursor, if there is one.
    local waits='' ended=''
    for ((; i < last; i++)); do
        word=${words[i]}
        if [[ $waits || $ended ]]; then
            waits=''
        elif [[ $word == -- ]]; then
            ended=1
        elif [[ $word == -*=* ]]; then
            continue
        elif [[ $word == --* ]]; then
            waits=${values["$command $word"]-}
        elif [[ $word == -* ]]; then
            # The first letter that takes a value takes the rest of the word.
            while [[ $word == -?* && ! $waits ]]; do
                waits=${values["$command ${word:0:2}"]-}
                word=-${word:2}
            done
            if [[ $word != - ]]; then
                waits=''
            fi
        fi
    done

    local what='' prefix=''
    if [[ ${words[last - 1]} == *[\<\>] || $current == [\<\>]* ]]; then
        what='<files>'
    elif [[ $waits ]]; then
        what=$waits
    elif [[ ! $ended && $current == -*=* ]]; then
        prefix=${current%%=*}=
        what=${values["$command $prefix"]-${values["$command ${prefix%=}"]-}}
    elif [[ ! $ended && $current == -* ]]; then
        what=${options[$command]-}
    else
        what=${values[$command]-}
        if ((first == last)) && [[ ${subcommands[$command]-} ]]; then
            what=${subcommands[$command]}
        fi
    fi

    local text=${current#"$prefix"}
    case $what in
        '<files>') compopt -o bashdefault -o default ;;
        '<folders>') compopt -o dirnames ;;
        '<programs>')
            compopt -o default
            mapfile -t COMPREPLY < <(compgen -c -P "$prefix" -- "$text")
            ;;
        '<other>' | '') ;;
        *) mapfile -t COMPREPLY < <(compgen -W "$what" -P "$prefix" -- "$text") ;;
    esac

    # Bash replaces the text after the last = or :.
    local breaks=${COMP_WORDBREAKS//[^=:]/}
    if [[ $breaks ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${current%"${current##*["$breaks"]}"}"}")
    fi
}

complete -F _blkhash blkhash
