# Sourced by the scripts beside it: answers -h with the head of the script,
# builds wsbench where it must, and defines `wsbench`. No logic lives here.

case "${1-}" in
-h | --help)
    sed -n '2,/^$/s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd) || exit 1
WSBENCH_ROOT=$root
export WSBENCH_ROOT
program=${CARGO_TARGET_DIR:-$root/target}/release/wsbench

if ! command -v cargo >/dev/null; then
    echo "$0: cargo is not on the PATH (install Rust 1.95 or newer)" >&2
    exit 1
fi
# In the project's folder, since that is where cargo looks for .cargo/config.toml.
build_wsbench() {
    (cd "$root" && cargo build "$@" --release --locked -p wsbench)
}

# Of what cargo says, whether it has something to do, which can take minutes.
tell_building() {
    said=
    while read -r word rest; do
        case $word in
        Compiling | Downloading | Updating | Blocking)
            [ "$said" ] || echo "building wsbench, once ..."
            said=1
            ;;
        Finished) [ -z "$said" ] || echo "built wsbench in ${rest##* in }" ;;
        esac
    done
}

# On a terminal cargo shows what it does. Elsewhere it is asked a second time, for
# its errors and its exit code.
if [ -t 2 ]; then
    build_wsbench || exit 1
else
    build_wsbench --color never 2>&1 | tell_building >&2
    build_wsbench --quiet || exit 1
fi

wsbench() {
    "$program" "$@"
}
