# SPDX-License-Identifier: BSD-2-Clause
"""A cgroup of version 2 for a test."""
import contextlib
import os
import subprocess
from pathlib import Path

import vms


@contextlib.contextmanager
def mounted():
    """Where the file system is mounted; for the test, if it is not."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        if line.split()[2] == "cgroup2":
            yield Path(line.split()[1])
            return
    with vms.public_dir() as at:
        subprocess.run(["mount", "-t", "cgroup2", "none", at], check=True)
        try:
            yield at
        finally:
            subprocess.run(["umount", at], check=True)


@contextlib.contextmanager
def cgroup(name):
    """A directory of the test's own; who is in it at the end has been waited for."""
    with mounted() as root:
        path = root / f"luabpf-test-{os.getpid()}-{name}"
        path.mkdir()
        try:
            yield path
        finally:
            vms.wait_until(lambda: not (path / "cgroup.procs").read_text())
            path.rmdir()


def join(path):
    """For preexec_fn: the child moves itself."""
    return lambda: (path / "cgroup.procs").write_text("0")
