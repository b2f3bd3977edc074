# SPDX-License-Identifier: BSD-2-Clause
"""What the kernel walks is what is walked elsewhere."""
import vm

SELFTEST = vm.needs(vm.O / "tests/kernel/selftest")


def test_kernel_walks_like_the_host(kernel):
    """The same images, in the kernel and on the host, says `selftest`."""
    r = vm.run(kernel, str(SELFTEST), [SELFTEST])
    assert r.status == 0, r.output[-4000:]
