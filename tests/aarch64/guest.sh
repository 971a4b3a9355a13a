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

passed=yes
for test in /unit/*; do
    echo "Unit tests: $test"
    # busybox runs dd inside its shell, so no process has that name.
    "$test" --quiet --skip short_children_are_named_and_not_the_shell_that_starts_them || passed=no
done
[ $passed = no ] || echo "guest: unit tests passed"

/unfuse run -o /tmp/launched --agent-options threads=all,source=perf -- "$java" -cp /classes Callers 30000
show launched /tmp/launched

echo "guest: done"
poweroff -f
