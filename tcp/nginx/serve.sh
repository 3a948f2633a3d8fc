#!/bin/sh
# nginx's stream module as a TCP relay, with the flags of the contract.
set -eu

fail() {
    echo "nginx: $*" >&2
    exit 2
}

host=127.0.0.1 ports= upstream= threads=$(nproc) buffer=32768 nodelay=on
while [ $# -gt 0 ]; do
    case $1 in
        --version)
            nginx -v 2>&1 | awk -F/ 'NR == 1 { print "nginx", $2 }'
            exit
            ;;
    esac
    [ $# -gt 1 ] || fail "$1 has no value"
    case $1 in
        --host) host=$2 ;;
        --ports) ports=$2 ;;
        --upstream) upstream=$2 ;;
        --threads) threads=$2 ;;
        --buffer) buffer=$2 ;;
        --nodelay) [ "$2" = true ] || nodelay=off ;;
        *) fail "unknown flag $1" ;;
    esac
    shift 2
done
[ -n "$ports" ] || fail "--ports is missing"
[ -n "$upstream" ] || fail "--upstream is missing"

# Built in, or a module beside: Debian has it in a package of its own.
module=
if ! nginx -V 2>&1 | grep -q -- '--with-stream\( \|$\)'; then
    path=$(nginx -V 2>&1 | sed -n 's/.*--modules-path=\([^ ]*\).*/\1/p')/ngx_stream_module.so
    [ -e "$path" ] || fail "it has no stream module (Debian: apt-get install libnginx-mod-stream)"
    module="load_module $path;"
fi

# Each worker has the limit for itself; any of them may have to take all connections.
ulimit -n "$(ulimit -Hn)"
files=$(ulimit -n)
[ "$files" != unlimited ] || files=1000000

first=${ports%-*} last=${ports#*-}
to=${upstream%:*} up=${upstream##*:}
up_first=${up%-*} up_last=${up#*-}
servers=
port=$first
while [ "$port" -le "$last" ]; do
    to_port=$((up_first + (port - first) % (up_last - up_first + 1)))
    servers="$servers
    server { listen $host:$port backlog=4096; proxy_pass $to:$to_port; }"
    port=$((port + 1))
done

# nginx wants a file with a length: one that is open and has no name any more. Of its
# process file it takes care itself.
directory=$(mktemp -d)
cat >"$directory/nginx.conf" <<EOF
daemon off;
worker_processes $threads;
pid ${TMPDIR:-/tmp}/wsbench-nginx-$$.pid;
error_log stderr crit;
$module
events { worker_connections $((files - 100)); }
stream {
    access_log off;
    tcp_nodelay $nodelay;
    proxy_half_close on;
    proxy_connect_timeout 10s;
    proxy_timeout 1h;
    proxy_buffer_size $buffer;
$servers
}
EOF
exec 3<"$directory/nginx.conf"
rm -r "$directory"
exec nginx -e stderr -c /dev/fd/3
