# SPDX-License-Identifier: BSD-2-Clause
import os
import signal
import sys
import threading
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import vms  # noqa: E402

# What is started here is to have the dispositions of a program in a terminal, however the tests were started: in the
# background of a script SIGINT and SIGQUIT are ignored, under nohup SIGHUP. A worker of pytest-xdist inherits them; it may
# load this file in another thread, which cannot set them.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


# They judge recordings of all processes, or disturb these by thousands of processes and samples: one module at a time.
ALL_PROCESSES = {"test_all", "test_hostile", "test_scene"}

PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")


def pytest_configure(config):
    """Where it is 3, as by default on Debian, an event takes CAP_SYS_ADMIN: 2 is the kernel's own most. Once for all
    processes of pytest-xdist."""
    if not hasattr(config, "workerinput") and os.geteuid() == 0 and int(PARANOID.read_text()) > 2:
        config.paranoid = PARANOID.read_text()
        PARANOID.write_text("2")


def pytest_unconfigure(config):
    if hasattr(config, "paranoid"):
        PARANOID.write_text(config.paranoid)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Under pytest-xdist (--dist loadgroup) tests that share a recording, a fixture of their module, run in one process.
    The others go to whichever process is free, so they come last."""
    shared = {}
    for item in items:
        names = [name for name, defs in item._fixtureinfo.name2fixturedefs.items() if defs[-1].scope == "module"]
        params = item.callspec.params if hasattr(item, "callspec") else {}
        if "results" in item.fixturenames:  # of test_truth.py: runs of one interpreter
            names, params = ["results", "vm"], {"vm": params["vm"]}
        group = "-".join([item.module.__name__, *names, *(str(params[n]) for n in names if n in params)])
        if "texluajit" in item.fixturenames and params.get("vm", "host32").startswith("host32"):
            names, group = ["texluajit"], "texluajit"  # which fetch_texluajit() makes: not in two processes at once
        if item.module.__name__ in ALL_PROCESSES:
            names, group = ["all processes"], "all-processes"
        if names:
            item.add_marker(pytest.mark.xdist_group(group))
            shared[item] = True
    items.sort(key=lambda item: item not in shared)


@pytest.fixture(scope="session", autouse=True)
def built():
    if not vms.LUABPF.exists():
        pytest.exit(f"no {vms.LUABPF}: make tests-build O={vms.OUT}", 1)


@pytest.fixture(scope="session")
def root(built):
    """For all tests that sample: they need root, and say so."""
    if os.geteuid() != 0:
        pytest.fail("needs root: sudo make e2e")


@pytest.fixture(scope="session")
def luajit2(root):
    """Debian's build of OpenResty's LuaJIT, beside the installed one."""
    vms.fetch_luajit2()


@pytest.fixture(scope="session")
def texluajit(root):
    """Debian's build of LuaJIT without GC64, under the name that hosts link."""
    return vms.fetch_texluajit()
