# Bash completion for blkhash(1), generated from its argument parser.

_blkhash() {
    # The subcommands and options of each COMMAND. The keys of values are "COMMAND" for operands,
    # "COMMAND OPTION" for the value of an option, and "COMMAND OPTION=" for one that must follow =.
    local -A subcommands=(
        ["blkhash"]="algorithms bench btrfs help"
        ["blkhash bench"]="image"
        ["blkhash btrfs"]="verify info algorithms obscure-name help"
        ["blkhash btrfs help"]="verify info algorithms obscure-name help"
        ["blkhash help"]="algorithms bench btrfs help"
        ["blkhash help bench"]="image"
        ["blkhash help btrfs"]="verify info algorithms obscure-name"
    )
    local -A options=(
        ["blkhash"]="-h --help -V --version"
        ["blkhash algorithms"]="--kernel --json -h --help"
        ["blkhash bench"]="--filter --block-size --batch --threads --cold --time --iterations --format --json --csv --svg --quality -h --help"
        ["blkhash bench image"]="-d --digest --threads --time -f --format --no-sandbox --json -h --help"
        ["blkhash btrfs"]="-h --help"
        ["blkhash btrfs verify"]="--partition --offset -f --format --snapshot --cache --cache= --holes --follow --untrusted -U --force-share --backing-format --secret-file --nbd-server --timeout --tls-certificates --no-sandbox --threads --implementation --max-files --max-errors --json -p --progress --progress= -h --help"
        ["blkhash btrfs info"]="--partition --offset -f --format --snapshot --cache --cache= --holes --follow --untrusted -U --force-share --backing-format --secret-file --nbd-server --timeout --tls-certificates --no-sandbox --json -h --help"
        ["blkhash btrfs algorithms"]="--data --json -h --help"
        ["blkhash btrfs obscure-name"]="-h --help"
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
        ["blkhash btrfs verify"]="<files>"
        ["blkhash btrfs verify --partition"]="<other>"
        ["blkhash btrfs verify --offset"]="<other>"
        ["blkhash btrfs verify -f"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash btrfs verify --format"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash btrfs verify --snapshot"]="<other>"
        ["blkhash btrfs verify --cache="]="auto yes no"
        ["blkhash btrfs verify --holes"]="trust verify ignore"
        ["blkhash btrfs verify --follow"]="beneath any none"
        ["blkhash btrfs verify --backing-format"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash btrfs verify --secret-file"]="<files>"
        ["blkhash btrfs verify --nbd-server"]="<programs>"
        ["blkhash btrfs verify --timeout"]="<other>"
        ["blkhash btrfs verify --tls-certificates"]="<folders>"
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
        ["blkhash btrfs info --cache="]="auto yes no"
        ["blkhash btrfs info --holes"]="trust verify ignore"
        ["blkhash btrfs info --follow"]="beneath any none"
        ["blkhash btrfs info --backing-format"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg"
        ["blkhash btrfs info --secret-file"]="<files>"
        ["blkhash btrfs info --nbd-server"]="<programs>"
        ["blkhash btrfs info --timeout"]="<other>"
        ["blkhash btrfs info --tls-certificates"]="<folders>"
        ["blkhash btrfs algorithms --data"]="<other>"
        ["blkhash btrfs obscure-name"]="<other>"
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
