# SPDX-License-Identifier: BSD-2-Clause
"""The harness itself: a result is the script's own, and no failure passes for a success."""
import pytest

import vm


@pytest.fixture
def console_elsewhere(monkeypatch, tmp_path):
    """Failures on purpose leave nothing among the logs."""
    monkeypatch.setattr(vm, "FAILURES", tmp_path)
    yield
    assert list(tmp_path.glob("console-*.log"))


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
    # The end of a long output: nothing is lost when the guest powers off.
    assert (r.status, r.output[:6], r.output[-7:]) == (0, "0\n2\n1\n", "\n20000\n")


def test_files_keep_their_paths_and_bring_their_libraries(guest, tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d/x.lua").write_text("print(_VERSION)")
    (tmp_path / "link").symlink_to("d/x.lua")
    r = vm.run(guest, f"/usr/bin/luajit {tmp_path}/d/x.lua && cat {tmp_path}/link",
               ["/usr/bin/luajit", tmp_path / "d", tmp_path / "link"])
    assert (r.status, r.output) == (0, "Lua 5.1\nprint(_VERSION)")


def test_a_hang_is_ended(console_elsewhere):
    with pytest.raises(vm.Error, match="not done after 5 s"):
        vm.run("6.1", "sleep 1000", timeout=5)


def test_a_hang_here_is_ended_and_shown():
    with pytest.raises(vm.Error, match="not done after 1 s(.|\n)*begun"):
        vm.run(vm.RUNNING, "echo begun; sleep 1000", timeout=1)


def test_an_oops_ends_the_guest_and_is_shown(guest, console_elsewhere):
    with pytest.raises(vm.Error, match="ended before its script did(.|\n)*begun(.|\n)*panic"):
        vm.run(guest, "echo begun; echo c >/proc/sysrq-trigger; sleep 1000")


def test_a_killed_script_is_no_success(kernel):
    assert vm.run(kernel, "kill -9 $$").status not in (0, None)


def test_missing_file_is_named():
    with pytest.raises(vm.Error, match="/no/such/program"):
        vm.run(vm.RUNNING, "true", ["/no/such/program"])
