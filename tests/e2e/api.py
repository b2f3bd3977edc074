# SPDX-License-Identifier: BSD-2-Clause
"""libluabpf through ctypes: what include/luabpf.h declares, of the library that was built. For tests only."""
import collections
import ctypes
import os

import vms

SO = vms.OUT / "lib/libluabpf.so.0"
CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int)
LOSS = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong)
EXE, COMM, CGROUP, USER = 1, 2, 3, 4
FOLLOW, CHILDREN, ZONES, COROUTINES = 1, 2, 3, 4


def load():
    lib = ctypes.CDLL(str(SO))
    lib.luabpf_new.restype = ctypes.c_void_p
    for name in ("error", "version", "dumpstack", "label"):
        getattr(lib, f"luabpf_{name}").restype = ctypes.c_char_p
    lib.luabpf_samples.restype = lib.luabpf_vm_id.restype = ctypes.c_ulong
    return lib


class Sample:
    """Within the callback only."""

    def __init__(self, lib, at, count, state):
        self.lib, self.at, self.count, self.state = lib, ctypes.c_void_p(at), count, chr(state)
        self.pid, self.tid = lib.luabpf_pid(self.at), lib.luabpf_tid(self.at)
        self.vm_id = lib.luabpf_vm_id(self.at)

    def dump(self, fmt, depth):
        n = ctypes.c_size_t()
        text = self.lib.luabpf_dumpstack(self.at, fmt.encode(), depth, ctypes.byref(n))
        assert len(text) == n.value
        return text.decode()

    def label(self, name):
        text = self.lib.luabpf_label(self.at, name.encode())
        return text.decode() if text is not None else None


class Recording:
    """Each method is the function of that name; a negative result is an OSError with luabpf_error()'s sentence."""

    def __init__(self):
        self.lib, self.raised = load(), None
        self.at = ctypes.c_void_p(self.lib.luabpf_new())

    def check(self, result):
        if self.raised:
            raise self.raised
        if result < 0:
            raise OSError(-result, self.error())
        return result

    def error(self):
        return self.lib.luabpf_error(self.at).decode()

    def attach(self, *pids):
        for pid in pids:
            self.check(self.lib.luabpf_attach(self.at, pid))
        return self

    def attach_all(self):
        self.check(self.lib.luabpf_attach_all(self.at))
        return self

    def narrow(self, kind, value):
        self.check(self.lib.luabpf_narrow(self.at, kind, value.encode()))
        return self

    def set(self, option, value):
        self.check(self.lib.luabpf_set(self.at, option, value))
        return self

    def start(self, mode, call=None):
        def callback(_, sample, count, state):
            try:
                call(Sample(self.lib, sample, count, state))
            except BaseException as e:  # ctypes would print it and go on
                self.raised = self.raised or e
        self.callback = CALLBACK(callback) if call else None
        self.check(self.lib.luabpf_start(self.at, mode.encode(), self.callback, None))
        return self

    def poll(self, ms):
        return self.check(self.lib.luabpf_poll(self.at, ms))

    def wait(self, ms):
        return self.check(self.lib.luabpf_wait(self.at, ms))

    def fd(self):
        return self.check(self.lib.luabpf_fd(self.at))

    def stop(self):
        self.check(self.lib.luabpf_stop(self.at))
        return self

    def samples(self):
        return self.lib.luabpf_samples(self.at)

    def losses(self):
        lost = collections.Counter()

        def loss(_, reason, sentence, count):
            assert sentence
            lost[reason.decode()] += count
        self.check(self.lib.luabpf_losses(self.at, LOSS(loss), None))
        return lost

    def write(self, path):
        fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            self.check(self.lib.luabpf_write(self.at, fd))
        finally:
            os.close(fd)
        return path

    def free(self):
        self.lib.luabpf_free(self.at)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.free()
