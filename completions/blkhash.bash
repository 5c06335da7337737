_blkhash() {
    local i cur prev opts cmd
    COMPREPLY=()
    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
        cur="$2"
    else
        cur="${COMP_WORDS[COMP_CWORD]}"
    fi
    prev="$3"
    cmd=""
    opts=""

    for i in "${COMP_WORDS[@]:0:COMP_CWORD}"
    do
        case "${cmd},${i}" in
            ",$1")
                cmd="blkhash"
                ;;
            blkhash,algorithms)
                cmd="blkhash__subcmd__algorithms"
                ;;
            blkhash,bench)
                cmd="blkhash__subcmd__bench"
                ;;
            blkhash,btrfs)
                cmd="blkhash__subcmd__btrfs"
                ;;
            blkhash,help)
                cmd="blkhash__subcmd__help"
                ;;
            blkhash__subcmd__bench,image)
                cmd="blkhash__subcmd__bench__subcmd__image"
                ;;
            blkhash__subcmd__btrfs,algorithms)
                cmd="blkhash__subcmd__btrfs__subcmd__algorithms"
                ;;
            blkhash__subcmd__btrfs,help)
                cmd="blkhash__subcmd__btrfs__subcmd__help"
                ;;
            blkhash__subcmd__btrfs,info)
                cmd="blkhash__subcmd__btrfs__subcmd__info"
                ;;
            blkhash__subcmd__btrfs,obscure-name)
                cmd="blkhash__subcmd__btrfs__subcmd__obscure__subcmd__name"
                ;;
            blkhash__subcmd__btrfs,verify)
                cmd="blkhash__subcmd__btrfs__subcmd__verify"
                ;;
            blkhash__subcmd__btrfs__subcmd__help,algorithms)
                cmd="blkhash__subcmd__btrfs__subcmd__help__subcmd__algorithms"
                ;;
            blkhash__subcmd__btrfs__subcmd__help,help)
                cmd="blkhash__subcmd__btrfs__subcmd__help__subcmd__help"
                ;;
            blkhash__subcmd__btrfs__subcmd__help,info)
                cmd="blkhash__subcmd__btrfs__subcmd__help__subcmd__info"
                ;;
            blkhash__subcmd__btrfs__subcmd__help,obscure-name)
                cmd="blkhash__subcmd__btrfs__subcmd__help__subcmd__obscure__subcmd__name"
                ;;
            blkhash__subcmd__btrfs__subcmd__help,verify)
                cmd="blkhash__subcmd__btrfs__subcmd__help__subcmd__verify"
                ;;
            blkhash__subcmd__help,algorithms)
                cmd="blkhash__subcmd__help__subcmd__algorithms"
                ;;
            blkhash__subcmd__help,bench)
                cmd="blkhash__subcmd__help__subcmd__bench"
                ;;
            blkhash__subcmd__help,btrfs)
                cmd="blkhash__subcmd__help__subcmd__btrfs"
                ;;
            blkhash__subcmd__help,help)
                cmd="blkhash__subcmd__help__subcmd__help"
                ;;
            blkhash__subcmd__help__subcmd__bench,image)
                cmd="blkhash__subcmd__help__subcmd__bench__subcmd__image"
                ;;
            blkhash__subcmd__help__subcmd__btrfs,algorithms)
                cmd="blkhash__subcmd__help__subcmd__btrfs__subcmd__algorithms"
                ;;
            blkhash__subcmd__help__subcmd__btrfs,info)
                cmd="blkhash__subcmd__help__subcmd__btrfs__subcmd__info"
                ;;
            blkhash__subcmd__help__subcmd__btrfs,obscure-name)
                cmd="blkhash__subcmd__help__subcmd__btrfs__subcmd__obscure__subcmd__name"
                ;;
            blkhash__subcmd__help__subcmd__btrfs,verify)
                cmd="blkhash__subcmd__help__subcmd__btrfs__subcmd__verify"
                ;;
            *)
                ;;
        esac
    done

    case "${cmd}" in
        blkhash)
            opts="-h -V --help --version algorithms bench btrfs help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 1 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        blkhash__subcmd__algorithms)
            opts="-h --kernel --json --help null crc32 crc32c crc64 crc64nvme xxh64 xxh3 xxh128 siphash md5 sha1 sha224 sha256 sha384 sha512 sha512-224 sha512-256 sha3-224 sha3-256 sha3-384 sha3-512 blake2b256 blake2b512 blake2s256 blake3"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        blkhash__subcmd__bench)
            opts="-h --filter --block-size --batch --threads --cold --time --iterations --format --json --csv --svg --quality --help image"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --filter)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --block-size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --batch)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --threads)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --time)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --iterations)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "docs hash-speedtest csv json" -- "${cur}"))
                    return 0
                    ;;
                --svg)
                    local oldifs
                    if [ -n "${IFS+x}" ]; then
                        oldifs="$IFS"
                    fi
                    IFS=$'\n'
                    COMPREPLY=($(compgen -f "${cur}"))
                    if [ -n "${oldifs+x}" ]; then
                        IFS="$oldifs"
                    fi
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o filenames
                    fi
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        blkhash__subcmd__bench__subcmd__image)
            opts="-d -f -h --digest --threads --time --format --no-sandbox --json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --digest)
                    COMPREPLY=($(compgen -W "null crc32 crc32c crc64 crc64nvme xxh64 xxh3 xxh128 md5 sha1 sha224 sha256 sha384 sha512 sha512-224 sha512-256 sha3-224 sha3-256 sha3-384 sha3-512 blake2b256 blake2b512 blake2s256 blake3" -- "${cur}"))
                    return 0
                    ;;
                -d)
                    COMPREPLY=($(compgen -W "null crc32 crc32c crc64 crc64nvme xxh64 xxh3 xxh128 md5 sha1 sha224 sha256 sha384 sha512 sha512-224 sha512-256 sha3-224 sha3-256 sha3-384 sha3-512 blake2b256 blake2b512 blake2s256 blake3" -- "${cur}"))
                    return 0
                    ;;
                --threads)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --time)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg" -- "${cur}"))
                    return 0
                    ;;
                -f)
                    COMPREPLY=($(compgen -W "raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        blkhash__subcmd__btrfs)
            opts="-h --help verify info algorithms obscure-name help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        blkhash__subcmd__btrfs__subcmd__algorithms)
            opts="-h --data --json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        blkhash__subcmd__btrfs__subcmd__help)
            opts="verify info algorithms obscure-name help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        blkhash__subcmd__btrfs__subcmd__help__subcmd__algorithms)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        blkhash__subcmd__btrfs__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        blkhash__subcmd__btrfs__subcmd__help__subcmd__info)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        blkhash__subcmd__btrfs__subcmd__help__subcmd__obscure__subcmd__name)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        blkhash__subcmd__btrfs__subcmd__help__subcmd__verify)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        blkhash__subcmd__btrfs__subcmd__info)
            opts="-f -U -h --partition --offset --format --snapshot --cache --holes --follow --untrusted --force-share --backing-format --secret-file --nbd-server --timeout --tls-certificates --no-sandbox --json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --partition)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --offset)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg" -- "${cur}"))
                    return 0
                    ;;
                -f)
                    COMPREPLY=($(compgen -W "raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg" -- "${cur}"))
                    return 0
                    ;;
                --snapshot)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cache)
                    COMPREPLY=($(compgen -W "auto yes no" -- "${cur}"))
                    return 0
                    ;;
                --holes)
                    COMPREPLY=($(compgen -W "trust verify ignore" -- "${cur}"))
                    return 0
                    ;;
                --follow)
                    COMPREPLY=($(compgen -W "beneath any none" -- "${cur}"))
                    return 0
                    ;;
                --backing-format)
                    COMPREPLY=($(compgen -W "raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg" -- "${cur}"))
                    return 0
                    ;;
                --secret-file)
                    local oldifs
                    if [ -n "${IFS+x}" ]; then
                        oldifs="$IFS"
                    fi
                    IFS=$'\n'
                    COMPREPLY=($(compgen -f "${cur}"))
                    if [ -n "${oldifs+x}" ]; then
                        IFS="$oldifs"
                    fi
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o filenames
                    fi
                    return 0
                    ;;
                --nbd-server)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-certificates)
                    COMPREPLY=()
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o plusdirs
                    fi
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        blkhash__subcmd__btrfs__subcmd__obscure__subcmd__name)
            opts="-h --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        blkhash__subcmd__btrfs__subcmd__verify)
            opts="-f -U -p -h --partition --offset --format --snapshot --cache --holes --follow --untrusted --force-share --backing-format --secret-file --nbd-server --timeout --tls-certificates --no-sandbox --threads --implementation --max-files --max-errors --json --progress --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --partition)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --offset)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg" -- "${cur}"))
                    return 0
                    ;;
                -f)
                    COMPREPLY=($(compgen -W "raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg" -- "${cur}"))
                    return 0
                    ;;
                --snapshot)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cache)
                    COMPREPLY=($(compgen -W "auto yes no" -- "${cur}"))
                    return 0
                    ;;
                --holes)
                    COMPREPLY=($(compgen -W "trust verify ignore" -- "${cur}"))
                    return 0
                    ;;
                --follow)
                    COMPREPLY=($(compgen -W "beneath any none" -- "${cur}"))
                    return 0
                    ;;
                --backing-format)
                    COMPREPLY=($(compgen -W "raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg" -- "${cur}"))
                    return 0
                    ;;
                --secret-file)
                    local oldifs
                    if [ -n "${IFS+x}" ]; then
                        oldifs="$IFS"
                    fi
                    IFS=$'\n'
                    COMPREPLY=($(compgen -f "${cur}"))
                    if [ -n "${oldifs+x}" ]; then
                        IFS="$oldifs"
                    fi
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o filenames
                    fi
                    return 0
                    ;;
                --nbd-server)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-certificates)
                    COMPREPLY=()
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o plusdirs
                    fi
                    return 0
                    ;;
                --threads)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --implementation)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-files)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-errors)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --progress)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                -p)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        blkhash__subcmd__help)
            opts="algorithms bench btrfs help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        blkhash__subcmd__help__subcmd__algorithms)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        blkhash__subcmd__help__subcmd__bench)
            opts="image"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        blkhash__subcmd__help__subcmd__bench__subcmd__image)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        blkhash__subcmd__help__subcmd__btrfs)
            opts="verify info algorithms obscure-name"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        blkhash__subcmd__help__subcmd__btrfs__subcmd__algorithms)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        blkhash__subcmd__help__subcmd__btrfs__subcmd__info)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        blkhash__subcmd__help__subcmd__btrfs__subcmd__obscure__subcmd__name)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        blkhash__subcmd__help__subcmd__btrfs__subcmd__verify)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        blkhash__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
    esac
}

if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -F _blkhash -o nosort -o bashdefault -o default blkhash
else
    complete -F _blkhash -o bashdefault -o default blkhash
fi
