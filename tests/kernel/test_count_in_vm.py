# SPDX-License-Identifier: BSD-2-Clause
"""luabpf count -p on each kernel, against programs that count for themselves: before Linux 6.6 each probe is an event of its
own, since then many are of one link."""
import pytest

import vm

LUABPF = vm.needs(vm.O / "luabpf")
COUNTED = vm.needs(vm.HERE.parent / "e2e/lua/counted.lua")
TARGETS = {"luajit-joff": "/usr/bin/luajit -joff", **{f"lua{v}": f"/usr/bin/lua{v}" for v in ("5.1", "5.2", "5.3", "5.4")}}
FILES = [LUABPF, COUNTED, *(vm.needs(argv.split()[0]) for argv in TARGETS.values())]
NAMES = ("leaf", "tail", "vararg", "deep", "few", "fails", "once")

SCRIPT = """
mkfifo go said
exec 9<>go
{argv} {counted} 50 <go >own 9>&- &
target=$!
until grep -q ready own; do sleep 0.1; done
{luabpf} count -p $target --max-slowdown 1000 >counts 2>said 9>&- &
luabpf=$!
exec 8<said
read -r line <&8
echo "$line"
echo go >&9
until grep -q '^end' own; do sleep 0.1; done
kill -INT $luabpf
cat <&8
wait $luabpf || exit
echo go >&9
wait $target || exit
echo "own counts"
cat own
echo "report"
cat counts
"""


@pytest.mark.parametrize("target", TARGETS)
def test_counts(kernel, target):
    r = vm.run(kernel, SCRIPT.format(argv=TARGETS[target], counted=COUNTED, luabpf=LUABPF), FILES)
    assert r.status == 0, r.output
    said, _, rest = r.output.partition("own counts\n")
    own, _, report = rest.partition("report\n")
    want = {line.split()[0]: int(line.split()[1]) for line in own.splitlines() if " " in line}
    got = {line.split()[2]: int(line.split()[0]) for line in report.splitlines()[1:]}
    assert {name: got.get(name) for name in NAMES} == {name: want[name] for name in NAMES}, r.output
    assert " functions, exact" in said, r.output
