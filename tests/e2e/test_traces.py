# SPDX-License-Identifier: BSD-2-Clause
"""luabpf traces, beside what jit.util and the compiler's events say inside the same program (lua/traces.lua)."""
import json
import math
import re
import subprocess

import pytest

import vms

SCRIPT = vms.LUA / "traces.lua"
VMS = ["luajit-jon", "luajit2-jon"]


def traces(*args, env=None):
    r = vms.luabpf("traces", *args, stats=False, env=env)
    assert r.code == 0, r
    return r


def one_vm(*args, env=None):
    vm, = json.loads(traces("--json", *args, env=env).out)
    return vm


class Inside:
    """What the program says of itself."""

    def __init__(self, target):
        self.traces, self.aborts, self.reasons = {}, {}, []
        while (line := target.line()) != "ready":
            what, _, rest = line.partition(" ")
            if what == "trace":
                no, link, to, nins, nk, nexit, size, mcode, parent, exitno, *start = rest.split(" ")
                self.traces[int(no)] = {
                    "linktype": link, "link": int(to) or None, "ir": int(nins), "constants": int(nk),
                    "snapshots": int(nexit), "mcode_size": int(size), "mcode": f"0x{mcode}",
                    "parent": int(parent) or int(exitno) or None, "parent_exit": int(exitno) if int(parent) else None,
                    "start": self.place(" ".join(start))}
            elif what == "abort":
                start, number, text, op, at = rest.split("|")
                self.aborts[self.place(start)] = int(number), text, op.strip(), self.place(at)
            else:
                assert what == "reason", line
                self.reasons.append(rest)

    @staticmethod
    def place(text):
        loc, line, function, bytecode = text.split(" ")
        return loc, int(line), int(function), int(bytecode)


def place(at):
    return at["loc"], at["line"], at["function_line"], at["bytecode"]


@pytest.fixture(scope="module", params=VMS)
def both(root, request):
    """The program's words, and luabpf's as JSON and as text, while it waits."""
    vms.fetch_luajit2()
    vm = vms.VMS[request.param]
    with vms.Target([*vm.argv, SCRIPT], env=vm.env) as target:
        inside = Inside(target)
        return inside, one_vm("-p", target.pid), traces("-p", target.pid).out


def test_traces_agree_with_jit_util(both):
    inside, vm, _ = both
    assert len(inside.traces) > 20 and vm["unread_traces"] == 0
    assert sorted(t["trace"] for t in vm["traces"]) == sorted(inside.traces)
    for t in vm["traces"]:
        want = inside.traces[t["trace"]]
        assert not t["flushed"]
        assert {**{k: t[k] for k in want}, "start": place(t["start"])} == want, t["trace"]
        assert t["type"] == ("side" if want["parent_exit"] is not None else "stitched" if want["parent"] else "root")
        assert any(line["from"] <= want["start"][1] <= line["to"] for line in t["lines"])
    kinds = {t["linktype"] for t in vm["traces"]}
    assert {"loop", "root", "stitch", "interpreter"} <= kinds and kinds & {"up-recursion", "down-recursion"}, kinds


def test_side_traces_are_where_exits_lead(both):
    """An exit with a side trace has no count any more: the VM has set it to 255."""
    _, vm, _ = both
    by_no = {t["trace"]: t for t in vm["traces"]}
    for t in vm["traces"]:
        if t["type"] == "side":
            exits = {e["exit"]: e["count"] for e in by_no[t["parent"]]["exits"]}
            assert exits[t["parent_exit"]] is None


def test_a_loop_covers_its_lines_and_what_it_inlines(both):
    _, vm, _ = both
    loop = next(t for t in vm["traces"] if t["type"] == "root" and t["start"]["line"] == 12)
    own, leaf = ((line["from"], line["to"]) for line in loop["lines"])
    assert 12 <= own[0] and own[1] <= 18 and leaf == (6, 7), loop["lines"]
    assert loop["bytecodes"] >= 10


def test_aborted_starts_agree_with_the_compilers_events(both):
    inside, vm, _ = both
    assert vm["penalties_known"] and vm["functions_complete"] and vm["unread_starts"] == 0
    got = {place(s["start"]): s for s in vm["not_compiled"] if s["reason"]}
    assert sorted(got) == sorted(inside.aborts)
    for start, (number, text, op, at) in inside.aborts.items():
        s = got[start]
        assert s["reason_number"] == number
        assert s["state"] == ("blacklisted" if op.startswith("I") else "penalised")
        named = re.match(r"NYI: bytecode", text)
        assert s["reason"].startswith("NYI: bytecode") if named else s["reason"] == text
        if s["cause"]:
            assert place(s["cause"]) == at
    assert {s["state"] for s in got.values()} >= {"blacklisted"}
    assert any(s["state"] == "jit.off" and s["start"]["function_line"] == 69 for s in vm["not_compiled"])


def test_the_text_has_a_line_for_each(both):
    inside, vm, text = both
    head, *_ = text.splitlines()
    assert re.match(rf"pid {vm['pid']} \(.*traces\.lua\): LuaJIT 2\.1", head)
    for no, want in inside.traces.items():
        row, = re.findall(rf"(?m)^ +{no}(?: \(.*?\))? .*$", text)
        assert want["start"][0] in row and f" {want['mcode_size']}" in row
    assert re.search(r"(?m)^  traces\.lua:26-27 loop +NYI: bytecode.* blacklisted$", text) or "traces.lua:2" in text
    assert "Why code is not compiled:" in text


# Two loops, each for as long as it takes to use the time of its turn; the second has an instruction that is not compiled.
SPLIT = """
local clock = os.clock
local function compiled(n) local s = 0 for i = 1, n do s = s + i % 7 end return s end
local function interpreted(n)
  local s, f = 0
  for i = 1, n do
    f = function() return i end
    s = s + i % 7
  end
  return s
end
local t1, t2, e = 0, 0, clock() + tonumber(arg[1])
collectgarbage('stop')
while clock() < e do
  local a = clock()
  compiled(400000)
  local b = clock()
  interpreted(20000)
  t1, t2 = t1 + b - a, t2 + clock() - b
  collectgarbage()
  collectgarbage('stop')
end
io.stderr:write(('split %.6f %.6f\\n'):format(t1, t2))
os.exit(7)
"""


def test_shares_of_time(root, tmp_path):
    """The shares of two loops are those of the time that they took. Each bound is five standard deviations (a false alarm
    in 1.7 million), 3 % of the samples for what the program's clock counts and samples do not, and what the timer missed."""
    (tmp_path / "split.lua").write_text(SPLIT)
    r = vms.luabpf("traces", "-F", 1000, "--json", "--", "luajit", tmp_path / "split.lua", 2, stats=False)
    assert r.code == 7, r
    vm, = json.loads(r.out)
    took = [float(t) for t in re.search(r"split ([\d.]+) ([\d.]+)", r.err).groups()]
    shares, n = vm["shares"], vm["shares"]["compiled"] + vm["shares"]["interpreted"]
    traced = [t for t in vm["traces"] if t["start"]["function_line"] == 3]
    loop, = (s for s in vm["not_compiled"] if s["kind"] == "loop" and s["start"]["function_line"] == 4)
    assert sum(t["samples"] for t in vm["traces"]) + shares["unknown_trace"] == shares["compiled"]
    assert sum(s["samples"] for s in vm["not_compiled"]) + shares["no_reason"] == shares["interpreted"]
    assert shares["samples"] == sum(shares[k] for k in ("compiled", "interpreted", "c", "collector", "compiler"))
    assert loop["reason"].startswith(("NYI: bytecode", "leaving loop")) and (loop["lines"]["from"], loop["lines"]["to"]) == (6, 8)
    want = took[0] / sum(took)
    bound = 5 * math.sqrt(want * (1 - want) / n) + 0.03 + vms.missed(n, sum(took), 1000)
    assert n > 300 and abs(sum(t["samples"] for t in traced) / n - want) < bound, (traced, shares, took)
    assert abs(loop["samples"] / n - (1 - want)) < bound, (loop, shares, took)


# Traces are flushed all the time; the program writes what each was.
FLUSH = """
local util = require('jit.util')
local log = io.open(arg[1], 'w')
local start
local function event(what, tr, func, pc)
  if what == 'start' then start = util.funcinfo(func, pc).currentline
  elseif what == 'stop' then
    local i = util.traceinfo(tr)
    log:write(('%d %d %d %d\\n'):format(start, i.nins, i.nexit, #util.tracemc(tr)))
    log:flush()
  end
end
jit.off(event)
jit.attach(event, 'trace')
local function a(n) local s = 0 for i = 1, n do s = s + i % 7 end return s end
local function b(n) local s = 0
  for i = 1, n do s = s + math.floor(i / 3) end return s end
local function c(n) local t = {}
  for i = 1, n do t[i % 5] = (t[i % 5] or 0) + 1 end return #t end
print('ready') io.stdout:flush()
for round = 1, 1e9 do
  if round % 3 == 0 then a(200) b(200) elseif round % 3 == 1 then c(200) a(300) else b(300) c(300) end
  if round % 8 == 0 then os.execute('') end -- while traces are there
  jit.flush()
end
"""


def test_no_wrong_trace_while_traces_are_flushed(root, tmp_path):
    (tmp_path / "flush.lua").write_text(FLUSH)
    log = tmp_path / "log"
    with vms.Target(["luajit", tmp_path / "flush.lua", log]) as target:
        target.ready().spend(0.2)
        rows = one_vm("-p", target.pid, "-d", 1)["traces"]

        def read():
            rows.extend(one_vm("-p", target.pid)["traces"])
            return len(rows) >= 20
        vms.wait_until(read)
        target.p.kill()
        target.p.wait()
    known = {tuple(map(int, line.split())) for line in log.read_text().splitlines()}
    assert all((t["start"]["line"], t["ir"], t["snapshots"], t["mcode_size"]) in known for t in rows)


PHASES = """
local clock = os.clock
local function a(n) local s = 0 for i = 1, n do s = s + i % 7 end return s end
local function b(n) local s = 0
  for i = 1, n do s = s + math.floor(i / 3) end return s end
for round = 1, 12 do
  local f, e = round % 2 == 0 and a or b, clock() + 0.15
  while clock() < e do f(1000) end
  jit.flush()
end
"""


def test_flushed_traces_are_kept_and_marked(root, tmp_path):
    """Two loops of 0.9 s each are compiled again and again, with the same numbers; their shares are their own. Their
    difference of 12 (b's function call is in its trace) is far from the bound."""
    (tmp_path / "phases.lua").write_text(PHASES)
    vm = one_vm("-F", 1000, "--", "luajit", tmp_path / "phases.lua")
    loops = [t for t in vm["traces"] if t["start"]["line"] in (3, 5)]
    assert {t["start"]["line"] for t in loops} == {3, 5}
    assert any(t["flushed"] for t in loops) and all(t["times_compiled"] >= 2 for t in loops if t["type"] == "root")
    share = {line: sum(t["samples"] for t in loops if t["start"]["line"] == line) / vm["shares"]["compiled"] for line in (3, 5)}
    assert all(0.25 < part < 0.75 for part in share.values()), share
    assert sum(t["samples"] for t in vm["traces"]) + vm["shares"]["unknown_trace"] == vm["shares"]["compiled"]


def test_without_luajit(root):
    with vms.Target(["lua5.4", "-e", "print('ready') io.stdout:flush() io.read()"]) as target:
        target.ready()
        r = vms.luabpf("traces", "-p", target.pid, stats=False)
        assert r.code == 1 and "PUC Lua, which compiles nothing" in r.err, r


def test_usage():
    for args in ([], ["-p"], ["-p", "1", "--", "true"], ["-p", "1", "--stats", "x"], ["-p", "1", "-jp=f"]):
        r = subprocess.run([vms.LUABPF, "traces", *args], capture_output=True, text=True, env=vms.clean_env())
        assert r.returncode == 2, (args, r)

# ---- bytecode ----------------------------------------------------------------------------------------------------------

class Listings:
    """What jit/bc.lua lists inside the program, by function, and what the compiler says that it recorded, by trace."""

    def __init__(self, target):
        self.functions, self.traces = {}, {}
        while (line := target.line()) != "ready":
            what, _, rest = line.partition(" ")
            if what == "inside":
                lines = self.functions[int(rest)] = []
            elif what == "|" and not rest.startswith(("KN ", "KGC ")):  # OpenResty's lists all constants first
                lines.append(rest.rstrip())
            elif what == "trace":
                no, *places = rest.split(" ")
                self.traces[int(no)] = set(places)
            else:
                assert what in ("", "|"), line


@pytest.fixture(scope="module", params=VMS)
def listed(root, request, tmp_path_factory):
    """The program's listings, luabpf's as JSON and as text."""
    vms.fetch_luajit2()
    vm = vms.VMS[request.param]
    file = tmp_path_factory.mktemp("listed") / "annotated.txt"
    with vms.Target([*vm.argv, vms.LUA / "bytecode.lua"], env=vm.env) as target:
        inside = Listings(target)
        traces("-p", target.pid, "--annotate", file)
        return inside, one_vm("-p", target.pid), file.read_text()


def test_bytecode_is_what_jit_bc_lists(listed):
    """Line by line; jit/bc.lua leaves out the function's header."""
    inside, vm, text = listed
    seen = set()
    for f in vm["functions"]:
        if f["function_line"] not in inside.functions:
            continue
        want = inside.functions[f["function_line"]]
        assert want[0].startswith("-- BYTECODE -- ")
        got = [f"{c['bytecode']:04} {'=>' if c.get('jumped_to') else '  '} {c['text']}" for c in f["code"]]
        assert got[1:] == want[1:]
        assert all(re.search(rf"(?m)^ +\|   {re.escape(line)}(  .*)?$", text) for line in got), f["function_line"]
        seen |= {c["text"].split()[0] for c in f["code"]}
    assert len(seen) > 55, sorted(seen)


def test_traces_cover_what_was_recorded(listed):
    """Of each trace whose bytecode luabpf can follow: all but a few, and but for an instruction at the start or the end of
    some. Of 524 traces 468 were right, 24 differed by one instruction, 32 were not known. An ITERL belongs to the ITERN before
    it: no event of the compiler has it."""
    inside, vm, _ = listed
    got = {t["trace"]: set() for t in vm["traces"]}
    for f in vm["functions"]:
        for before, c in zip([None, *f["code"]], f["code"]):
            if before and "ITERN" in before["text"] + before.get("was", "") and "ITERL" in c["text"]:
                continue
            for no in c.get("traces", []):
                got[no].add(f"{f['function_line']}:{c['bytecode']}")
    known = [t["trace"] for t in vm["traces"] if t["bytecodes"]]
    assert len(known) > 10 and len(known) > 0.8 * len(inside.traces)
    differ = {no: got[no] ^ inside.traces[no] for no in known if got[no] != inside.traces[no]}
    assert len(differ) < 0.2 * len(known) and all(len(d) == 1 for d in differ.values()), differ


def test_marks_of_instructions(both):
    """Where traces start and what was there before, exits, starts without a trace and where their recording ended."""
    _, vm, _ = both
    code = {(f["function_line"], c["bytecode"]): c for f in vm["functions"] for c in f["code"]}

    def at(place):
        return code[place["function_line"], place["bytecode"]]
    for t in vm["traces"]:
        c = at(t["start"])
        assert t["trace"] in c["starts"] and c["line"] == t["start"]["line"]
        if t["type"] == "root":
            op, was = c["text"].split()[0], c["was"].split()[0]
            assert (op, was) in {("JFORL", "FORL"), ("JLOOP", "LOOP"), ("JLOOP", "ITERN"), ("JITERL", "ITERL"),
                                 ("JFUNCF", "FUNCF"), ("JFUNCV", "FUNCV"), ("JLOOP", "RET1"), ("JLOOP", "RET")}, c
        for e in t["exits"]:
            side = [s["trace"] for s in vm["traces"] if s["type"] == "side" and (s["parent"], s["parent_exit"]) == (t["trace"], e["exit"])]
            if (e["at"]["line"] or 0) > 0 and (side or e["count"]):
                assert {"trace": t["trace"], "exit": e["exit"], "side": side[0] if side else None, "count": e["count"]} in at(e["at"])["exits"]
    for s in vm["not_compiled"]:
        c = at(s["start"])
        assert c["not_compiled"].startswith(s["reason"] or "")
        if s["state"] != "penalised":
            assert c["text"].split()[0] == "I" + c["was"].split()[0]
        if s["cause"]:
            assert "abort_of" in at(s["cause"])


def test_annotated_source(root, tmp_path):
    """Each line stands above its instructions; lines of another function are left out; marks are words."""
    (tmp_path / "x.lua").write_text(ANNOTATED)
    with vms.Target(["luajit", "x.lua"], cwd=tmp_path) as target:
        target.ready()
        text = traces("-p", target.pid, "--annotate", "-").out
    listing = text[text.index("====== x.lua:1-16 ======"):].splitlines()
    rows = [line.partition("| ")[2] or line for line in listing]
    assert rows[1] == "local function f(n)"
    start = next(i for i, r in enumerate(rows) if r == "  for i = 1, n do")
    assert re.match(r"  0002    KSHORT ", rows[start + 1])
    forl = next(r for r in rows if " JFORL " in r)
    assert re.search(r"\[1.*\] was FORL +\d+ => \d{4}; trace 1 starts: loop", forl)
    assert any(re.search(r"exit 1/\d+ -> trace 2", r) for r in rows)
    assert "    local g = function()" in rows and "      -- function's" not in rows
    # the recording that was the last one may have begun at the loop's end
    assert any(re.search(r"blacklisted: (NYI: bytecode|leaving loop in root trace)", r) and "was FORL" in r for r in rows), rows


ANNOTATED = """local function f(n)
  local s = 0
  for i = 1, n do
    if i % 3 == 0 then s = s + 1 end
  end
  for i = 1, n do
    local g = function()
      -- another
      -- function's
      -- lines
      -- are
      return 1
    end
    s = s + i
  end
end
for _ = 1, 3000 do f(200) end
print('ready') io.stdout:flush() io.read()
"""


def test_sources_that_cannot_be_read(root, tmp_path):
    """The bytecode stands there without them. A file of less lines has changed."""
    script = tmp_path / "x.lua"
    script.write_text(ANNOTATED)
    with vms.Target(["luajit", script]) as target:
        target.ready()
        script.write_text("local function f(n)\n")
        text = traces("-p", target.pid, "--annotate", "-").out
        assert "[The source has 1 lines: it has changed]" in text and "local function f(n)" in text
        script.write_bytes(b"\x1bLJ\2")
        assert "[No source: the file is bytecode]" in traces("-p", target.pid, "--annotate", "-").out
        script.unlink()
        text = traces("-p", target.pid, "--annotate", "-").out
        assert "[No source: No such file or directory]" in text and " JFORL " in text


def test_a_file_that_the_program_may_not_read(root, tmp_path):
    """A chunk's name is the program's own word."""
    secret = tmp_path / "secret"
    secret.write_text("the secret\n")
    secret.chmod(0o600)
    code = f"local f = loadstring('local s = 0 for i = 1, 1e4 do s = s + i end', '@{secret}') for _ = 1, 9 do f() end"
    tmp_path.chmod(0o755)
    with vms.Target(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "luajit", "-e",
                     code + " print('ready') io.stdout:flush() io.read()"]) as target:
        target.ready()
        text = traces("-p", target.pid, "--annotate", "-").out
    assert "[No source: Permission denied]" in text and "the secret" not in text


def test_annotation_of_a_command_that_has_ended(root, tmp_path):
    """Its sources are read afterwards, with the rights that it had."""
    (tmp_path / "x.lua").write_text(ANNOTATED.replace("1, 3000 do", "1, 10000 do"))
    r = traces("-F", 1000, "--annotate", tmp_path / "out", "--", "luajit", "-e", f"io.read = os.exit dofile('{tmp_path}/x.lua')")
    text = (tmp_path / "out").read_text()
    assert "====== " not in r.out and "    if i % 3 == 0 then s = s + 1 end" in text
    assert re.search(r"(?m)^ +compiled +other +\|$", text)
    assert re.search(r"(?m)^ +\d+\.\d % .*\d \| ", text) and "it has changed" not in text, text


def test_json_and_annotation_have_one_stream(tmp_path):
    r = subprocess.run([vms.LUABPF, "traces", "--json", "--annotate", "-", "-p", "1"], capture_output=True, text=True, env=vms.clean_env())
    assert r.returncode == 2 and "--json and --annotate would both go to standard output" in r.stderr
