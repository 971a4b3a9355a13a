#!/usr/bin/env bash
# Makes the archives of a release below target/archives; what `make dist` does.
set -eu
cd "$(dirname "$0")/.."
release=target/release
version=$("$release/unfuse" --version | cut -d' ' -f2)
name="unfuse-$version-linux-x86_64"
dist="target/archives/$name"
rm -rf target/archives
mkdir -p "$dist/completions"
cp "$release/unfuse" "$release/libunfuse.so" LICENSE NOTICE README.md CHANGELOG.md "$dist"
for shell in bash zsh fish; do
    "$release/unfuse" completions "$shell" >"$dist/completions/unfuse.$shell"
done
"$release/unfuse" man "$dist/man/man1" 2>/dev/null
tar -C target/archives --owner=0 --group=0 --sort=name -czf "target/archives/$name.tar.gz" "$name"
tar -C "$release" --owner=0 --group=0 -czf "target/archives/$name-debug.tar.gz" unfuse.debug libunfuse.so.debug
ls -l "target/archives/"*.tar.gz "$dist/unfuse" "$dist/libunfuse.so"
