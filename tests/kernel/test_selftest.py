# SPDX-License-Identifier: BSD-2-Clause
"""What the kernel reads and walks is what is read and walked elsewhere."""
import vm

SELFTEST = vm.needs(vm.O / "tests/kernel/selftest")
PAGES = vm.needs(vm.O / "tests/kernel/pages")


def test_kernel_walks_like_the_host(kernel):
    """The same images, in the kernel and on the host, says `selftest`."""
    r = vm.run(kernel, str(SELFTEST), [SELFTEST])
    assert r.status == 0, r.output[-4000:]


def test_kernel_reads_like_its_own_helper(kernel):
    """All kinds of pages, by the walkers' door, says `pages`."""
    r = vm.run(kernel, str(PAGES), [PAGES])
    assert r.status == 0, r.output[-4000:]
