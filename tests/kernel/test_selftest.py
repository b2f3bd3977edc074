# SPDX-License-Identifier: BSD-2-Clause
"""What the kernel walks is what is walked elsewhere."""
import vm

SELFTEST = vm.needs(vm.O / "tests/kernel/selftest")
FILES = vm.needs(vm.O / "tests/kernel/selftest_files")


def test_kernel_walks_like_the_host(kernel):
    """The same images, in the kernel and on the host, says `selftest`."""
    r = vm.run(kernel, str(SELFTEST), [SELFTEST])
    assert r.status == 0, r.output[-4000:]


def test_a_search_of_the_mappings_meets_a_replaced_node(kernel):
    """It has no result then: the kernel has overwritten pivots of the node, so that files behind these are missed."""
    r = vm.run(kernel, str(FILES), [FILES])
    assert r.status == 0, r.output[-4000:]
