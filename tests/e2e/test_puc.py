# SPDX-License-Identifier: BSD-2-Clause
"""PUC Lua 5.1 to 5.4 by every way in and out: launch and attach, names, each report, short scripts."""
import collections
import re
import shlex
import shutil
from pathlib import Path

import pytest

import pprof
import truth
import vms

pytestmark = pytest.mark.usefixtures("root")
VERSIONS = ["5.1", "5.2", "5.3", "5.4"]
each = pytest.mark.parametrize("v", VERSIONS)
NAMES = vms.LUA / "names.lua"
WORK = vms.LUA / "strings.lua"
DRIVE = [vms.LUA / "driver.lua", WORK]


def script(tmp_path, text, name="x.lua"):
    path = tmp_path / name
    path.write_text(text)
    tmp_path.chmod(0o755)
    return path


# ---- names ----

class Named:
    """A run of names.lua: what the interpreter says each call is called, and the profile."""

    def __init__(self, tmp_path, v):
        saved = tmp_path / "p.pb.gz"
        self.calls = collections.defaultdict(set)
        self.tail = next(n for n, t in enumerate(NAMES.read_text().splitlines(), 1) if "function tailed" in t)
        with vms.Target([f"lua{v}", NAMES, 0.8]) as t:
            while (row := t.line()) != "ready":
                _, line, first, name = row.split(" ", 3)
                self.calls[int(line), int(first)].add(name)
            self.jitp = tmp_path / "jitp"
            tool = vms.Luabpf("-p", t.pid, "-F", 10000, "-o", saved, f"-jp=-2fm0,{self.jitp}").wait_banner()
            t.go()
            self.done = tool.done()
        assert self.done.code == 0, self.done
        self.profile = pprof.Profile(saved)

    def pairs(self):
        """(caller, whether tail calls are between, callee, count) of adjacent frames of the script."""
        for s in self.profile.samples:
            for i, f in enumerate(s.stack[:-1]):
                if f.kind == pprof.LUA and f.base == NAMES.name and f.start:
                    marked = s.stack[i + 1].name == truth.TAIL_CALLS
                    if not marked or i + 2 < len(s.stack):
                        yield f, marked, s.stack[i + 1 + marked], s.count


@pytest.fixture(scope="module", params=VERSIONS)
def named(request, root, tmp_path_factory):
    return Named(tmp_path_factory.mktemp("names"), request.param)


# What ldebug.c says of a call that has no name, of a key that is no string, and of names.lua's parameter.
NAMELESS = {"none", "?", "integer index", "param"}


def test_names_of_calls(named):
    """Each call has the name that the interpreter itself gives it, by debug.getinfo(); where that is none of a function, the
    function has its own."""
    seen, wrong = collections.Counter(), collections.Counter()
    for caller, marked, callee, n in named.pairs():
        key = caller.line, callee.start if callee.kind == pprof.LUA else -1
        want = named.calls.get(key)
        if marked:
            continue
        seen[key] += n
        shown = callee.callname.removeprefix("__")  # 5.4 leaves it away where it names metamethods
        own = {callee.name, callee.name.rsplit(".")[-1].removeprefix("__"), f"{NAMES.name}:{callee.start}"}
        if want and want <= NAMELESS and callee.kind == pprof.LUA:
            if shown not in own:
                wrong[f"line {caller.line}: {shown} for a call without a name"] += n
        elif not want or "none" not in want and shown not in {name.removeprefix("__") for name in want}:
            wrong[f"line {caller.line}: {shown}, {callee.name}: not {want}"] += n
    assert sum(wrong.values()) <= truth.allowed(named.profile.total), (wrong.most_common(9), named.done)
    unseen = {key: names for key, names in named.calls.items() if not seen[key] and "sethook" not in names}
    quick = {"gmatch", "tails", "lua_calls", "metamethods", "c_calls", "tailed"}
    assert not [names for names in unseen.values() if not names & quick], unseen


def test_tail_calls(named):
    """The function that a tail call entered, and only it, has the mark below it; and its name is not that of another."""
    marks, names = collections.Counter(), collections.Counter()
    for caller, marked, callee, n in named.pairs():
        marks[marked, callee.start == named.tail] += n
        if marked:
            names[callee.callname] += n
    assert marks[True, True] > 20, (marks, named.done)
    assert marks[True, False] + marks[False, True] <= truth.allowed(named.profile.total), marks
    # a CallInfo that is taken again holds the mark of its last call until the VM has set its status
    assert names.total() - names["tailed"] <= truth.allowed(named.profile.total), names


def test_names_of_c_functions(named):
    """C functions have the name that the loaded libraries give them, however they were called."""
    names = collections.Counter()
    for caller, _, callee, n in named.pairs():
        if callee.kind == pprof.C:
            names[caller.line, callee.name] += n
    lines = NAMES.read_text().splitlines()
    missing = {n for line in range(1, len(lines) + 1) if (m := re.search(r"do (rep|string\.rep|concat|table\.concat|gsub|"
               r"text:gsub|text:upper|find|sort)\(", lines[line - 1])) for n in [(line, m[1])]}
    full = {"rep": "string.rep", "concat": "table.concat", "gsub": "string.gsub", "text:gsub": "string.gsub",
            "text:upper": "string.upper", "find": "string.find", "sort": "table.sort"}
    assert len(missing) == 9
    wrong = 0
    for line, called in missing:
        got = collections.Counter({name: n for (at, name), n in names.items() if at == line})
        right = got.pop(full.get(called, called), 0)
        assert right > 10 * got.total(), (line, called, right, got)
        wrong += got.total()
    assert wrong <= truth.allowed(named.profile.total), names


def test_names_of_definitions(named):
    """Functions are called as they were defined, by whatever name they were called."""
    names = collections.defaultdict(collections.Counter)
    for s in named.profile.samples:
        for f in s.stack:
            if f.kind == pprof.LUA and f.base == NAMES.name:
                names[f.start][f.name] += s.count
    rows = NAMES.read_text().splitlines()
    for start, got in names.items():
        if m := re.match(r"(?:local )?function ([\w.:]+)", rows[start - 1]):
            assert {re.split("[.:]", n)[-1] for n in got} == {re.split("[.:]", m[1])[-1]}, (start, got)
        elif m := re.match(r"meta\.(\w+) = function", rows[start - 1]):
            assert {n.split(".")[-1] for n in got} == {m[1]}, (start, got)


def test_jitp_names(named):
    """jit.p's text has the names of the calls, where these are the functions' own."""
    text = named.jitp.read_text()
    for name in ("spin", "upvalue_work", "field_work", "method_work", "rep", "gsub"):
        assert re.search(rf"\b{name}\b", text), text


# ---- launch, attach, reports ----

@each
def test_launch(tmp_path, v):
    r = vms.luabpf("-F", 1000, "-jp", "--", f"lua{v}", *DRIVE, 0.4, "nowait")
    assert r.code == 0, r
    report = r.out[r.out.index("}\n") + 2:]  # after what the script printed
    assert re.match(r"\d+%  \S", report), r
    assert r.stats["resolved"] > r.least(400) and r.stats["lost"] <= truth.allowed(r.stats["samples"]), r


@each
def test_attach_and_leave(tmp_path, v):
    """Attached five times for a moment; the script never knows."""
    text = f"""
io.read()
local rounds, wrong = 0, 0
repeat
  local s = 0
  for i = 1, 7e5 do s = s + i % 7 end
  rounds = rounds + 1
  if s ~= 2100000 then wrong = wrong + 1 end
until rounds % 20 == 0 and io.open("{tmp_path}/enough")
print(wrong)"""
    with vms.Target([f"lua{v}", script(tmp_path, text)]) as t:
        t.go()
        for _ in range(5):
            r = vms.record(t, 0.03, "-F", 2000, "-jp=l")
            assert r.code == 0 and r.stats["samples"] > r.least(60), r
            assert re.search(r"\d+%  x\.lua:6$", r.out, re.M), r
        assert "TracerPid:\t0" in Path(f"/proc/{t.pid}/status").read_text()
        (tmp_path / "enough").touch()
        assert t.line() == "0"
        assert t.p.wait() == 0


@each
def test_short_script_has_its_names(tmp_path, v):
    """200 ms, and gone: names and lines came with the samples. Also its first function, which runs once, at once."""
    text = """
local function at_once() local x = 0 for i = 1, 2e6 do x = x + i % 7 end return x end
at_once()
local function later_a() local x = 0 for i = 1, 1e4 do x = x + i % 7 end return x end
local function later_b() local x = 0 for i = 1, 1e4 do x = x + i % 5 end return x end
local t = os.clock()
while os.clock() - t < 0.15 do
  later_a()
  later_b()
end
"""
    path = script(tmp_path, text)
    for n in range(8):
        saved = tmp_path / f"{n}.pb.gz"
        r = vms.luabpf("-F", 1000, "-o", saved, "--", f"lua{v}", path)
        assert r.code == 0, r
        profile = pprof.Profile(saved)
        names = {f.name for s in profile.samples for f in s.stack if f.kind == pprof.LUA}
        assert names == {f"{path}:0", "at_once", "later_a", "later_b"}, (n, names, r)
        lines = {(f.name, f.line) for s in profile.samples for f in s.stack
                 if f.kind == pprof.LUA and f.start and f.known}
        assert lines == {("at_once", 2), ("later_a", 4), ("later_b", 5)}, (n, lines)
        # the interpreter opens its libraries as it starts, about a millisecond after exec: when the first sample is due
        starting = [s for s in profile.samples if all(f.kind == pprof.C for f in s.stack)]
        named = {f.name for s in profile.samples if s not in starting for f in s.stack[1:] if f.kind == pprof.C}
        assert named <= {"os.clock"}, (n, named)
        opened = {f.name for s in starting for f in s.stack[1:]}
        assert all(name.startswith("luaopen_") for name in opened), (n, opened)
        assert sum(s.count for s in starting) <= 10, (n, starting)  # the end, too
        assert r.stats["lost"] <= 1, (n, r)
        assert r.stats["outside_lua"] < 0.1 * r.stats["samples"], (n, r)


@each
def test_script_that_dies(tmp_path, v):
    """Its own exit code, its own message, and the profile up to there."""
    path = script(tmp_path, "local x = 0 for i = 1, 1e7 do x = x + i % 7 end error('no more')")
    r = vms.luabpf("-F", 1000, "-jp=f", "--", f"lua{v}", path)
    assert r.code == 1 and "no more" in r.err and "x.lua:0" in r.out, r


def test_interpreters_in_a_shell(tmp_path):
    """All four versions at once and one after the other, with LuaJIT: each with its own names."""
    for v in [*VERSIONS, "jit"]:
        name = "work" + v.replace(".", "")
        script(tmp_path, f"local function {name}() local x = 0 for i = 1, 1e5 do x = x + i % 7 end end "
               f"local t = os.clock() while os.clock() - t < 0.2 do {name}() end", f"{name}.lua")
    command = f"cd {shlex.quote(str(tmp_path))}; lua5.1 work51.lua & lua5.2 work52.lua; wait; " \
              "luajit workjit.lua & lua5.3 work53.lua; wait; exec lua5.4 work54.lua"
    r = vms.luabpf("-F", 2000, "-o", tmp_path / "p.pb.gz", "--", "sh", "-c", command)
    assert r.code == 0, r
    counts, pids = collections.Counter(), collections.defaultdict(set)
    for s in pprof.Profile(tmp_path / "p.pb.gz").samples:
        files = {f.base for f in s.stack if f.kind == pprof.LUA}
        assert len(files) <= 1, s
        for f in files:
            names = {f.name for f in s.stack if f.kind == pprof.LUA and f.start}
            assert names <= {f.removesuffix(".lua")}, s
            counts[f] += s.count
            pids[f].add(s.labels["pid"])
    # 400 each; what comes before one is known is lost
    assert {reason for reason, n in r.stats["lost_by_reason"].items() if n} <= {"unrecognised"}, r
    assert len(counts) == 5 and min(counts.values()) + r.stats["lost"] > r.least(400), (counts, r)
    assert all(len(p) == 1 for p in pids.values()), pids


OPTIONS = ["", "f", "l", "3si4m1", "-2s", "vf", "fv", "vl", "lv", "fl", "p", "r", "a", "A", "G", "10m1", "v"]


@pytest.mark.parametrize("v,options", [(VERSIONS[i % 4], o) for i, o in enumerate(OPTIONS)])
def test_report_is_the_live_text(tmp_path, v, options):
    """Each option's text, live and from the saved profile, is the same."""
    saved, text = tmp_path / "x.pb.gz", tmp_path / "live.txt"
    interval = [] if "i" in options else ["-F", 1000]
    r = vms.luabpf(*interval, "-o", saved, f"-jp={options},{text}", "--", f"lua{v}", *DRIVE, 0.15, "nowait")
    assert r.code == 0, r
    assert text.read_text().strip(), r
    assert vms.luabpf("report", saved, f"-jp={options}", stats=False).out == text.read_text()


@pytest.fixture(scope="module", params=VERSIONS)
def saved(request, root, tmp_path_factory):
    tmp = tmp_path_factory.mktemp("saved")
    r = vms.luabpf("-F", 2000, "-o", tmp / "x.pb.gz", "--", f"lua{request.param}", *DRIVE, 0.6, "nowait")
    assert r.code == 0, r
    return tmp / "x.pb.gz", r, request.param


def report(saved, *options):
    r = vms.luabpf("report", saved[0], *options, stats=False)
    assert r.code == 0, r
    return r.out


def test_views(saved):
    """vl: states, below each the lines; no state that PUC Lua does not have."""
    text = report(saved, "-jp=vlm0")
    states = re.findall(r"^ *\d+%  (\w[\w ]*)$", text, re.M)
    assert set(states) <= {"Interpreted", "C code", "Garbage Collector"} and len(states) == 3, text
    assert "-- " in text or "  " in text
    assert len(set(re.findall(r"strings\.lua:(\d+)$", text, re.M))) > 5, text


def test_folded(saved):
    text = report(saved, "-f", "folded")
    rows = [line.rsplit(" ", 1) for line in text.splitlines()]
    assert sum(int(n) for _, n in rows) == saved[1].stats["resolved"]
    # the chunk that defines them has run before, and they are called through a parameter: they have no names
    assert any(re.search(r";run \(\S+/driver\.lua:\d+\);/\S+/strings\.lua:\d+;string\.format$", stack) for stack, _ in rows), text
    assert any(re.search(r"/strings\.lua:\d+;string\.gsub;/\S+/strings\.lua:\d+(;|$)", stack) for stack, _ in rows), text


TABLE = """
local fs = {}
for i = 1, 8 do
  fs[i] = load("local n = ... local x = 0 for i = 1, n do x = x + i % 7 end return x", "@mods/" .. i .. ".lua")
end
for i = 9, 12 do
  fs[i] = load("local function g(n) local x = 0\\n for i = 1, n do x = x + i % 7 end return x end local n = ... g(n)\\n-- " .. i)
end
for _ = 1, 1200 do
  for i = 1, #fs do fs[i](4000) end
end
"""


@pytest.mark.parametrize("v", ["luajit", *VERSIONS])
def test_functions_without_a_name_and_of_one_name(tmp_path, v):
    """fs[i](n) has no name at its call, and each of some chunks has a g: definitions distinguish them."""
    saved = tmp_path / "x.pb.gz"
    vm = ["luajit", "-joff", "-e", "load = loadstring"] if v == "luajit" else [f"lua{v}"] + ["-e", "load = loadstring or load"]
    r = vms.luabpf("-F", 1000, "-o", saved, "--", *vm, script(tmp_path, TABLE))
    assert r.code == 0, r
    leaves, names = collections.Counter(), collections.Counter()
    for line in vms.luabpf("report", saved, "-f", "folded", stats=False).out.splitlines():
        stack, count = line.rsplit(" ", 1)
        assert "?" not in stack.split(";"), line
        leaves[stack.rsplit(";", 1)[-1]] += int(count)
    assert {f"mods/{i}.lua:0" for i in range(1, 9)} <= set(leaves), leaves
    assert sum(re.fullmatch(r'g \(\[string "local function g\(n\) local x = 0\.\.\." [0-9a-f]{8}\]:1\)', leaf) is not None
               for leaf in leaves) == 4, leaves
    for s in pprof.Profile(saved).samples:
        names[s.stack[-1].name] += s.count
    assert "?" not in names and {f"mods/{i}.lua:0" for i in range(1, 9)} <= set(names), names


def test_annotated_source(saved):
    """A: the lines of the file, with their share in front of those that have one."""
    text = report(saved, "-jp=Am0")
    lines = WORK.read_text().splitlines()
    assert "strings.lua" in text
    for wanted in ("--= format", "--= rep", "--= concat"):
        source = next(t for t in lines if wanted in t)
        row = next((t for t in text.splitlines() if t.endswith(source)), None)
        assert row and re.match(r" *\d+% \| ", row), (wanted, text)


def test_process_labels(saved):
    profile = pprof.Profile(saved[0])
    assert profile.total == saved[1].stats["resolved"]
    for s in profile.samples:
        assert s.labels["comm"] == f"lua{saved[2]}" and s.labels["pid"] == s.labels["tid"] != 0


def test_sleeping_interpreter(tmp_path):
    with vms.Target(["lua5.4", script(tmp_path, "print('ready') io.stdout:flush() io.read()")]) as t:
        t.ready().sleeps()
        r = vms.luabpf("-p", t.pid, "-F", 1000, "-d", 0.1)
    assert r.code == 0 and r.stats["samples"] == 0 and "no samples" in r.err, r


@each
def test_endless_recursion(tmp_path, v):
    """A stack overflow: deep stacks that are cut, an error, no crash."""
    path = script(tmp_path, "local function down(n) local r = down(n + 1) return r end "
                  "for i = 1, 3 do print(pcall(down, 1) and 'no' or 'overflow') end")
    r = vms.luabpf("-F", 4000, "-o", tmp_path / "p.pb.gz", "--", f"lua{v}", path)
    assert r.code == 0 and r.out.split() == ["overflow"] * 3, r
    for s in pprof.Profile(tmp_path / "p.pb.gz").samples:
        assert len(s.stack) <= 128
        assert {f.name for f in s.stack if f.kind == pprof.LUA} <= {f"{path}:0", f"{path}:1", "down"}, s


# ---- a program that exports nothing and has no lua_ident, as linkers leave it that drop what nothing refers to ----

@pytest.mark.parametrize("v,source", [("5.2", "its banner"), ("5.4", "its banner"), ("5.1", "_VERSION"), ("5.2", "_VERSION")])
def test_without_names(v, source, tmp_path):
    """Functions, lines, shares and the collector's share are as right as with names. Some 5000 samples: shares are held to
    five standard deviations, counts to what chance exceeds once in a million (truth.py). A host's own program has no banner of
    lua.c: those of 5.1 and 5.2 were refused."""
    interpreter = tmp_path / "host"
    text = Path(shutil.which(f"lua{v}")).read_bytes()
    assert re.search(rb"\$Lua(Version)?: Lua ", text) and text.count(b"lua_") > 50
    text = re.sub(rb"\$Lua((Version)?: Lua )", rb"$xua\1", text).replace(b"lua_", b"xua_")
    if source == "_VERSION":
        text = re.sub(rb"(Lua 5\.\d\.\d +)Copyright", rb"\1Xopyright", text)
    interpreter.write_bytes(text)
    interpreter.chmod(0o755)
    r = truth.run(vms.VM(f"lua{v}", [interpreter], puc=v), "gc", 0.5, 10000, "-v")
    print(r.summary())
    assert r.lost + sum(r.wrong.values()) + sum(r.unknown.values()) <= truth.allowed(r.in_lua, 0.003), r.wrong
    assert not [(name, p, q, b) for name, p, q, b in r.shares() if abs(p - q) > b], r.summary()
    samples = truth.collector_samples(r)
    share = {name: n / of for name, (n, of) in samples.items()}
    # the bounds of test_truth.py
    assert share["full"] > 0.9 and share["collects"] > 0.65, samples
    assert samples["stopped"][0] <= truth.allowed(samples["stopped"][1], 0.06), samples
    assert f"{source} says {v}" in r.done.err, r.done.err


FIELD = """
local compile = loadstring or load
local o = { log = compile("local x = 0 for i = 1, 2e5 do x = x + i % 7 end return x", "=anon") }
local function same(o, log) return (o.log(log)) end
local t = os.clock()
while os.clock() - t < 0.2 do same(o, 1) end
"""


@pytest.mark.parametrize("v", ["luajit", *VERSIONS])
def test_a_field_with_the_name_of_a_parameter(tmp_path, v):
    """A call by a parameter's name says nothing of the function; by a field of that name it does."""
    vm = ["luajit", "-joff"] if v == "luajit" else [f"lua{v}"]
    r = vms.luabpf("-F", 2000, "-jp=f", "--", *vm, script(tmp_path, FIELD))
    assert r.code == 0 and re.search(r"^ *\d+%  log$", r.out, re.M) and "anon" not in r.out, r
