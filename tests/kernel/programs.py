# SPDX-License-Identifier: BSD-2-Clause
"""What each BPF program costs the verifier on a kernel, and what it may cost.

usage: programs.py        (as root) measures on every kernel and rewrites budget.json

The budget is what was measured plus a fifth. A program that outgrows it is not broken, but near
to the day when some kernel refuses it: look at why, then rewrite the budget in the same commit.
"""
import json
import math
import shlex
import sys

import vm

BUDGET = vm.HERE / "budget.json"
LOAD = vm.needs(vm.O / "tests/kernel/load")
HEADROOM = 1.2
HARD_LIMIT = 1_000_000  # instructions that the verifier looks at before it gives up


def objects():
    """The objects of today's sources: no left-over of an old build is measured."""
    sources = sorted((vm.HERE.parent.parent / "bpf").glob("*.bpf.c"))
    return [vm.O / "bpf" / s.name.replace(".bpf.c", ".bpf.o") for s in sources]


for obj in objects():
    vm.needs(obj)


@vm.once
def measure(kernel):
    """{"object/program": {"verified_insns", "insns", "jited_len"}}; vm.Error: one does not load."""
    files = [LOAD, *objects()]
    r = vm.run(kernel, shlex.join(map(str, files)) + " 2>log >out; s=$?; cat out; "
                       "[ $s -eq 0 ] || { tail -c 6000 log; exit $s; }", files)
    if r.status:
        raise vm.Error(f"kernel {kernel}: not all programs load:\n{r.output}")
    return {f"{obj}/{name}": cost for obj, programs in json.loads(r.output).items()
            for name, cost in programs.items()}


def write_budget():
    budget = {}
    for kernel in vm.ALL:
        for name, cost in measure(kernel).items():
            budget.setdefault(name, {})[kernel] = math.ceil(cost["verified_insns"] * HEADROOM)
            print(f"{kernel:8} {name:32} {cost['verified_insns']:8} verified, {cost['insns']:6} "
                  f"long, {cost['jited_len']:6} bytes compiled")
    BUDGET.write_text(json.dumps(budget, indent="\t", sort_keys=True) + "\n")


if __name__ == "__main__":
    try:
        write_budget()
    except vm.Error as e:
        sys.exit(str(e))
