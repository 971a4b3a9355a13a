# For other scripts, which run in the project's root: cargo with zig as the linker, for an old glibc and for other machines.
# Sets glibc, the oldest that programs run on.
glibc=2.17
tools=target/dist/venv

if ! cmp -s dist/tools.lock "$tools/lock"; then
    rm -rf "$tools"
    python3 -m venv "$tools"
    "$tools/bin/python" -m pip install --quiet --require-hashes -r dist/tools.lock
    cp dist/tools.lock "$tools/lock"
fi

# The name that Rust has for a machine.
target_of() {
    echo "$1-unknown-linux-gnu"
}

# Installs Rust's library for a machine, of the compiler that rust-toolchain.toml names.
rust_for() {
    if [ ! -d "$(rustc --print target-libdir --target "$(target_of "$1")")" ]; then
        rustup target add "$(target_of "$1")" || return 1
    fi
}

# zig MACHINE COMMAND ARGUMENT…: with `-z defs`, the linker fails if old systems lack a function. Otherwise the JVM would
# fail at run time.
zig() {
    local machine=$1 command=$2
    shift 2
    PATH="$PWD/$tools/bin:$PATH" RUSTFLAGS="-C link-arg=-Wl,-z,defs" cargo-zigbuild "$command" --quiet --locked \
        --target "$(target_of "$machine").$glibc" "$@"
}
