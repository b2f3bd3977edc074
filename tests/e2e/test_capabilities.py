# SPDX-License-Identifier: BSD-2-Clause
"""luabpf needs CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE, and nothing else."""
import os
import subprocess
from pathlib import Path

import pytest

import vms

pytestmark = pytest.mark.usefixtures("root")
LOOP = "local x = 0 while true do for i = 1, 1e5 do x = x + i % 7 end end"
NEEDED = ["bpf", "perfmon", "sys_ptrace"]
NOBODY = 65534


@pytest.fixture(scope="module")
def loop():
    with vms.Target(["luajit", "-e", LOOP]) as t:
        vms.wait_until(lambda: t.cpu() > 0.02)
        yield t


def with_capabilities(names, *args):
    """Runs luabpf as nobody, with these capabilities and no others: none can be gained by exec."""
    only = "-all," + ",".join("+" + n for n in names)
    tool = os.open(vms.LUABPF, os.O_RDONLY)  # nobody may not be able to open the path
    argv = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs",
            f"--inh-caps={only}", f"--ambient-caps={only}", f"--bounding-set={only}", f"/proc/self/fd/{tool}", *map(str, args)]
    try:
        return subprocess.run(argv, capture_output=True, text=True, timeout=120, env=vms.clean_env(), pass_fds=[tool])
    finally:
        os.close(tool)


def test_three_are_enough(loop):
    """Another user's process: its memory, its mappings, the files that they show, its threads' events."""
    r = with_capabilities(NEEDED, "-p", loop.pid, "-F", 500, "-d", 1, "-jp=fm0", "-v")
    assert r.returncode == 0 and r.stdout, r
    assert "lost 0" in r.stderr, r
    assert Path(f"/proc/{loop.pid}").stat().st_uid != NOBODY


@pytest.mark.parametrize("missing", NEEDED)
def test_each_is_needed(loop, missing):
    r = with_capabilities([n for n in NEEDED if n != missing], "-p", loop.pid, "-d", 1)
    assert r.returncode == 1 and not r.stdout, r
    assert f"CAP_{missing.upper()}" in r.stderr, r
