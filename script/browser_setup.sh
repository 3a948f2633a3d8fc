#!/bin/sh
# Fetches what the tests of report.html open it in: a Chromium, unless this machine
# has one, and axe-core, which judges its accessibility.
#
#     ./script/browser_setup.sh
#
# From npm, about 70 MB in the versions of script/browser/package-lock.json, into
# target/browser/; nothing is installed. What cannot be had is one line and no error:
# the tests then say that they are not run. With WSBENCH_REQUIRE_BROWSER=1 they fail.

case "${1-}" in
-h | --help)
    sed -n '2,/^$/s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac

set -u
cd "$(dirname -- "$0")/.." || exit 1
folder=${CARGO_TARGET_DIR:-target}/browser

# Whoever has none of these has no browser that the tests know.
own=
for name in chromium-headless-shell google-chrome-stable google-chrome chromium; do
    [ "$own" ] || own=$(command -v "$name" || true)
done
own=${CHROME:-$own}

case $own in
'') what="Chromium and axe-core" ;;
*) what=axe-core ;;
esac

stamp="$(cksum script/browser/package-lock.json) ${own:+own}"
if [ "$(cat "$folder/stamp" 2>/dev/null)" = "$stamp" ]; then
    exit 0
fi
refuse() {
    echo "$what not fetched: $1 (the tests of report.html go without)"
    exit 0
}
for program in npm node tar timeout; do
    command -v "$program" >/dev/null || refuse "$program is not installed"
done
[ "$own" ] || [ "$(uname -sm)" = "Linux x86_64" ] || refuse "there is none for $(uname -sm)"

rm -rf "$folder"
mkdir -p "$folder/npm" || refuse "$folder cannot be written"
cp script/browser/package.json script/browser/package-lock.json "$folder/npm/"
echo "fetching $what, once ..." >&2
timeout 240 npm ci --prefix "$folder/npm" ${own:+--omit=dev} --ignore-scripts --no-audit --no-fund \
    --loglevel=error --fetch-retries=1 --fetch-timeout=60000 >"$folder/npm.log" 2>&1 ||
    refuse "npm ci failed, see $folder/npm.log"
cp "$folder/npm/node_modules/axe-core/axe.min.js" "$folder/" || refuse "axe-core is not as expected"
if [ -z "$own" ]; then
    node -e '
        const zlib = require("zlib"), fs = require("fs");
        const [from, to] = process.argv.slice(1);
        for (const [name, mode] of [["chromium", 0o755], ["al2023.tar", 0o644], ["fonts.tar", 0o644]]) {
            const file = fs.readFileSync(`${from}/${name}.br`);
            fs.writeFileSync(`${to}/${name}`, zlib.brotliDecompressSync(file), { mode });
        }' "$folder/npm/node_modules/@sparticuz/chromium/bin" "$folder" &&
        tar -xf "$folder/al2023.tar" -C "$folder" && tar -xf "$folder/fonts.tar" -C "$folder" ||
        refuse "what npm brought cannot be unpacked"
    # For a machine without any font.
    fonts=$(cd "$folder" && pwd)
    echo "<fontconfig><dir>$fonts/fonts</dir><cachedir>$fonts/cache</cachedir></fontconfig>" >"$folder/fonts.conf"
fi
rm -rf "$folder/npm" "$folder"/*.tar
echo "$stamp" >"$folder/stamp"
