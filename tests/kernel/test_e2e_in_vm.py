# SPDX-License-Identifier: BSD-2-Clause
"""A whole profile of real interpreters on each kernel: six at once, under one luabpf; and two that come under --all.

A share is judged by at least SAMPLES samples: with 700, a binomial share of 0.7 or 0.3 is off by
0.1 (5.8 standard deviations) once in 10^8 runs, of which there are 48 in a run of all tests."""
import base64
import io
import sys
from collections import Counter
from pathlib import Path

import pytest

import vm

sys.path.append(str(vm.HERE.parent / "e2e"))
import pprof  # noqa: E402

SAMPLES = 700
LUABPF = vm.needs(vm.O / "luabpf")
HOT = vm.needs(vm.HERE / "hot.lua")
LUAJIT = Path("/usr/bin/luajit")
TARGETS = {"luajit-jon": (LUAJIT, "-jon"), "luajit-joff": (LUAJIT, "-joff"),
           **{name: (Path("/usr/bin", name),) for name in ("lua5.1", "lua5.2", "lua5.3", "lua5.4")}}
FILES = [LUABPF, HOT, *(vm.needs(argv[0]) for argv in TARGETS.values())]

# All targets have started when they are looked for, and begin when they are sampled.
SCRIPT = """
mkfifo go ready said
exec 8<>ready 9<>go
start() {{
    "$@" {hot} {seconds} <go >ready 8>&- 9>&- &
    pids=${{pids:+$pids,}}$!
}}
{starts}
for target in {names}; do read -r _ <&8; done
{luabpf} -v -F 1000 -o x.pb.gz -p $pids 2>said 8>&- 9>&- &
luabpf=$!
while read -r line; do
    echo "$line"
    case $line in *": sampling "*) exec 9>&- ;; esac
done <said
wait $luabpf || exit
echo "pids $pids"
base64 x.pb.gz
"""

# Two that come, each twice: an emulated processor looks into a new file for longer than a process lives.
COME = ("luajit-jon", "lua5.4")
SCRIPT_ALL = """
mkfifo said
start() {{
    "$@" {hot} $seconds </dev/null >/dev/null 2>&1 8<&- &
    pids=${{pids:+$pids,}}$!
}}
{luabpf} --all -v -F 1000 -o x.pb.gz 2>said &
luabpf=$!
exec 8<said
read -r line <&8
seconds=1e9
{starts}
seen=0
while [ $seen -lt 2 ] && read -r line <&8; do
    echo "$line"
    set -- $line
    case ",$pids," in *",${{3%:}},"*) seen=$((seen + 1)) ;; esac
done
kill $(echo $pids | tr , ' ')
pids='' seconds={seconds}
{starts}
for pid in $(echo $pids | tr , ' '); do wait $pid || exit; done
kill -INT $luabpf
cat <&8
wait $luabpf || exit
echo "pids $pids"
base64 x.pb.gz
"""


@vm.once
def record(kernel):
    return found_by(SCRIPT, TARGETS, kernel)


@vm.once
def record_all(kernel):
    return found_by(SCRIPT_ALL, COME, kernel)


def found_by(script, names, kernel):
    """{target: (Counter of functions, Counter of states)}; for longer until all have their samples."""
    # beside other tests a guest misses too many events for one second to do
    seconds, found = 1 if kernel == vm.RUNNING else 2, None
    while not found or min(map(of_both, found.values())) < SAMPLES:
        starts = "\n".join("start " + " ".join(map(str, TARGETS[name])) for name in names)
        r = vm.run(kernel, script.format(hot=HOT, seconds=seconds, starts=starts, luabpf=LUABPF,
                                         names=" ".join(names)), FILES)
        assert r.status == 0, r.output
        said, _, saved = r.output.partition("\npids ")
        pids, saved = saved.split("\n", 1)
        profile = pprof.Profile(io.BytesIO(base64.b64decode(saved)))
        found = {name: count(profile, int(pid)) for name, pid in zip(names, pids.split(","))}
        assert all(functions.total() for functions, _ in found.values()), said
        seconds *= 2
    return found


def count(profile, pid):
    functions, states = Counter(), Counter()
    for s in profile.samples:
        if int(s.labels["pid"]) == pid:
            functions[s.stack[-1].callname if s.stack else ""] += s.count
            states[s.labels["vmstate"]] += s.count
    return functions, states


def test_each_way_to_narrow_loads(kernel):
    r = vm.run(kernel, f"{LUABPF} --exe lua5.1 --comm lua5.1 --user 0 -q -d 0.1 -f folded", FILES)
    assert r.status == 0, r.output


@pytest.mark.parametrize("target", TARGETS)
def test_shares(kernel, target):
    check(target, *record(kernel)[target])


@pytest.mark.parametrize("target", COME)
def test_shares_of_all(kernel, target):
    check(target, *record_all(kernel)[target])


def of_both(counts):
    functions, _ = counts
    return functions["heavy"] + functions["light"]  # a VM's beginning is sampled, too, under --all


def check(target, functions, states):
    total = of_both((functions, states))
    assert 0.6 <= functions["heavy"] / total <= 0.8, functions
    assert 0.2 <= functions["light"] / total <= 0.4, functions
    # how much the warm-up and the JIT compiler take depends on the machine that emulates
    assert states.most_common(1)[0][0] == ("Compiled" if target == "luajit-jon" else "Interpreted"), states
