# SPDX-License-Identifier: BSD-2-Clause
"""Every BPF program loads on every kernel and costs the verifier no more than budget.json says."""
import json

import programs


def test_programs_load_within_budget(kernel):
    budget = json.loads(programs.BUDGET.read_text())
    costs = programs.measure(kernel)
    assert costs, "no BPF programs were found"
    assert sorted(costs) == sorted(name for name in budget if kernel in budget[name]), \
        "budget.json does not match: see programs.py"
    over = {name: f"{cost['verified_insns']} instructions verified, budget {budget[name][kernel]}"
            for name, cost in costs.items() if cost["verified_insns"] > budget[name][kernel]}
    assert not over


def test_programs_are_compiled(kernel):
    """An interpreted program would make every measure of speed meaningless."""
    assert not [name for name, cost in programs.measure(kernel).items() if not cost["jited_len"]]


def test_budget_is_far_from_the_verifiers_limit():
    budget = json.loads(programs.BUDGET.read_text())
    assert not {name: most for name, most in budget.items()
                if max(most.values()) > programs.HARD_LIMIT * 3 // 4}
