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
FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
IN_PLACE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.EXDEV)


def look(folder: int, name: str) -> os.stat_result | None:
    """What `name` is in the folder; None if there is nothing."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def is_of_others(folder: os.stat_result) -> bool:
    """Whether other users may have put things into a folder."""
    return folder.st_uid not in (os.geteuid(), 0) or bool(folder.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def target_of(folder: int, name: str, is_on_the_way: bool) -> str:
    """Where a link leads. It is held open: another one may take its name at any time."""
    link = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=folder)
    try:
        found, around = os.fstat(link), os.fstat(folder)
        is_trusted = found.st_uid in (os.geteuid(), around.st_uid) or (is_on_the_way and found.st_uid == 0)
        if not is_trusted:
            raise OSError(errno.ELOOP, f"the symbolic link '{name}' belongs to user {found.st_uid}")
        if found.st_nlink > 1 and is_of_others(around):
            raise OSError(errno.ELOOP, f"the symbolic link '{name}' has {found.st_nlink} names")
        return os.readlink("", dir_fd=link)
    finally:
        os.close(link)


def walk(path: Path) -> tuple[int, str]:
    """The folder, open, and the name in it that the path leads to, which is no link: name by name, so that each link
    is seen before it is followed."""
    names = str(path).split("/")
    folder = os.open("/" if path.is_absolute() else ".", FOLDER)
    links = 0
    try:
        while True:
            name = names.pop(0) or "."
            found = look(folder, name)
            if found is not None and stat.S_ISLNK(found.st_mode):
                target = target_of(folder, name, bool(names))
                links += 1
                if links > MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                names = target.split("/") + names
                name = "/" if target.startswith("/") else "."
            elif not names:
                return folder, name
            inner = os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
    except BaseException:
        os.close(folder)
        raise


def write_in_place(folder: int, name: str, data: bytes) -> None:
    """Writes what cannot be renamed upon."""
    file = os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NOCTTY, dir_fd=folder)
    with os.fdopen(file, "wb") as stream:
        found = os.fstat(file)
        if stat.S_ISREG(found.st_mode) and found.st_nlink > 1 and is_of_others(os.fstat(folder)):
            raise OSError(errno.EPERM, f"the file has {found.st_nlink} names")
        stream.write(data)
        stream.flush()
        if stat.S_ISREG(found.st_mode):
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
        folder, name = walk(path)
        found = look(folder, name)
        if found is not None and not stat.S_ISREG(found.st_mode):
            if stat.S_ISFIFO(found.st_mode) and found.st_uid not in (os.geteuid(), os.fstat(folder).st_uid):
                raise OSError(errno.EPERM, f"the pipe belongs to user {found.st_uid}")
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
