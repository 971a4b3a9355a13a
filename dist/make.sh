#!/usr/bin/env bash
# Makes the files of a release in target/archives, as a part of `make dist`, which has built the Spark jar and the page.
# MACHINES are those to make it for: x86_64, where it builds, and aarch64.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=dist/zig.sh
. dist/zig.sh
read -ra machines <<<"${MACHINES:-x86_64 aarch64}"
if [[ " ${machines[*]} " != *" x86_64 "* ]]; then
    echo "x86_64 must be among MACHINES: its unfuse prints the manual pages" >&2 && exit 1
fi
archives=target/archives
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
# The time of all files in archives, so that equal sources make equal archives.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

# Where the programs for a machine are.
built_of() {
    echo "target/dist/$(target_of "$1")/dist"
}

# The name of binutils' objcopy for a machine.
objcopy_of() {
    [ "$1" = "$(uname -m)" ] && echo objcopy || echo "$1-linux-gnu-objcopy"
}

for machine in "${machines[@]}"; do
    case $machine in
    x86_64 | aarch64) ;;
    *) echo "unfuse does not run on $machine: MACHINES are x86_64 and aarch64" >&2 && exit 1 ;;
    esac
    rust_for "$machine" || {
        echo "Rust's library for $machine is missing; make dist MACHINES=x86_64 leaves aarch64 out" >&2 && exit 1
    }
    command -v "$(objcopy_of "$machine")" >/dev/null || {
        echo "$(objcopy_of "$machine") is missing: install it (Debian: apt-get install binutils-${machine/_/-}-linux-gnu)" >&2
        exit 1
    }
done

parts=()
for machine in "${machines[@]}"; do
    built=$(built_of "$machine")
    zig "$machine" zigbuild --profile dist --target-dir target/dist --package unfuse-cli
    # Cargo optimises a library as a whole only if Rust programs do not link it too.
    zig "$machine" rustc --profile dist --target-dir target/dist --package unfuse-agent --lib --crate-type cdylib
    OBJCOPY=$(objcopy_of "$machine") tests/split-debug.sh "$built/unfuse" "$built/libunfuse.so"
    dist/check_symbols.sh "$glibc" "$built/unfuse" "$built/libunfuse.so"
    parts+=("linux-$machine" "$built")
done

# One jar for all machines: the hosts of a cluster may differ.
plugin=target/dist/unfuse-spark.jar
dist/plugin_jar.sh "$plugin" "${parts[@]}"

rm -rf "$archives"
mkdir -p "$archives"

# shellcheck source=dist/tree.sh
. dist/tree.sh
RUNS="$(built_of x86_64)/unfuse"
export RUNS
tar_of() {
    tar -C "$2" --owner=0 --group=0 --sort=name --mtime="@$SOURCE_DATE_EPOCH" -cf - "${@:3}" | gzip -9n >"$archives/$1"
}
for machine in "${machines[@]}"; do
    built=$(built_of "$machine")
    name="unfuse-$version-linux-$machine"
    tree "$built" "$archives/$name"
    cp LICENSE NOTICE README.md CHANGELOG.md "$archives/$name"
    cp "$plugin" "$archives/$name/lib/unfuse"
    tar_of "$name.tar.gz" "$archives" "$name"
    tar_of "$name-debug.tar.gz" "$built" unfuse.debug libunfuse.so.debug
    rm -r "${archives:?}/$name"

    case $machine in x86_64) debian=amd64 ;; aarch64) debian=arm64 ;; esac
    deb="$archives/deb"
    tree "$built" "$deb/usr"
    gzip -9n "$deb/usr/share/man/man1/"*.1
    mv "$deb/usr/share/zsh/site-functions" "$deb/usr/share/zsh/vendor-completions"
    install -D -m 644 -t "$deb/usr/share/doc/unfuse" NOTICE README.md CHANGELOG.md
    install -D -m 644 LICENSE "$deb/usr/share/doc/unfuse/copyright"
    mkdir "$deb/DEBIAN"
    sed -e "s/@VERSION@/$version/" -e "s/@KIB@/$(du -sk "$deb/usr" | cut -f1)/" -e "s/@GLIBC@/$glibc/" \
        -e "s/@MACHINE@/$debian/" dist/debian-control >"$deb/DEBIAN/control"
    dpkg-deb --root-owner-group --build "$deb" "$archives/unfuse_${version}_$debian.deb" >/dev/null
    rm -r "$deb"

    dist/wheel.sh "$built" "$plugin" "manylinux_${glibc/./_}_$machine" "$archives" "$tools/bin/python"
done

# A Maven repository of one artifact, for `spark-submit --packages` and for an upload to your own repository.
maven="$archives/maven/io/unfuse/unfuse-spark/$version"
install -D -m 644 "$plugin" "$maven/unfuse-spark-$version.jar"
sed "s/@VERSION@/$version/" dist/unfuse-spark.pom >"$maven/unfuse-spark-$version.pom"
for file in "$maven"/*; do
    sha1sum "$file" | cut -d ' ' -f 1 >"$file.sha1"
done
cp "$plugin" "$archives/unfuse-spark-$version.jar"
tar_of "unfuse-$version-maven.tar.gz" "$archives" maven
rm -r "$archives/maven"

dist/sbom.py "$version" "${machines[@]}" >"$archives/unfuse-$version.cdx.json"
cp dist/Dockerfile "$archives"
(cd "$archives" && sha256sum -- * >SHA256SUMS)
ls -l "$archives"
for machine in "${machines[@]}"; do
    ls -l "$(built_of "$machine")/unfuse" "$(built_of "$machine")/libunfuse.so"
done
