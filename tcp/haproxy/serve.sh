#!/bin/sh
# HAProxy as a TCP relay, with the flags of the contract.
set -eu

fail() {
    echo "haproxy: $*" >&2
    exit 2
}

host=127.0.0.1 ports= upstream= threads=$(nproc) buffer= splice=
while [ $# -gt 0 ]; do
    case $1 in
        --version)
            haproxy -v | awk 'NR == 1 { print "haproxy", $3 }'
            exit
            ;;
        --splice)
            splice="option splice-request
    option splice-response"
            shift
            continue
            ;;
    esac
    [ $# -gt 1 ] || fail "$1 has no value"
    case $1 in
        --host) host=$2 ;;
        --ports) ports=$2 ;;
        --upstream) upstream=$2 ;;
        --threads) threads=$2 ;;
        --buffer) buffer="tune.bufsize $2" ;;
        --nodelay) [ "$2" = true ] || fail "TCP_NODELAY is always set: leave --nodelay $2 out" ;;
        *) fail "unknown flag $1" ;;
    esac
    shift 2
done
[ -n "$ports" ] || fail "--ports is missing"
[ -n "$upstream" ] || fail "--upstream is missing"

# Of the files of a process, 5 for two connections: two sockets each and a pipe, of which
# HAProxy reckons one for every fourth connection. It refuses to start with more.
ulimit -n "$(ulimit -Hn)"
files=$(ulimit -n)
[ "$files" != unlimited ] || files=1000000

first=${ports%-*} last=${ports#*-}
to=${upstream%:*} up=${upstream##*:}
up_first=${up%-*} up_last=${up#*-}
listeners=
port=$first
while [ "$port" -le "$last" ]; do
    to_port=$((up_first + (port - first) % (up_last - up_first + 1)))
    listeners="$listeners
listen relay-$port
    bind $host:$port backlog 4096
    server origin $to:$to_port
"
    port=$((port + 1))
done

# The shell gives the configuration by a pipe or a file without a name: nothing is left of it.
exec haproxy -db -q -f /dev/fd/3 3<<EOF
global
    nbthread $threads
    maxconn $(((files - 200) * 2 / 5))
    $buffer
    ${splice:+#}nosplice

defaults
    mode tcp
    timeout connect 10s
    timeout client 1h
    timeout server 1h
    # A refused upstream is told at once, and an end passes as an end.
    retries 0
    $splice
$listeners
EOF
