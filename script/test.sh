#!/bin/sh
# Everything that CI checks: format, lints, unit and integration tests, and a
# smoke comparison with real servers.
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
    for manifest in frameworks/*/Cargo.toml fuzz/Cargo.toml; do
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
else
    echo "clippy is not installed here: lints are not checked"
fi

# All building comes first: tests that measure must not share the machine with it.
step "build"
cargo build --release --locked -p wsbench --bins --example misbehave
target/release/wsbench build
cargo test --quiet --locked --workspace --no-run

# Most tests wait more than they compute; those that measure take turns by themselves.
step "tests"
cargo test --locked --workspace -- --test-threads=3

step "smoke comparison"
target/release/wsbench run --profile smoke
target/release/wsbench selftest --short
