# SPDX-License-Identifier: BSD-2-Clause
"""Every test of this folder that takes `kernel` runs once per kernel."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import vm  # noqa: E402


def pytest_generate_tests(metafunc):
    if "kernel" in metafunc.fixturenames:
        metafunc.parametrize("kernel", vm.ALL)
    if "guest" in metafunc.fixturenames:
        metafunc.parametrize("guest", vm.GUESTS)
