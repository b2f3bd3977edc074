# SPDX-License-Identifier: BSD-2-Clause
"""Files that luabpf writes as root where another user, MAL, decides about names. Nothing of root's is written to, replaced or
given away, nothing that root writes can be read by MAL, and no recording is lost. And the ordinary uses that stay."""
import contextlib
import os
import stat
import subprocess
import sys

import pytest

import vms

pytestmark = pytest.mark.usefixtures("root")
MAL, ALICE = 1001, 1002
LOOP = "local x = 0 while true do for i = 1, 1e5 do x = x + i % 7 end end"
# Now a file of MAL's that all may write to, now a link to argv[2].
SWAP = """
import os, sys
name, target = sys.argv[1:]
os.umask(0)
print("ready", flush=True)
while True:
    os.close(os.open("f", os.O_CREAT | os.O_WRONLY, 0o666))
    os.rename("f", name)
    os.symlink(target, "l")
    os.rename("l", name)
"""


@pytest.fixture(scope="module")
def saved(root):
    """A profile. What is tried with `report` needs no sampling: -o is the same code."""
    with vms.public_dir() as d, vms.Target(["luajit", "-e", LOOP]) as t:
        r = vms.record(t, 0.05, "-o", d / "x.pb.gz")
        assert r.code == 0, r
        (d / "x.pb.gz").chmod(0o644)
        yield d / "x.pb.gz"


class Places:
    """mal: a directory of MAL's. sticky: all may make names in it. safe: root's, with the file "kept"."""

    def __init__(self, base):
        self.mal, self.alice, self.sticky, self.safe = (base / n for n in ("mal", "alice", "sticky", "safe"))
        for d, uid, mode in (self.mal, MAL, 0o755), (self.alice, ALICE, 0o755), (self.sticky, 0, 0o1777), (self.safe, 0, 0o755):
            d.mkdir()
            os.chown(d, uid, uid)
            d.chmod(mode)
        self.kept = self.safe / "kept"
        self.kept.write_text("root's\n")
        self.kept.chmod(0o644)

    def check(self):
        """Root's directory is as it was."""
        assert os.listdir(self.safe) == ["kept"] and self.kept.read_text() == "root's\n"
        assert owner(self.kept) == (0, 0, 0o644)


@pytest.fixture
def at():
    with vms.public_dir() as d:
        yield Places(d)


def owner(path):
    st = path.lstat()
    return st.st_uid, st.st_gid, stat.S_IMODE(st.st_mode)


@contextlib.contextmanager
def acting_as(uid):
    """Names that are made here are this user's; the test stays root."""
    os.setegid(uid)
    os.seteuid(uid)
    old = os.umask(0)
    try:
        yield
    finally:
        os.umask(old)
        os.seteuid(0)
        os.setegid(0)


def report(saved, output, uid=None, **kw):
    env = {"SUDO_UID": str(uid), "SUDO_GID": str(uid)} if uid else {}
    return vms.luabpf("report", saved, "-f", "folded", "-o", output, env=env, stats=False, **kw)


def test_names_that_are_swapped(saved, at):
    """No owner and no mode comes from a look at a name: the file behind it is another a moment later."""
    argv = ["setpriv", f"--reuid={MAL}", f"--regid={MAL}", "--clear-groups", sys.executable, "-c", SWAP, "out", at.kept]
    for d in at.mal, at.sticky:
        with vms.Target(argv, cwd=d) as t:
            t.ready()
            for _ in range(30):
                r = report(saved, d / "out")
                assert r.code in (0, 1), r
                at.check()


def test_changed_while_it_samples(at):
    """A directory that was swapped for a link; a name and all likely temporary names that were taken. Each of the three outputs is whole."""
    d = at.mal / "d"
    with acting_as(MAL):
        d.mkdir()
    with vms.Target(["luajit", "-e", LOOP]) as t:
        tool = vms.Luabpf("-p", t.pid, "-jp=G," + str(d / "kept"), "-o", at.sticky / "p.folded", "--stats", at.sticky / "s.json", stats=False)
        tool.wait_banner()
        with acting_as(MAL):
            d.rename(at.mal / "old")
            d.symlink_to(at.safe)
            for i in range(100):
                (at.sticky / f".luabpf-{tool.p.pid}-{i}").touch()
            (at.sticky / "s.json").mkdir()
        t.spend(0.1)
        tool.signal()
        r = tool.done()
    at.check()
    assert owner(at.mal / "old/kept") == owner(at.sticky / "p.folded") == (0, 0, 0o600)
    assert ";" in (at.mal / "old/kept").read_text() and ";" in (at.sticky / "p.folded").read_text()
    assert r.code == 1 and f"{at.sticky}/s.json: Is a directory\n  what was written is .luabpf-" in r.err, r
    stats = at.sticky / r.err.split("what was written is ")[1].split()[0]
    assert '"samples"' in stats.read_text() and owner(stats) == (0, 0, 0o600)


def plant(at, uid):
    """What this user may have put where root writes: names, and what luabpf says of them."""
    there = {}
    with acting_as(uid):
        (at.mal / "link").symlink_to(at.kept)
        (at.mal / "way").symlink_to(at.safe)
        (at.sticky / "link").symlink_to(at.safe / "new")
        (at.sticky / "file").touch(0o666)
        os.mkfifo(at.sticky / "fifo", 0o666)
    for name in "mal/link", "mal/way/new", "sticky/link", "sticky/file", "sticky/fifo":
        there[name] = f"belongs to user {uid}"
    # Root's, but MAL may have chosen which of them: where fs.protected_hardlinks is 0, and by moving them.
    (at.safe / "l").symlink_to(at.kept)
    os.mkfifo(at.safe / "f")
    os.link(at.safe / "l", at.sticky / "hard", follow_symlinks=False)
    os.link(at.safe / "f", at.sticky / "hard-fifo")
    (at.safe / "l").rename(at.mal / "moved")
    (at.safe / "f").rename(at.mal / "moved-fifo")
    there.update({"sticky/hard": "others write to", "mal/moved": "others write to",
                  "sticky/hard-fifo": "others may have", "mal/moved-fifo": "others may have"})
    return there


def test_what_others_have_put_there(saved, at):
    """Links, files and FIFOs of others are refused, before a FIFO is opened; root's ones are, where others may have put them there."""
    for name, why in plant(at, MAL).items():
        before = sorted(os.listdir(at.sticky)), sorted(os.listdir(at.mal))
        r = report(saved, at.mal.parent / name)
        assert r.code == 1 and why in r.err and r.err.count("\n") == 2, (name, r)
        assert before == (sorted(os.listdir(at.sticky)), sorted(os.listdir(at.mal))), name
        at.check()
    assert (at.sticky / "file").read_text() == "" and owner(at.sticky / "file") == (MAL, MAL, 0o666)
    # MAL's hard links to root's files: the names become the report's, for root alone; the files stay.
    for d in at.mal, at.sticky:
        os.link(at.kept, d / "hard-file")
        r = report(saved, d / "hard-file")
        assert r.code == 0 and owner(d / "hard-file") == (0, 0, 0o600), r
        at.check()
    # What a process has: a setuid program's directory, say, was chosen by who started it.
    r = report(saved, f"/proc/{os.getpid()}/cwd/x", cwd=at.sticky)
    assert r.code == 1 and '"cwd" is what a process has, not a name' in r.err, r
    # Devices that hold file systems.
    os.mknod(at.sticky / "disk", stat.S_IFBLK | 0o600, os.makedev(7, 250))
    r = report(saved, at.sticky / "disk")
    assert r.code == 1 and "is a block device" in r.err, r


def test_no_more_than_the_caller_of_sudo_may(saved, at):
    """Root's directories and files, and links of the caller's own that lead there."""
    at.kept.chmod(0o644)
    with acting_as(ALICE):
        (at.alice / "link").symlink_to(at.kept)
        (at.alice / "new").symlink_to(at.safe / "new")
    for path in at.kept, at.safe / "new", at.alice / "link", at.alice / "new", at.mal / "new":
        r = report(saved, path, ALICE)
        assert r.code == 1 and "Permission denied\n  under sudo, files are written with the rights of user 1002" in r.err, (path, r)
        at.check()
    assert not os.listdir(at.mal)


def test_files_of_the_caller_of_sudo(saved, at):
    """In a home and in /tmp: as if the caller had made them. An own file keeps its mode."""
    for path in at.alice / "p.folded", at.sticky / "p.folded":
        r = report(saved, path, ALICE)
        assert r.code == 0 and owner(path) == (ALICE, ALICE, 0o600), r
    text = path.read_text()
    (at.alice / "p.folded").write_text("longer than what comes\n" * 1000)
    (at.alice / "p.folded").chmod(0o640)
    (at.alice / "link").symlink_to("p.folded")
    os.chown(at.alice / "link", ALICE, ALICE, follow_symlinks=False)
    r = report(saved, "link", ALICE, cwd=at.alice)
    assert r.code == 0 and (at.alice / "link").is_symlink() and owner(at.alice / "p.folded") == (ALICE, ALICE, 0o640), r
    assert (at.alice / "p.folded").read_text() == text
    shared = at.safe / "shared"  # a file of root's that the caller may write to stays root's
    shared.touch()
    shared.chmod(0o666)
    r = report(saved, shared, ALICE)
    assert r.code == 0 and owner(shared) == (0, 0, 0o666) and shared.read_text() == text, r
    assert sorted(os.listdir(at.alice)) == ["link", "p.folded"] and os.listdir(at.sticky) == ["p.folded"]


@pytest.mark.parametrize("uid", [None, ALICE])
def test_streams(saved, at, uid):
    """Descriptors of our own are what they are, whoever made them; FIFOs of one's own; devices."""
    text = report(saved, "-", uid).out
    assert ";" in text
    for name in "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1":
        r = report(saved, name, uid)
        assert r.code == 0 and r.out == text, (name, r)
    for name in "/dev/null", "/dev/full":
        assert report(saved, name, uid).code == (name == "/dev/full")
    with open(at.kept, "a") as out:  # root's shell: > kept
        assert report(saved, "/dev/stdout", uid, stdout=out).code == 0
    assert at.kept.read_text() == "root's\n" + text
    fifo = at.sticky / "fifo"
    with acting_as(uid or 0):
        os.mkfifo(fifo, 0o600)
    with subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE, text=True) as cat:
        r = report(saved, fifo, uid)
        assert r.code == 0 and cat.communicate()[0] == text, r


def test_one_file_by_two_names(saved, at):
    """What would be written first would be lost."""
    r = vms.luabpf("report", saved, "-jp=f," + str(at.safe / "x"), "-f", "folded", "-o", f"{at.safe}/../safe/x", stats=False)
    assert r.code == 1 and f"the -jp report and -o would both go to {at.safe}/x" in r.err, r
    at.check()
