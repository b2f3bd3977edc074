#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Installs the Debian packages that the build, the tests, the demo and the benchmark need.
# When all are there it says nothing and needs neither network nor root.
set -eu

build="gcc make libc6-dev pkg-config clang llvm bpftool libbpf-dev libelf-dev libzydis-dev
    zlib1g-dev libprotobuf-c-dev protobuf-c-compiler libcjson-dev uthash-dev libcap-dev
    libseccomp-dev"
demo="luajit"
tests="g++ libcriterion-dev libclang-rt-dev clang-format clang-tidy cppcheck python3 python3-pyelftools
    python3-pytest python3-pytest-xdist mandoc libluajit-5.1-dev lua5.1 lua5.2 lua5.3 lua5.4 liblua5.1-0-dev
    liblua5.2-dev liblua5.3-dev liblua5.4-dev lcov lua-penlight redis-tools qemu-system-x86 busybox-static cpio zstd golang-go"
# No package that runs a service is installed here: nobody who asks for a build wants one started, now
# and at each boot. redis-tools holds the server's binary; haproxy is fetched (tests/e2e/fetch).
all="$build $demo $tests"

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "luabpf: not a Debian system: install what these Debian packages hold:" >&2
    echo $all | fold -s -w 90 | sed 's/^/    /' >&2
    # What is really missing shows in the build.
    exit 0
fi

missing=
for package in $all; do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
        missing="$missing $package"
done
[ -z "$missing" ] && exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "luabpf: packages are missing and this is not root; as root, run:" >&2
        echo "    apt-get install --no-install-recommends$missing" >&2
        exit 1
    fi
    as_root=sudo
fi

echo "installing:$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() {
    $as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -q --no-install-recommends $missing </dev/null >"$log" 2>&1
}
# A fresh machine has no package lists, and old lists name packages that are gone.
if ! install; then
    $as_root apt-get update -q </dev/null >"$log" 2>&1 && install || {
        cat "$log" >&2
        echo "luabpf: apt-get could not install:$missing" >&2
        exit 1
    }
fi
