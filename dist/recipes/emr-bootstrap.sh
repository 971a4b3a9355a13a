#!/bin/bash
# Bootstrap action for EMR, only where nodes deny perf_event (`unfuse doctor` says so).
set -eu
if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -gt 2 ]; then
    echo kernel.perf_event_paranoid=2 | sudo tee /etc/sysctl.d/90-unfuse.conf
    sudo sysctl -p /etc/sysctl.d/90-unfuse.conf
fi
