# SPDX-License-Identifier: Apache-2.0
"""Modes, owners, times and attributes of files that are not the agent's."""
import array
import ctypes
import errno
import fcntl
import os
import threading
import time

from table import FACTS, IF_THERE, IF_THERE_ROOT, INTEL, LIBC, ROOT, buffer, call, control, fail, group, own

ABSENT = 'ENOENT: own root'
SEALED = 'EROFS: read-only'
BROKER = 'EPERM: broker + user id@root'
STOPPING = ('read-only', 'user id', 'no_new_privs', 'nosuid')  # What a change of another's file meets.


def changed_while_racing(path):
    """The path changes while the call waits: the file of either may be meant, the outside's never changed."""
    mine, name = own(), buffer(4096)
    names, stop = [mine.encode(), path.encode()], []

    def turn():
        while not stop:
            for one in names:
                ctypes.memmove(name, one + b'\0', len(one) + 1)
    before = os.stat(path).st_mode if os.path.exists(path) else fail(errno.ENOENT)
    wanted = before & 0o777 ^ 0o004
    thread = threading.Thread(target=turn)
    thread.start()
    try:
        # Winning the race is chance: what is to succeed has time for it.
        end = time.monotonic() + (5 if control() and FACTS['wall'] not in STOPPING else 0.2)
        while time.monotonic() < end and os.stat(path).st_mode == before:
            LIBC.chmod(name, wanted)
    finally:
        stop.append(1)
        thread.join()
    if os.stat(path).st_mode == before:
        fail(errno.EPERM)


def at_directory(path, change):
    """By a descriptor of the directory that can do nothing else."""
    change(os.path.basename(path), os.open(os.path.dirname(path), os.O_PATH))


def flags_changed(path):
    fd = os.open(path, os.O_RDONLY)
    flags = array.array('i', [0])
    fcntl.ioctl(fd, 0x80086601, flags)  # FS_IOC_GETFLAGS
    fcntl.ioctl(fd, 0x40086602, flags)  # FS_IOC_SETFLAGS


def metadata():
    add = group('Modes, owners, times and attributes')
    for name, place, sealed in (('a hidden file', 'hidden', ABSENT), ('an exposed file', 'shown', SEALED)):
        at = lambda place=place: f'{FACTS[place]}/kept'
        add(f'Change the mode of {name}', '`chmod`', lambda at=at: os.chmod(at(), 0o666), sealed, BROKER)
        add(f'... by its directory: {name}', '`fchmodat`', lambda at=at: at_directory(
            at(), lambda base, fd: os.chmod(base, 0o666, dir_fd=fd)), sealed, BROKER)
        add(f'... while the path changes: {name}', '`chmod`', lambda at=at: changed_while_racing(at()),
            'ENOENT: own root' if place == 'hidden' else 'EPERM: read-only', BROKER)
        add(f'... by the newest call: {name}', '`fchmodat2`', lambda at=at: call('fchmodat2', -100, at().encode(), 0o666, 0),
            sealed, 'ENOSYS: seccomp + user id@root', IF_THERE)
        add(f'Change the owner of {name}', '`chown`', lambda at=at: os.chown(at(), os.getuid(), os.getgid()), sealed, BROKER)
        add(f'... not following links: {name}', '`lchown`', lambda at=at: os.lchown(at(), os.getuid(), os.getgid()), sealed,
            BROKER)
        add(f'Change the times of {name}', '`utimensat`', lambda at=at: os.utime(at(), (1, 1)), sealed, BROKER)
        add(f'Set the times of {name} to now', '`utimensat(NULL)`', lambda at=at: os.utime(at()), sealed, 'EPERM: broker')
        add(f'... by its directory, times of {name}', '`utimensat`', lambda at=at: at_directory(
            at(), lambda base, fd: os.utime(base, (1, 1), dir_fd=fd)), sealed, BROKER)
        add(f'Set an attribute of {name}', '`setxattr`', lambda at=at: os.setxattr(at(), 'user.probe', b'x'), sealed,
            'EOPNOTSUPP: seccomp', IF_THERE)
        add(f'Remove an attribute of {name}', '`removexattr`', lambda at=at: os.removexattr(at(), 'user.other'), sealed,
            'EOPNOTSUPP: seccomp', IF_THERE)
    add('Read the names of attributes of a hidden file', '`listxattr`', lambda: os.listxattr(
        f'{FACTS["hidden"]}/kept') or fail(errno.ENODATA), ABSENT, 'ENODATA: seccomp', IF_THERE)
    exposed = lambda: f'{FACTS["shown"]}/kept'
    add('Change the mode of an open file', '`fchmod`', lambda: os.fchmod(os.open(exposed(), os.O_RDONLY), 0o666), SEALED, BROKER)
    add('... through `/proc/self/fd`', '`chmod`', lambda: os.chmod(f'/proc/self/fd/{os.open(exposed(), os.O_RDONLY)}', 0o666),
        SEALED, BROKER)
    add('Change the owner of an open file', '`fchown`', lambda: os.fchown(os.open(exposed(), os.O_RDONLY), os.getuid(), -1),
        SEALED, BROKER)
    add('Change the times of an open file', '`futimens`', lambda: os.utime(os.open(exposed(), os.O_RDONLY), (1, 1)), SEALED, BROKER)
    add('Make an exposed file immutable', '`ioctl(FS_IOC_SETFLAGS)`', lambda: flags_changed(exposed()),
        'EROFS|EPERM|ENOTTY: read-only', 'EPERM: seccomp + user id@root', IF_THERE)
    add('Change the mode of `/usr`', '`chmod`', lambda: os.chmod('/usr', 0o755), 'EROFS|EPERM: read-only + user id',
        'EPERM: broker + user id', ROOT)


metadata()
