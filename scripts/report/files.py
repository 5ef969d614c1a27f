# SPDX-License-Identifier: Apache-2.0
"""Files that are written as a whole, by the rules of `tutti` (harness/text/output_file.h): a text is written beside the
file and renamed, and a symbolic link is followed if it belongs to the user or to the owner of its folder."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from pathlib import Path

MOST_LINKS = 40
IN_PLACE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.EXDEV)


def look(folder: int, name: str) -> os.stat_result | None:
    """What `name` is in the folder; None if there is nothing."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def follow(folder: int, name: str) -> str:
    """The name of the file that is no link, in the folder that `folder` is open on afterwards."""
    for _ in range(MOST_LINKS):
        found = look(folder, name)
        if found is None or not stat.S_ISLNK(found.st_mode):
            return name
        if found.st_uid not in (os.geteuid(), os.fstat(folder).st_uid):
            raise OSError(errno.ELOOP, f"the symbolic link belongs to user {found.st_uid}")
        target = os.readlink(name, dir_fd=folder)
        parent, name = os.path.split(target)
        inner = os.open(parent or ".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
        os.dup2(inner, folder, inheritable=False)
        os.close(inner)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def write_in_place(folder: int, name: str, data: bytes) -> None:
    """Writes what cannot be renamed upon."""
    file = os.open(name, os.O_WRONLY | os.O_NOFOLLOW, dir_fd=folder)
    with os.fdopen(file, "wb") as stream:
        stream.write(data)
        stream.flush()
        if stat.S_ISREG(os.fstat(file).st_mode):
            os.ftruncate(file, len(data))


def write_beside(folder: int, name: str, data: bytes, mode: int | None) -> None:
    """Writes another file and renames it. `mode`: of the file that is there; None: there is none."""
    aside = f".tutti-{secrets.token_hex(8)}.part"
    file = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666 if mode is None else 0o600,
                   dir_fd=folder)
    try:
        with os.fdopen(file, "wb") as stream:
            stream.write(data)
            if mode is not None:
                os.fchmod(stream.fileno(), mode)
        os.rename(aside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(aside, dir_fd=folder)
        raise


def write_whole(path: Path, data: bytes) -> None:
    """Replaces the content of `path`; a reader never finds half of it. Raises OSError with the path."""
    folder = -1
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        name = follow(folder, path.name)
        found = look(folder, name)
        if found is not None and not stat.S_ISREG(found.st_mode):
            write_in_place(folder, name, data)
            return
        try:
            write_beside(folder, name, data, None if found is None else stat.S_IMODE(found.st_mode))
        except OSError as problem:
            if found is None or problem.errno not in IN_PLACE:
                raise
            write_in_place(folder, name, data)
    except OSError as problem:
        raise OSError(problem.errno, problem.strerror, str(path)) from problem
    finally:
        if folder >= 0:
            os.close(folder)
