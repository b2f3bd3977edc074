# SPDX-License-Identifier: BSD-2-Clause
"""The harness itself: a result is the script's own, and no failure passes for a success.

Tests that end the kernels' guests are this file's last, and this file is the last: less to boot."""
import tempfile
from pathlib import Path

import pytest

import vm

TREE = tempfile.TemporaryDirectory(prefix="luabpf-tree.")
FOLDER, LINK = Path(TREE.name, "d"), Path(TREE.name, "link")
FOLDER.mkdir()
(FOLDER / "x.lua").write_text("print(_VERSION)")
LINK.symlink_to("d/x.lua")
FILES = [vm.needs(Path("/usr/bin/luajit")), vm.needs(FOLDER), vm.needs(LINK)]


@pytest.fixture
def console_elsewhere(monkeypatch, tmp_path):
    """Failures on purpose leave nothing among the logs."""
    monkeypatch.setattr(vm, "FAILURES", tmp_path)
    yield tmp_path


def test_output_and_status_are_the_scripts(kernel):
    r = vm.run(kernel, "uname -r; pwd; echo to stderr >&2; printf 'no newline'; exit 3")
    assert r.status == 3
    release, cwd, rest = r.output.split("\n", 2)
    assert kernel == vm.RUNNING or release.startswith(kernel + ".")
    assert cwd.startswith("/")
    assert rest == "to stderr\nno newline"


def test_guest_has_what_profiling_needs(guest):
    r = vm.run(guest, "set -e; test -s /sys/kernel/btf/vmlinux; test -d /sys/kernel/tracing/events;"
                      "grep -q ' /sys/fs/bpf bpf ' /proc/mounts; id -u; nproc; seq 20000")
    # The end of a long output: nothing is lost on its way.
    assert (r.status, r.output[:6], r.output[-7:]) == (0, "0\n2\n1\n", "\n20000\n")


def test_files_keep_their_paths_and_bring_their_libraries(guest):
    r = vm.run(guest, f"/usr/bin/luajit {FOLDER}/x.lua && cat {LINK}", FILES)
    assert (r.status, r.output) == (0, "Lua 5.1\nprint(_VERSION)")


def test_scripts_share_nothing_but_the_guest(guest):
    first = vm.run(guest, "echo x >file; sleep 1000 & echo $! $PPID")
    hung, init = first.output.split()
    assert first.status == 0 and init == "1"
    r = vm.run(guest, f"ls; [ -e /proc/{hung}/exe ] || echo gone; echo '@exit 7'; exit 2")
    assert (r.status, r.output) == (2, "gone\n@exit 7\n")


def test_a_script_arrives_whole_while_signals_do(guest):
    """The kernel starts a group's agent when what a script left in it has been killed: it outlives its script."""
    r = vm.run(guest, r"""set -e
        printf '#!/bin/sh\nwhile kill -CHLD 1; do usleep 10000; done' >/tmp/agent
        chmod +x /tmp/agent
        mkdir /tmp/group
        mount -t cgroup -o none,name=group group /tmp/group
        mkdir /tmp/group/one
        echo /tmp/agent >/tmp/group/release_agent
        echo 1 >/tmp/group/one/notify_on_release
        sleep 1000 &
        echo $! >/tmp/group/one/cgroup.procs""")
    assert r.status == 0, r.output
    long = "# " + "x" * 2000  # it arrives for longer than from one signal to the next
    r = vm.run(guest, f"{long}\nrmdir /tmp/group/one; umount /tmp/group; rm -r /tmp/group /tmp/agent; echo begun")
    assert (r.status, r.output) == (0, "begun\n")


def test_a_killed_script_is_no_success(kernel):
    assert vm.run(kernel, "kill -9 $$").status not in (0, None)


def test_missing_file_is_named():
    with pytest.raises(vm.Error, match="/no/such/program"):
        vm.run(vm.RUNNING, "true", ["/no/such/program"])


@pytest.mark.parametrize("where", [vm.RUNNING, vm.GUESTS[0]])
def test_a_hang_is_ended_and_shown(where, monkeypatch, console_elsewhere):
    said, read_more = [], vm.read_more

    def hurry_after_begun(pipe, silence):
        said.append(read_more(pipe, 1 if b"begun" in b"".join(said) else silence))
        return said[-1]

    monkeypatch.setattr(vm, "read_more", hurry_after_begun)
    with pytest.raises(vm.Error, match="no output for 600 s(.|\n)*begun"):
        vm.run(where, "echo begun; sleep 1000")
    assert (where == vm.RUNNING) == (not list(console_elsewhere.glob("console-*.log")))


def test_an_oops_ends_the_guest_and_is_shown(guest, console_elsewhere):
    with pytest.raises(vm.Error, match="ended before its script did(.|\n)*begun(.|\n)*panic"):
        vm.run(guest, "echo begun; echo c >/proc/sysrq-trigger; sleep 1000")
    assert list(console_elsewhere.glob("console-*.log"))
