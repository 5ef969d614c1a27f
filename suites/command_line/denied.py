#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: denied.py CALL[,CALL...] [ERRNO] COMMAND...

Runs a command in a sandbox in which these system calls fail with ERRNO (EPERM, or ENOSYS as in a container runtime that
does not know them). Exit code: the command's; 77 where there is no seccomp filter.
"""
import ctypes
import errno
import os
import platform
import struct
import sys

NUMBERS = {"x86_64": {"memfd_create": 319, "process_vm_readv": 310, "process_vm_writev": 311, "pidfd_open": 434, "futex_waitv": 449,
                      "perf_event_open": 298, "ptrace": 101, "mlock": 149, "mlock2": 325, "sched_setaffinity": 203,
                      "io_uring_setup": 425},
           "aarch64": {"memfd_create": 279, "process_vm_readv": 270, "process_vm_writev": 271, "pidfd_open": 434, "futex_waitv": 449,
                       "perf_event_open": 241, "ptrace": 117, "mlock": 228, "mlock2": 284, "sched_setaffinity": 122,
                       "io_uring_setup": 425}}
NO_FILTER = 77
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06  # of classic BPF
ALLOW, FAIL = 0x7FFF0000, 0x00050000
NO_NEW_PRIVILEGES, SET_SECCOMP, FILTER = 38, 22, 2


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def deny(names, number):
    """All that this process starts is refused these calls. Returns whether the kernel takes the filter."""
    if platform.machine() not in NUMBERS:
        return False
    rows = [(LOAD, 0, 0, 0)]  # the call's number
    for name in names:
        rows += [(EQUAL, 0, 1, NUMBERS[platform.machine()][name]), (RETURN, 0, 0, FAIL | number)]
    rows.append((RETURN, 0, 0, ALLOW))
    text = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *row) for row in rows))
    program = Program(len(rows), ctypes.addressof(text))
    call = ctypes.CDLL(None, use_errno=True).prctl
    return call(NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0 and call(SET_SECCOMP, FILTER, ctypes.byref(program), 0, 0) == 0


def main():
    names, *command = sys.argv[1:]
    number = getattr(errno, command.pop(0)) if hasattr(errno, command[0]) else errno.EPERM
    if not deny(names.split(","), number):
        return NO_FILTER
    os.execvp(command[0], command)


if __name__ == "__main__":
    sys.exit(main())
