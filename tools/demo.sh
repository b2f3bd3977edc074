#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# make demo: profiles a workload that it starts, and shows what comes out.
set -eu

luabpf=$(realpath "${O:-build}/luabpf")
workload=$(realpath "$(dirname "$0")/demo.lua")
seconds=5

if [ "$(id -u)" -ne 0 ]; then
    echo "luabpf: BPF needs root: sudo make demo" >&2
    exit 1
fi

# The workload needs no privilege. It ends by itself, should this script be killed.
drop=
if [ -n "${SUDO_UID:-}" ] && [ "$SUDO_UID" != 0 ]; then
    drop="setpriv --reuid $SUDO_UID --regid $SUDO_GID --clear-groups --"
fi
$drop luajit "$workload" 60 &
pid=$!
saved=$(mktemp -d)
trap 'kill $pid 2>/dev/null || true; rm -rf "$saved"' EXIT
trap 'exit 130' INT TERM

show() {
    printf '\n\033[1m$ %s\033[0m\n' "$1" | { [ -t 1 ] && cat || sed 's/\x1b\[[0-9]*m//g'; }
}

echo "A LuaJIT process is running: pid $pid, $workload."
cd "$saved"
show "luabpf -p $pid -d $seconds -F 1000 -jp=f -o demo.pb.gz"
"$luabpf" -p "$pid" -d "$seconds" -F 1000 -jp=f -o demo.pb.gz

show "luabpf report demo.pb.gz -jp=2sm1        # the same samples: functions, split by their callers"
"$luabpf" report demo.pb.gz -jp=2sm1

show "luabpf report demo.pb.gz -jp=vf          # what the VM was doing"
"$luabpf" report demo.pb.gz -jp=vf
