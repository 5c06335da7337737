# Bash completion for blkcopy(1), generated from its argument parser.

_blkcopy() {
    # The subcommands and options of each COMMAND. The keys of values are "COMMAND" for operands,
    # "COMMAND OPTION" for the value of an option, and "COMMAND OPTION=" for one that must follow =.
    local -A subcommands=(
    )
    local -A options=(
        ["blkcopy"]="--force --update --destination-map --bitmap --changes --changes-format --resume --delta-from --apply --zeros --reflink --verify --expect --expect-map --tag --json -q --quiet -v --verbose -p --progress --progress= --map --checkpoint -d --digest --construction --block-size --partition -f --format --snapshot --vpc-size --secret-file --untrusted --no-sandbox --follow --backing-format -U --force-share --tls-certificates --tls-ca --max-zeros --max-memory --cache --cache= --holes --reader --nbd-server --s3-endpoint --s3-region --s3-profile --timeout --threads -h --help -V --version"
    )
    local -A values=(
        ["blkcopy"]="<files>"
        ["blkcopy --destination-map"]="<files>"
        ["blkcopy --bitmap"]="<other>"
        ["blkcopy --changes"]="<files>"
        ["blkcopy --changes-format"]="csi nbdinfo rbd ebs vmware xenserver thin-delta json csv lines"
        ["blkcopy --delta-from"]="<files>"
        ["blkcopy --zeros"]="auto write punch keep-if-zero"
        ["blkcopy --reflink"]="auto never"
        ["blkcopy --verify"]="readback source none"
        ["blkcopy --expect"]="<other>"
        ["blkcopy --expect-map"]="<files>"
        ["blkcopy -p="]="auto always never json"
        ["blkcopy --progress="]="auto always never json"
        ["blkcopy --map"]="<files>"
        ["blkcopy --checkpoint"]="<other>"
        ["blkcopy -d"]="null crc32 crc32c crc64 crc64nvme xxh64 xxh3 xxh128 md5 sha1 sha224 sha256 sha384 sha512 sha512-224 sha512-256 sha3-224 sha3-256 sha3-384 sha3-512 blake2b256 blake2b512 blake2s256 blake3"
        ["blkcopy --digest"]="null crc32 crc32c crc64 crc64nvme xxh64 xxh3 xxh128 md5 sha1 sha224 sha256 sha384 sha512 sha512-224 sha512-256 sha3-224 sha3-256 sha3-384 sha3-512 blake2b256 blake2b512 blake2s256 blake3"
        ["blkcopy --construction"]="<other>"
        ["blkcopy --block-size"]="<other>"
        ["blkcopy --partition"]="<other>"
        ["blkcopy -f"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg ewf partclone rbd simg gzip xz zstd bzip2 lz4 lzop"
        ["blkcopy --format"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg ewf partclone rbd simg gzip xz zstd bzip2 lz4 lzop"
        ["blkcopy --snapshot"]="<other>"
        ["blkcopy --vpc-size"]="auto geometry current"
        ["blkcopy --secret-file"]="<files>"
        ["blkcopy --follow"]="beneath any none"
        ["blkcopy --backing-format"]="raw qcow2 qcow vmdk vdi vhdx vpc qed parallels luks bochs cloop dmg ewf partclone rbd simg"
        ["blkcopy --tls-certificates"]="<folders>"
        ["blkcopy --tls-ca"]="<files>"
        ["blkcopy --max-zeros"]="<other>"
        ["blkcopy --max-memory"]="<other>"
        ["blkcopy --cache="]="auto yes no"
        ["blkcopy --holes"]="trust verify ignore"
        ["blkcopy --reader"]="auto qemu"
        ["blkcopy --nbd-server"]="<programs>"
        ["blkcopy --s3-endpoint"]="<other>"
        ["blkcopy --s3-region"]="<other>"
        ["blkcopy --s3-profile"]="<other>"
        ["blkcopy --timeout"]="<other>"
        ["blkcopy --threads"]="<other>"
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
    local command=blkcopy
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

complete -F _blkcopy blkcopy
