# SPDX-License-Identifier: BSD-2-Clause
"""The command line as a user meets it: messages and exit codes that need no root and no target."""
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
HANG = 300  # s
LUABPF = Path(os.environ.get("O", ROOT / "build")).resolve() / "luabpf"


def luabpf(*args, **kw):
    kw.setdefault("stdout", subprocess.PIPE)
    env = {k: v for k, v in os.environ.items() if k not in ("LUAJIT_PROFILEFILE", "SUDO_UID")}
    env.update(kw.pop("env", {}))
    return subprocess.run([LUABPF, *map(str, args)], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                          text=True, timeout=HANG, env=env, **kw)


USAGE = [
    ([], "nothing to profile"),
    (["-v"], "nothing to profile"),
    (["-p"], "-p: no process id was given"),
    (["-p", "-jp=f"], "-p: no process id was given"),
    (["-p", " "], "-p: no process id was given"),
    (["-p1", "-o", "-jp=f"], "-o needs a value, not -jp=f"),
    (["-p", "abc"], "-p abc: not a list of process ids"),
    (["-p", "0"], "-p 0: not a list"),
    (["-p", "99999999999999999999"], "not a list of process ids"),
    (["-p", "1", "2"], "2: what is that?"),
    (["-p", "1", "--", "true"], "only one can be profiled"),
    (["--"], "no command behind --"),
    (["luajit", "x.lua"], "luajit: what is that?"),
    (["-p1", "-F", "0"], "-F 0: not a whole number"),
    (["-p1", "-F", "-5"], "-F needs a value, not -5"),
    (["-p1", "-F", "1000000000000000000000"], "-F 1000000000000000000000: not a whole number"),
    (["-p1", "-d", "soon"], "-d soon: not a positive number"),
    (["-p1", "-d", "9" * 40], "too many seconds"),
    (["-p1", "-F", "100", "-jp=i4"], "contradict"),
    (["-p1", "-o", "x.svg"], "no format is known by that name"),
    (["-p1", "-f", "svg"], "-f svg: unknown format"),
    (["-p1", "-o", "-", "-f", "folded", "-jp"], "would both go to standard output"),
    (["-p1", "--max-lost", "200"], "not a percentage"),
    (["-p1", "-q", "-v"], "contradict"),
    (["-p1", "--frobnicate"], "unknown option --frobnicate"),
    (["-p1", "-jv"], "unknown option -j"),
    (["report"], "report of what?"),
    (["report", "a", "b"], "report reads one file"),
    (["report", "a", "-p", "1"], "-p does not go with report"),
    (["doctor", "4711"], "4711: what is that?"),
    (["doctor", "-d", "1"], "-d does not go with doctor"),
    (["doctor", "--", "luajit"], "-- does not go with doctor"),
]


@pytest.mark.parametrize("args,message", USAGE, ids=lambda v: " ".join(v)[:40] if isinstance(v, list) else "")
def test_usage_error(args, message):
    r = luabpf(*args)
    assert r.returncode == 2
    assert message in r.stderr
    lines = r.stderr.splitlines()
    assert lines[0].startswith("luabpf: ")
    assert lines[-1] == "try luabpf --help"
    assert len(lines) <= 3
    assert r.stdout == ""


@pytest.mark.parametrize("args", [["--help"], ["-h"], ["help"], ["report", "--help"], ["doctor", "--help"], ["traces", "--help"], ["-p", "1", "--help"]])
def test_help(args):
    r = luabpf(*args)
    assert r.returncode == 0
    assert r.stderr == ""
    for word in ("-jp", "--max-lost", "report", "luabpf doctor [-p PID", "Examples:", "Exit codes:", "default 100"):
        assert word in r.stdout
    assert max(map(len, r.stdout.splitlines())) <= 100


def test_unknown_letters_are_told(tmp_path):
    r = luabpf("report", tmp_path / "none.pb.gz", "-jp=fX!")
    assert "knows no option 'X'" in r.stderr
    assert "knows no option '!'" in r.stderr


def test_version():
    r = luabpf("--version")
    assert r.returncode == 0
    assert r.stdout.startswith("luabpf ")


def test_full_disk():
    with open("/dev/full", "w") as full:
        r = luabpf("--help", stdout=full)
    assert r.returncode == 1
    assert r.stderr == "luabpf: standard output: No space left on device\n"


def test_closed_pipe():
    read, write = os.pipe()
    os.close(read)
    r = luabpf("--help", stdout=write)
    os.close(write)
    assert r.returncode == 1
    assert r.stderr == "luabpf: standard output: Broken pipe\n"


def test_closed_stdout():
    r = subprocess.run(["sh", "-c", f"{LUABPF} --help >&-"], stderr=subprocess.PIPE, text=True, timeout=HANG)
    assert r.returncode == 1
    assert "standard output: Bad file descriptor" in r.stderr


def test_report_of_nothing(tmp_path):
    r = luabpf("report", tmp_path / "none.pb.gz")
    assert r.returncode == 1
    assert r.stderr.startswith(f"luabpf: {tmp_path}/none.pb.gz: No such file")


@pytest.mark.parametrize("content", [b"", b"hello", b"\x1f\x8b", b"\x1f\x8b\x08\0\0\0\0\0\0\3" + b"\xff" * 100])
def test_report_of_garbage(tmp_path, content):
    path = tmp_path / "x.pb.gz"
    path.write_bytes(content)
    r = luabpf("report", path)
    assert r.returncode == 1
    assert str(path) in r.stderr
    assert r.stdout == ""


@pytest.mark.parametrize("stdin", [False, True])
def test_report_of_empty_file(tmp_path, stdin):
    path = tmp_path / "x.pb.gz"
    path.touch()
    r = subprocess.run([LUABPF, "report", "-" if stdin else path], capture_output=True, text=True,
                       stdin=open(path), timeout=HANG)
    name = "standard input" if stdin else str(path)
    assert (r.returncode, r.stdout, r.stderr) == (1, "", f"luabpf: {name}: empty: there is no profile in it\n")


def test_report_from_a_pipe(tmp_path):
    """What looks for the end of an empty file must not eat the first byte of a full one."""
    r = subprocess.run([LUABPF, "report", "-"], capture_output=True, input=b"\x1f\x8b", timeout=HANG)
    assert r.returncode == 1 and b"standard input: damaged: its gzip data" in r.stderr


def test_report_of_directory(tmp_path):
    r = luabpf("report", tmp_path)
    assert r.returncode == 1
    assert "Is a directory" in r.stderr


def test_unwritable_output_is_told_before_anything_runs(tmp_path):
    ran = tmp_path / "ran"
    r = luabpf("-o", tmp_path / "no/such/dir.pb.gz", "--", "touch", ran)
    assert r.returncode == 1
    assert "no/such/dir.pb.gz: No such file or directory" in r.stderr
    assert not ran.exists()


def completions(*words):
    """What bash offers for the last of these words; it takes "=" for a word of its own."""
    script = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _luabpf; printf "%s\\n" "${COMPREPLY[@]}"'
    r = subprocess.run(["bash", "-c", script, "bash", ROOT / "tools/completions/luabpf.bash", "luabpf", *words],
                       capture_output=True, text=True, timeout=HANG)
    assert r.returncode == 0 and not r.stderr, r
    return set(r.stdout.split())


def test_completions():
    """Each long option that has no short one is offered where it may stand, and the values of --by and --user."""
    text = luabpf("--help").stdout
    found = re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", text, re.M)
    offered = set().union(*(completions(*verb, "-") for verb in ([], ["report"], ["doctor"], ["ps"], ["count"], ["trace"])))
    short = {"--pid", "--output", "--format", "--frequency", "--duration", "--verbose", "--quiet"}
    assert len(found) > 15 and set(found) - short <= {word.rstrip("=") for word in offered}, (found, offered)
    values = set(re.search(r"sections: (.*)", text)[1].split(", "))
    assert len(values) > 7 and completions("--by", "=") == completions("--by", "=", "") == completions("report", "--by", "") == values
    assert completions("--by", "=", "co") == {"comm", "container", "coroutine"}
    assert "root" in completions("--user", "roo") and "root" in completions("report", "--source-user", "roo")


def test_help_has_each_letter_of_the_manuals():
    manual = (ROOT / "docs/luabpf.1").read_text().split(".Sh JIT.P OPTIONS")[1].split(".El")[0]
    letters = set(re.findall(r"^\.It Cm (\w)", manual, re.M))
    table = luabpf("--help").stdout.split("OPTIONS of -jp")[1].split("LUAJIT_PROFILEFILE")[0]
    shown = set(re.findall(r"(?:^|  )((?:\w|[mi]<n>)(?: \w)*)(?= )", table, re.M))
    assert len(letters) > 10 and letters == {part[0] for words in shown for part in words.split()}, (letters, shown)
