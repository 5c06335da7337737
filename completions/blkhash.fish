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
complete -c blkhash -n "__fish_blkhash_needs_command" -f -a "bench" -d 'Measure every implementation of every algorithm'
complete -c blkhash -n "__fish_blkhash_using_subcommand algorithms" -l kernel -d 'Show beside it what the kernel has, from /proc/crypto'
complete -c blkhash -n "__fish_blkhash_using_subcommand algorithms" -l json -d 'Write a JSON object a line'
complete -c blkhash -n "__fish_blkhash_using_subcommand algorithms" -s h -l help -d 'Print this help'
complete -c blkhash -n "__fish_blkhash_using_subcommand bench" -l filter -d 'Measure only implementations or algorithms that match GLOB, in any case; may be repeated' -r
complete -c blkhash -n "__fish_blkhash_using_subcommand bench" -l block-size -d 'Hash blocks of SIZE, from 512 to 64M [default: 4K]' -r
complete -c blkhash -n "__fish_blkhash_using_subcommand bench" -l batch -d 'Hand over N blocks at a time [default: 16, fewer if they are large]' -r
complete -c blkhash -n "__fish_blkhash_using_subcommand bench" -l threads -d 'Measure on so many threads at a time, or all; may be a list [default: 1]' -r
complete -c blkhash -n "__fish_blkhash_using_subcommand bench" -l time -d 'Spend so many seconds on each row [default: 0.4]' -r
complete -c blkhash -n "__fish_blkhash_using_subcommand bench" -l iterations -d 'Hash N blocks for each row [default with --format hash-speedtest: 100000]' -r
complete -c blkhash -n "__fish_blkhash_using_subcommand bench" -l format -d 'Print the table of the documentation of btrfs (docs), the lines of btrfs-progs\' hash-speedtest, csv or json [default: docs]' -r -f -a "docs\t''
hash-speedtest\t''
csv\t''
json\t''"
complete -c blkhash -n "__fish_blkhash_using_subcommand bench" -l svg -d 'Write a bar chart to FILE, too' -r -F
complete -c blkhash -n "__fish_blkhash_using_subcommand bench" -l cold -d 'Measure also blocks that come from memory, not from the cache'
complete -c blkhash -n "__fish_blkhash_using_subcommand bench" -l json -d 'The same as --format json: an object a line'
complete -c blkhash -n "__fish_blkhash_using_subcommand bench" -l csv -d 'The same as --format csv'
complete -c blkhash -n "__fish_blkhash_using_subcommand bench" -l quality -d 'Measure not the speed but which errors the checksums detect'
complete -c blkhash -n "__fish_blkhash_using_subcommand bench" -s h -l help -d 'Print this help'
