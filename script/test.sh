#!/bin/sh
# Everything that CI checks: format, lints, unit and integration tests, and
# smoke comparisons with real servers, relays and transfer servers.
#
#     ./script/test.sh

case "${1-}" in
-h | --help)
    sed -n '2,/^$/s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac

set -eu
cd "$(dirname -- "$0")/.."

step() {
    printf '\n== %s\n' "$*"
}

# A machine may lack these components and be unable to fetch them.
if cargo fmt --version >/dev/null 2>&1; then
    step "format"
    cargo fmt --all --check
    for manifest in frameworks/*/Cargo.toml tcp/*/Cargo.toml fuzz/Cargo.toml; do
        cargo fmt --check --manifest-path "$manifest"
    done
else
    echo "rustfmt is not installed here: the format is not checked"
fi
if cargo clippy --version >/dev/null 2>&1; then
    step "lints"
    cargo clippy --quiet --locked --workspace --all-targets -- -D warnings
    for manifest in frameworks/*/Cargo.toml; do
        cargo clippy --quiet --locked --manifest-path "$manifest" -- -D warnings
    done
    for manifest in tcp/*/Cargo.toml; do
        cargo clippy --quiet --locked --all-targets --manifest-path "$manifest" -- -D warnings
    done
else
    echo "clippy is not installed here: lints are not checked"
fi

# All building comes first: tests that measure must not share the machine with it.
step "build"
cargo build --release --locked -p wsbench --bins --example misbehave
target/release/wsbench build
cargo test --quiet --locked --workspace --no-run
for manifest in tcp/*/Cargo.toml; do
    cargo test --quiet --locked --no-run --manifest-path "$manifest"
done

# Those of the report open it in a browser, which is fetched if there is none.
step "browser"
./script/browser_setup.sh

# Most tests wait more than they compute; those that measure take turns by themselves.
step "tests"
cargo test --locked --workspace -- --test-threads=3
for manifest in tcp/*/Cargo.toml; do
    cargo test --quiet --locked --manifest-path "$manifest" -- --test-threads=3
done

step "smoke comparisons"
target/release/wsbench run --profile smoke
target/release/wsbench run --profile relay --rounds 1 -c 50 -b 10240 -n 2000 direct syscall splice io_copy
target/release/wsbench run --profile transfer --rounds 1 -c 50 stack pool
target/release/wsbench selftest --short
