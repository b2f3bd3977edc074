# SPDX-License-Identifier: BSD-2-Clause
"""The Lua module luabpf.profile: LuaJIT's own jit/p.lua on top of it, against a live process, and its contract."""
import re
import subprocess
import sys

import pytest

import vms

sys.path.insert(0, str(vms.ROOT / "tests/golden"))
from test_jitp import OPTIONS, P_LUA, same  # noqa: E402

pytestmark = pytest.mark.usefixtures("root")
LUAS = ["luajit", "lua5.1", "lua5.2", "lua5.3", "lua5.4"]
# Each letter alone and each pair of letters, the combinations that jit/p.lua's documentation names, and one in thirty of the rest.
LETTERS = [o for o in OPTIONS if re.fullmatch("[a-zA-Z]{0,2}", o)]
CHOSEN = sorted({*LETTERS, "3si4m1", "fl", "vf", "zf", "fz", "-s", "l-5r", "Gfzm0", "am0r", "Am0", *OPTIONS[::30]})


def environment(lua):
    version = "5.1" if lua == "luajit" else lua[3:]
    return {"LUA_PATH": f"{vms.ROOT}/lua/?.lua;;", "LUA_CPATH": f"{vms.OUT}/lib/lua/{version}/?.so;;"}


def run(lua, script, *args, **kw):
    return subprocess.run([lua, *map(str, [script, *args])], env=vms.clean_env(environment(lua)), text=True,
                          capture_output=True, timeout=vms.HANG, **kw)


@pytest.fixture
def target():
    """Its source may be read by all, as `luabpf report` asks for it. Its name is its own: a test that takes all processes of that
    name must not look into another test's."""
    with vms.public_dir() as where:
        script = where / "busy.lua"
        script.write_text((vms.LUA / "busy.lua").read_text())
        script.chmod(0o644)
        with vms.Target([vms.link(where / "luajit-api", "luajit"), script]) as t:
            yield t.ready()


def jitp(target, where, how, options, ms=600):
    done = run("luajit", vms.LUA / "jitp.lua", P_LUA, target.pid, ms, where / "saved.pb.gz", where / "out", how,
               input="".join(f"{o}\n" for o in options))
    assert done.returncode == 0, done.stderr
    errors = done.stdout.split("\n")[:-1]
    assert len(errors) == len(options)
    return [((where / f"out.{i + 1}").read_bytes(), error) for i, error in enumerate(errors)]


def report(where, options):
    return subprocess.run([vms.LUABPF, "report", where / "saved.pb.gz", f"-jp={options}"], capture_output=True, check=True,
                          env=vms.clean_env()).stdout


def test_jit_p_prints_what_luabpf_prints(target, tmp_path):
    """For each letter and each pair of letters, of one live recording."""
    wrong = []
    for options, (theirs, error) in zip(CHOSEN, jitp(target, tmp_path, "wait", CHOSEN)):
        ours = report(tmp_path, options)
        # The one error of jit/p.lua itself (out/jitp.h): what it had written up to there.
        if error:
            assert "a" in options, error
            ok = theirs.endswith(b"@@ 1 @@\n") and ours.startswith(theirs)
        else:
            ok = same(options, theirs, ours)
        if not ok:
            wrong.append(f"-jp={options}\n--- jit/p.lua\n{theirs.decode()}\n--- luabpf\n{ours.decode()}")
    assert not wrong, f"{len(wrong)} of {len(CHOSEN)} differ\n" + "\n".join(wrong[:3])
    assert b"parse" in report(tmp_path, "zm0") and b"inner" not in report(tmp_path, "z")


@pytest.mark.parametrize("options", ["fzm0r", "3sm0r"])
def test_jit_p_with_nothing_between(target, tmp_path, options):
    """jit/p.lua starts and stops luabpf.profile itself, at jit.p's own rate."""
    [(theirs, error)] = jitp(target, tmp_path, "direct", [options], 1500)
    assert not error and same(options, theirs, report(tmp_path, options))
    assert re.search(rb"^ +\d+  ", theirs, re.M)


def test_jit_p_counts_the_same_when_it_is_called_at_once(target, tmp_path):
    """Names may become known later: states, zones and the number of samples are the same."""
    options = ["vm0r", "zm0r", "fm0r"]
    got = [text for text, error in jitp(target, tmp_path, "poll", options)]
    for o, theirs in zip(options[:2], got):
        assert same(o, theirs, report(tmp_path, o))

    def count(text):
        return sum(int(line.split()[0]) for line in text.splitlines())
    assert count(got[2]) == count(report(tmp_path, "fm0r")) > 50


@pytest.mark.parametrize("lua", LUAS)
@pytest.mark.parametrize("case", ["documented", "errors", "within", "wrong"])
def test_the_contract(lua, case, target):
    done = run(lua, vms.LUA / "jitprofile.lua", case, target.pid)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok\n", "")


@pytest.mark.parametrize("lua,case", [("luajit", "label"), ("lua5.4", "label"), ("luajit", "two"), ("luajit", "itself"),
                                      ("lua5.3", "itself"), ("luajit", "left"), ("lua5.2", "left")])
def test_more_than_jit_profile(lua, case, target):
    done = run(lua, vms.LUA / "jitprofile.lua", case, target.pid)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok\n", "")


def test_a_target_that_ends(target):
    tool = subprocess.Popen(["lua5.1", vms.LUA / "jitprofile.lua", "ends", str(target.pid)], text=True, stdout=subprocess.PIPE,
                            env=vms.clean_env(environment("lua5.1")))
    assert tool.stdout.readline() == "begun\n"
    target.spend(0.3)
    target.p.kill()
    assert tool.communicate(timeout=vms.HANG)[0] == "ok\n" and not tool.returncode


@pytest.mark.parametrize("lua", LUAS)
def test_the_example(lua, target):
    done = run(lua, vms.ROOT / "examples/topfuncs.lua", target.pid, "0.3")
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^ *\d+\.\d %  +\d+ % compiled  (\S+)$", done.stdout, re.M)
    assert len(rows) > 1 and any(row.startswith("busy.lua:") for row in rows), done.stdout
