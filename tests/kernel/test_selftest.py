# SPDX-License-Identifier: BSD-2-Clause
"""Walks in the kernel end like walks on the host, over the same images, says `selftest`."""
import vm

SELFTEST = vm.O / "tests/kernel/selftest"


def test_kernel_walks_like_the_host(kernel):
    r = vm.run(kernel, str(SELFTEST), [SELFTEST])
    assert r.status == 0, r.output[-4000:]
