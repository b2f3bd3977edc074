# SPDX-License-Identifier: BSD-2-Clause
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import vms  # noqa: E402


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
