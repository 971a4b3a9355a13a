#!/bin/busybox sh
# The first process of the emulated machine: JVMs with the agent, and their folded stacks on the console.
export PATH=/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
ip link set lo up
java=/jdk/bin/java
echo "guest: Linux $(uname -rm), $(nproc) CPUs, kernel.perf_event_paranoid $(cat /proc/sys/kernel/perf_event_paranoid)"

# NAME PROFILE: prints the folded stacks of a profile between two lines.
show() {
    /unfuse export "$2" --format folded >/tmp/folded
    echo "BEGIN $1"
    cat /tmp/folded
    echo "END $1"
}

# busybox runs dd inside its shell, so no process has that name. The others need Python, which this machine lacks.
lacking="--skip short_children_are_named_and_not_the_shell_that_starts_them
    --skip most_stacks_of_a_running_process_are_whole --skip stacks_and_lines_are_those_that_the_interpreter_prints
    --skip the_thread_that_holds_the_lock_is_read_and_deep_stacks_keep_their_innermost_part
    --skip lines_of_a_process_and_of_its_sibling_are_sampled_by_their_cpu_time"
passed=yes
for test in /unit/*; do
    echo "Unit tests: $test"
    # shellcheck disable=SC2086
    "$test" --quiet $lacking || passed=no
done
[ $passed = no ] || echo "guest: unit tests passed"

/unfuse run -o /tmp/launched --agent-options threads=all,source=perf -- "$java" -cp /classes Callers 30000
show launched /tmp/launched

echo "guest: done"
poweroff -f
