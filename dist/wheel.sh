#!/usr/bin/env bash
# Makes the Python wheel. Arguments: the folder that contains unfuse and libunfuse.so; the plugin's jar; the platform for
# which they are, such as manylinux_2_17_x86_64; the folder to write to; and a Python with the package wheel.
set -euo pipefail
built=$1 plugin=$2 platform=$3 out=$4 python=$5
here=$(dirname "$0")
# shellcheck source=dist/tree.sh
. "$here/tree.sh"
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/../Cargo.toml" | head -1)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A wheel has programs and other files of a prefix in folders of their own.
data="$work/unfuse-$version.data" info="$work/unfuse-$version.dist-info"
tree "$built" "$data/data"
mkdir -p "$data/scripts" "$info/licenses"
mv "$data/data/bin/unfuse" "$data/scripts"
rmdir "$data/data/bin"
install -D -m 644 -t "$work/unfuse" "$here/../python/unfuse/"*.py "$plugin"
cp "$here/../LICENSE" "$here/../NOTICE" "$info/licenses"
{ sed "s/@VERSION@/$version/" "$here/wheel-metadata" && cat "$here/../README.md"; } >"$info/METADATA"
printf '%s\n' "Wheel-Version: 1.0" "Generator: unfuse" "Root-Is-Purelib: false" "Tag: py3-none-$platform" >"$info/WHEEL"
"$python" -m wheel pack "$work" --dest-dir "$out" >/dev/null
