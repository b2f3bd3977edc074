# SPDX-License-Identifier: BSD-2-Clause
"""A function is its prototype: functions that no name at a call belongs to have rows and names of their own."""
import collections
import re
import subprocess

import pytest

import laps
import pprof
import vms

SCRIPT = vms.LUA / "functions.lua"
# At 10 kHz an interrupt takes as long as the period in some virtual machines.
HZ = 4000
ALL = ["luajit-joff", "luajit-jon", "lua5.1", "lua5.2", "lua5.3", "lua5.4"]
LINES = SCRIPT.read_text().splitlines()
HANDLERS = [n for n, line in enumerate(LINES, 1) if line.startswith("  function(n)")]
# names that the text may have; all others would be of none or of another function
OWN = {m[1] for line in LINES if (m := re.match(r"(?:local )?function (\w+)", line))}
FOLDED = re.compile(r"^$|\s[\d.]+$|[\x00-\x1f]")


@pytest.mark.parametrize("vm", ALL)
def test_functions(tmp_path, vm):
    vm, saved, text, script = vms.VMS[vm], tmp_path / "p.pb.gz", tmp_path / "text", tmp_path / SCRIPT.name
    script.write_text(laps.LUA + SCRIPT.read_text())
    r = vms.luabpf("-F", HZ, "-o", saved, f"-jp=fm0r,{text}", "--", *vm.argv, script, 1, env=vm.env)
    assert r.code == 0, r
    rows = {m[2]: int(m[1]) for m in re.finditer(r"^ *(\d+)  (.*)$", text.read_text(), re.M)}
    spent, states = laps.spent(r.err), ("first", "second", "third", "fourth")
    laps.check([rows.get(f"functions.lua:{n}", 0) for n in HANDLERS], [spent[str(k)] for k in range(1, 5)], r, rows)
    laps.check([rows.get(n, 0) for n in states], [spent[n] for n in states], r, rows)
    laps.check([sum(n for name, n in rows.items() if re.match(rf'\[string "-- template {k}; no 12\.\.\." [0-9a-f]{{8}}\]:0$', name))
                for k in range(1, 5)], [spent[f"text{k}"] for k in range(1, 5)], r, rows)
    assert rows.get("on_line", 0) > 50 and rows.get("collected", 0) > 50, rows

    names, starts = collections.defaultdict(set), collections.defaultdict(set)
    for s in pprof.Profile(saved).samples:
        for f in s.stack:
            if f.kind == pprof.LUA and f.file.endswith(SCRIPT.name) and f.start > 1:  # laps.LUA is on the first line
                names[f.start].add((f.name, f.shown))
                starts[f.name].add(f.start)
    for start, shown in names.items():
        m = re.match(r"(?:local )?function (\w+)", LINES[start - 1])
        want = {(m[1], m[1])} if m else {(f"{script}:{start}", f"functions.lua:{start}")}
        assert shown == want, (start, shown)
    assert all(len(s) == 1 for s in starts.values()), starts

    for options in (["-jp=G"], ["-f", "folded"]):
        total = 0
        for line in vms.luabpf("report", saved, *options, stats=False).out.splitlines():
            stack, count = line.rsplit(" ", 1)
            total += int(count)
            frames = stack.split(";")
            assert not any(FOLDED.search(f) or f.startswith("@0x") for f in frames), line
        assert total == r.stats["resolved"], (options, r)


STRIPPED = laps.LUA + """
function sd_global(n) local a = 0 for i = 1, n do a = a + i % 7 end return a end
local O = {} O.__index = O
function O:sd_method(n) local a = 0 for i = 1, n do a = a + i % 7 end return a end
local function sd_local(n) local a = 0 for i = 1, n do a = a + i % 7 end return a end
local T = { function(n) local a = 0 for i = 1, n do a = a + i % 7 end return a end }
local o, clock = setmetatable({}, O), os.clock
local function drive()
  lap() local x = sd_global(8000) lap(1) x = x + o:sd_method(6000) lap(2) x = x + sd_local(4000) lap(3) x = x + T[1](2000) lap(4) return x
end
local stop = clock() + 0.5
while clock() < stop do drive() end
laps()
"""


@pytest.mark.parametrize("vm", ALL)
def test_stripped(tmp_path, vm):
    source, code, text = tmp_path / "sd.lua", tmp_path / "sd.lj", tmp_path / "text"
    source.write_text(STRIPPED)
    name, vm = vm, vms.VMS[vm]
    strip = [vm.argv[0], "-bs", source, code] if "luajit" in name else [f"luac{name[3:]}", "-s", "-o", code, source]
    subprocess.run([str(x) for x in strip], check=True, env=vms.clean_env(vm.env))
    saved = tmp_path / "p.pb.gz"
    r = vms.luabpf("-F", HZ, "-o", saved, f"-jp=fm0r,{text}", "--", *vm.argv, code, env=vm.env)
    assert r.code == 0, r
    rows = {m[2]: int(m[1]) for m in re.finditer(r"^ *(\d+)  (.*)$", text.read_text(), re.M)}
    rest = ["sd.lj:0#5", "sd.lj:0#6"] if "luajit" in name else [r"\?:5#~[0-9a-f]{8}", r"\?:6#~[0-9a-f]{8}"]
    spent = laps.spent(r.err)
    laps.check([sum(n for row, n in rows.items() if re.fullmatch(want, row)) for want in ("sd_global", "sd_method", *rest)],
               [spent[str(k)] for k in range(1, 5)], r, rows)
    functions = {f.name for s in pprof.Profile(saved).samples for f in s.stack if f.kind == pprof.LUA}
    assert not any(not n or n.count("__index") for n in functions), functions


@pytest.mark.parametrize("vm", ["luajit-joff", "lua5.4"])
def test_deep_stacks_have_their_root_or_say_so(tmp_path, vm):
    """Stacks of 95 to 130 frames, and of fewer: each begins with the interpreter's C function, or with [cut]."""
    vm, script = vms.VMS[vm], tmp_path / "deep.lua"
    script.write_text("local function spin(n) local a = 0 for i = 1, n do a = a + i % 7 end return a end\n"
                      "local function down(n) if n == 0 then return (spin(20000)) end return 1 + down(n - 1) end\n"
                      "local stop = os.clock() + 0.4\n"
                      "while os.clock() < stop do for depth = 93, 130 do down(depth) end end\n")
    saved = tmp_path / "p.pb.gz"
    r = vms.luabpf("-F", 5000, "-o", saved, "--", *vm.argv, script, env=vm.env)
    assert r.code == 0, r
    depths, roots = set(), set()
    for options in (["-jp=G"], ["-f", "folded"]):
        for line in vms.luabpf("report", saved, *options, stats=False).out.splitlines():
            frames = line.rsplit(" ", 1)[0].split(";")
            if "down" not in line:
                continue
            depths.add(len(frames))
            roots.add(re.sub("0x[0-9a-f]+", "0x", frames[0]))
            assert frames[0] == "[cut]" or frames[1:2] in ([], [f"{script}:0"], ["deep.lua:0"]), line
    assert {98, 99, 100, 101} <= depths, depths
    assert len(roots) == 2 and re.fullmatch(r"\S+\+0x", (roots - {"[cut]"}).pop()), roots


def test_runs_can_be_compared(tmp_path):
    """The frames of two runs, each with children of its own, are the same: no address of a process."""
    frames = []
    for _ in range(2):
        r = vms.luabpf("-F", 1000, "-f", "folded", "--", "luajit", "-e",
                       "for i = 1, 2 do os.execute(\"luajit -e 'local c = os.clock() while os.clock() - c < 0.2 do end'\") end")
        assert r.code == 0, r
        frames.append({line.split(";")[0] for line in r.out.splitlines() if re.search(r" \d+$", line) and ";" in line}
                      - {"[unknown]"})  # of a child that ended before luabpf looked at it
    assert frames[0] == frames[1] and len(frames[0]) == 1, frames
    assert re.fullmatch(r"luajit\S*\+0x[0-9a-f]+", frames[0].pop()), frames


NESTED = """
local function spin(n) local a = 0 for i = 1, n do a = a + i % 7 end return a end
local M, clock, tb = {}, os.clock, string.rep
function M.inco() local co = coroutine.wrap(function() spin(20000, 15000, tb, tb) end) co() end
function M.inpc() local r = pcall(function() spin(20000, 15000, tb, tb) end) return r end
local stop = clock() + 0.6
while clock() < stop do M.inco() M.inpc() end
"""


@pytest.mark.parametrize("vm", ALL)
def test_a_function_without_a_name_does_not_get_that_of_the_one_around_it(tmp_path, vm):
    """Both begin on one line, and in some VM they have the same sizes."""
    script, saved, vm = tmp_path / "nested.lua", tmp_path / "p.pb.gz", vms.VMS[vm]
    script.write_text(NESTED)
    r = vms.luabpf("-F", 5000, "-o", saved, "--", *vm.argv, script, env=vm.env)
    assert r.code == 0, r
    inner = collections.Counter()
    for s in pprof.Profile(saved).samples:
        names = [f.name for f in s.stack if f.kind == pprof.LUA]
        for outer in {"M.inco", "M.inpc"} & set(names):
            assert names.count(outer) == 1, names
            if "spin" in names:
                inner[outer] += s.count
    assert len(inner) == 2 and min(inner.values()) > 50 * (1 - r.missing), inner


SPIN = "function(n) local a = 0 for i = 1, n do a = a + i % 7 end return a end"
ONE_LINE = laps.LUA + f"""
local clock, M = os.clock, {{}}
local load = loadstring or load
M.a = {SPIN} M.b = {SPIN} local H = {{ {SPIN}, {SPIN}, function(n, m) local a = 0 for i = 1, n do a = a + i % 7 + 1 end return a end }}
local module = assert(load("return {{ " .. ("{SPIN}, "):rep(4) .. "}}", "@module.lua"))()
collectgarbage() collectgarbage() -- no more is the chunk that the module's functions are from
local stop = clock() + 0.8
while clock() < stop do
  local r = M.a(8000) r = M.b(6000) lap() r = H[1](8000) lap("H1") r = H[2](6000) lap("H2") r = H[3](3000) lap("H3")
  for k = 1, 4 do r = module[k]((5 - k) * 2000) lap(k) end
end
laps()
"""


@pytest.mark.parametrize("vm", ALL)
def test_functions_of_one_line(tmp_path, vm):
    """Each is a function of its own in all formats: by its name, or the line and a number, the order in which they are written."""
    script, saved, text, vm = tmp_path / "line.lua", tmp_path / "p.pb.gz", tmp_path / "text", vms.VMS[vm]
    script.write_text(ONE_LINE)
    r = vms.luabpf("-F", HZ, "-o", saved, f"-jp=fm0r,{text}", "--", *vm.argv, script, env=vm.env)
    assert r.code == 0, r
    rows = {m[2]: int(m[1]) for m in re.finditer(r"^ *(\d+)  (.*)$", text.read_text(), re.M)}
    folded = collections.Counter()
    for line in vms.luabpf("report", saved, "-f", "folded", stats=False).out.splitlines():
        stack, count = line.rsplit(" ", 1)
        folded[stack.split(";")[-1]] += int(count)
    functions = collections.Counter()
    for s in pprof.Profile(saved).samples:
        functions[s.stack[-1].name] += s.count
    spent, module = laps.spent(r.err), ["module.lua:1", *(f"module.lua:1#{n}" for n in (2, 3, 4))]
    for counts, line in (rows, "line.lua:4"), (folded, f"{script}:4"), (functions, f"{script}:4"):
        laps.check([counts[n] for n in module], [spent[str(k)] for k in range(1, 5)], r, counts)
        laps.check([counts[f"{line}#{k}"] for k in (3, 4, 5)], [spent[f"H{k}"] for k in (1, 2, 3)], r, counts)
    assert set(rows) >= {"a", "b"} and set(functions) >= {"M.a", "M.b"}, (rows, functions)
    assert set(folded) >= {f"M.a ({script}:4)", f"M.b ({script}:4#2)"}, folded


# Two functions that agree in all but a constant.
ALIKE = "{ function(n) local s = 0 for i = 1, n do s = s + i % 7 end return s end, function(n) local s = 0 for i = 1, n do s = s + i % 5 end return s end }"
CHILD = laps.LUA + """
local M = dofile(arg[1])
for i = 1, 25 do lap() M[1](3000) lap(1) M[2](9000) lap(2) end
laps()
"""


def check_alike(text, r):
    """Two rows, by their numbers on the line; by hashes if no prototype was read in time. The second one takes three times as
    long."""
    rows = {m[2]: int(m[1]) for m in re.finditer(r"^ *(\d+)  (.*)$", text.read_text(), re.M)}
    took = collections.Counter()
    for name, seconds in re.findall(r"^lap (\d) ([\d.]+)$", r.err, re.M):
        took[name] += float(seconds)
    alike = sorted((n, name) for name, n in rows.items() if "alike.lua:1" in name)
    assert len(alike) == 2 and not alike[0][1].endswith("#2"), rows
    laps.check([n for n, _ in alike], [took["1"], took["2"]], r, rows)


@pytest.mark.parametrize("vm", ["lua5.1", "lua5.4", "luajit-jon"])
def test_functions_of_one_line_in_short_processes(tmp_path, vm):
    """200 processes of some milliseconds: most have ended when their prototypes are read, and with them the list that says which
    is the first. Up to a half of the second one's time was the first one's."""
    module, child, text, vm = tmp_path / "alike.lua", tmp_path / "child.lua", tmp_path / "text", vms.VMS[vm]
    module.write_text("return " + ALIKE)
    child.write_text(CHILD)
    r = vms.luabpf("-F", 2000, f"-jp=fm0r,{text}", "--", "sh", "-c", 'for i in $(seq 200); do "$@"; done', "sh", *vm.argv, child, module,
                   env=vm.env)
    assert r.code == 0, r
    check_alike(text, r)


@pytest.mark.parametrize("vm", [*ALL, "luajit2-joff"])
def test_functions_of_one_line_that_are_loaded_again(tmp_path, luajit2, vm):
    """And again, over the memory of those before: a function is its contents, whatever was at its address. In five of these VMs
    the first one had the time of the second, or of both."""
    script, text, vm = tmp_path / "again.lua", tmp_path / "text", vms.VMS[vm]
    script.write_text(laps.LUA + f"""
local load, clock, k, M = loadstring or load, os.clock, 0
local stop = clock() + 0.8
while clock() < stop do
  if k % 100 == 0 then
    M = assert(load("return {ALIKE}", "@alike.lua"))()
    collectgarbage()
  end
  k = k + 1 lap() M[1](3000) lap(1) M[2](9000) lap(2)
end
laps()
""")
    r = vms.luabpf("-F", 2000, f"-jp=fm0r,{text}", "--", *vm.argv, script, env=vm.env)
    assert r.code == 0, r
    check_alike(text, r)


MODULE = "local t = { SPIN, SPIN } local M = { spin = t } function M.NAME(k, n) local r = M.spin[k](n) return r end return M"
MODULES = laps.LUA + f"""
local load, clock = loadstring or load, os.clock
local function module(name, spin)
  local source = ("{MODULE}"):gsub("NAME", name):gsub("SPIN", function() return spin end)
  if _VERSION == "Lua 5.1" and not jit or _VERSION == "Lua 5.2" then -- string.dump() does not strip
    local f = assert(io.open(arg[0] .. name, "w")) f:write(source) f:close()
    os.execute("luac" .. _VERSION:sub(5) .. " -s -o " .. arg[0] .. name .. "c " .. arg[0] .. name)
    return assert(loadfile(arg[0] .. name .. "c"))()
  end
  return assert(load(string.dump(assert(load(source)), true), "@" .. name .. ".lua"))()
end
local a, b = module("go", "{SPIN}"), module("stop", "{SPIN}")
local c = module("other", "{SPIN.replace("a = 0", "a = 5")}")
if COLLECT then collectgarbage() collectgarbage() end
local stop, r = clock() + 0.4, 1
while clock() < stop do
  r = r * 16807 % 2147483647
  local n = 1000 + r % 2000 -- never the same: a round may take as long as the timer's period
  lap() a.go(1, 4 * n) lap("go1") a.go(2, 3 * n) lap("go2") b.stop(1, 2 * n) lap("stop1") b.stop(2, n) lap("stop2") c.other(1, n)
end
laps() io.stderr:write("over\\n") io.read() -- so that its names can be read, however late luabpf is
"""


@pytest.mark.parametrize("collect", ["true", "false"])
@pytest.mark.parametrize("vm", ALL)
def test_stripped_modules(tmp_path, vm, collect):
    """Functions of the same text in one module and in two, of which PUC Lua has no names, whether the modules' chunks are still
    there or not; the names are the same in each run."""
    script, vm = tmp_path / "modules.lua", vms.VMS[vm]
    script.write_text(MODULES.replace("COLLECT", collect))
    seen = []
    for n in range(2):
        saved = tmp_path / f"{n}.pb.gz"
        tool = vms.Luabpf("-F", HZ, "-o", saved, "--", *vm.argv, script, env=vm.env, stdin=subprocess.PIPE)
        r = tool.wait_for("^over").wait_rounds().done()
        assert r.code == 0, r
        tops = collections.Counter()
        for s in pprof.Profile(saved).samples:
            if len(s.stack) > 2 and s.stack[-1].kind == pprof.LUA and s.stack[-1].name != "lap":
                tops[s.stack[-1].name] += s.count
        tops = collections.Counter({name: n for name, n in tops.items() if n > 0.04 * sum(tops.values())})
        assert all(re.fullmatch(r"(\w+\.lua:0|\?:1)#~[0-9a-f]{8}(\.\d)?", name) for name in tops), tops
        hashes = collections.Counter(name.split("~")[1][:8] for name in tops)
        assert sorted(hashes.values()) == [1, 4], (hashes, tops)
        same = hashes.most_common(1)[0][0]
        spent = laps.spent(r.err)
        laps.check([n for name, n in sorted(tops.items()) if same in name], [spent[k] for k in ("go1", "go2", "stop1", "stop2")], r, tops)
        seen.append(set(tops))
    assert seen[0] == seen[1], seen
