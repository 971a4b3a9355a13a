#!/usr/bin/env bash
# Makes the files of a release in target/archives, as a part of `make dist`, which has built the Spark jar and the page.
set -euo pipefail
cd "$(dirname "$0")/.."
glibc=2.17
target=x86_64-unknown-linux-gnu
archives=target/archives
built="target/dist/$target/dist"
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
# The time of all files in archives, so that equal sources make equal archives.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

venv=target/dist/venv
if ! cmp -s dist/tools.lock "$venv/lock"; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --require-hashes -r dist/tools.lock
    cp dist/tools.lock "$venv/lock"
fi
# With `-z defs`, the linker fails if old systems lack a function. Otherwise the JVM would fail at run time.
zig() {
    PATH="$PWD/$venv/bin:$PATH" RUSTFLAGS="-C link-arg=-Wl,-z,defs" cargo-zigbuild "$@" --quiet --locked --profile dist \
        --target "$target.$glibc" --target-dir target/dist
}
zig zigbuild --package unfuse-cli
# Cargo optimises a library as a whole only if Rust programs do not link it too.
zig rustc --package unfuse-agent --lib --crate-type cdylib
tests/split-debug.sh "$built/unfuse" "$built/libunfuse.so"
dist/check_symbols.sh "$glibc" "$built/unfuse" "$built/libunfuse.so"

plugin="$built/unfuse-spark.jar"
dist/plugin_jar.sh "$built" "$plugin"

rm -rf "$archives"
mkdir -p "$archives"

. dist/tree.sh
name="unfuse-$version-linux-x86_64"
tree "$built" "$archives/$name"
cp LICENSE NOTICE README.md CHANGELOG.md "$archives/$name"
cp "$plugin" "$archives/$name/lib/unfuse"
tar_of() {
    tar -C "$2" --owner=0 --group=0 --sort=name --mtime="@$SOURCE_DATE_EPOCH" -cf - "${@:3}" | gzip -9n >"$archives/$1"
}
tar_of "$name.tar.gz" "$archives" "$name"
tar_of "$name-debug.tar.gz" "$built" unfuse.debug libunfuse.so.debug
rm -r "${archives:?}/$name"

deb="$archives/deb"
tree "$built" "$deb/usr"
gzip -9n "$deb/usr/share/man/man1/"*.1
mv "$deb/usr/share/zsh/site-functions" "$deb/usr/share/zsh/vendor-completions"
install -D -m 644 -t "$deb/usr/share/doc/unfuse" NOTICE README.md CHANGELOG.md
install -D -m 644 LICENSE "$deb/usr/share/doc/unfuse/copyright"
mkdir "$deb/DEBIAN"
sed -e "s/@VERSION@/$version/" -e "s/@KIB@/$(du -sk "$deb/usr" | cut -f1)/" -e "s/@GLIBC@/$glibc/" dist/debian-control \
    >"$deb/DEBIAN/control"
dpkg-deb --root-owner-group --build "$deb" "$archives/unfuse_${version}_amd64.deb" >/dev/null
rm -r "$deb"

dist/wheel.sh "$built" "$glibc" "$archives" "$venv/bin/python"

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

dist/sbom.py "$version" >"$archives/unfuse-$version.cdx.json"
cp dist/Dockerfile "$archives"
(cd "$archives" && sha256sum -- * >SHA256SUMS)
ls -l "$archives" "$built/unfuse" "$built/libunfuse.so"
