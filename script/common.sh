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
[ -x "$program" ] || echo "building wsbench, once ..." >&2
# On a terminal cargo shows what it does: a change can cost a minute.
[ -t 2 ] && quiet= || quiet=--quiet
(cd "$root" && cargo build $quiet --release --locked -p wsbench) || exit 1

wsbench() {
    "$program" "$@"
}
