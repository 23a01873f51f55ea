# SPDX-License-Identifier: Apache-2.0
"""Files of the host, the checkout on disk, their metadata, and devices."""
import array
import ctypes
import errno
import fcntl
import glob
import mmap
import os
import shutil
import socket
import stat
import struct
import tempfile
import threading
import time

from table import APART, FACTS, IF_THERE, IF_THERE_ROOT, IN, LET_IN, LIBC, OK, ROOT, buffer, call, checked, control, fail, group, opened, own, read, write  # noqa: F401

ABSENT = 'ENOENT: own root + Landlock'
LANDLOCK = 'EACCES: Landlock'
UNASKED = 'EACCES: seccomp'  # Landlock is asked for no right.
SEALED = 'EROFS: read-only + Landlock'


def hidden(name='file'):
    return f'{FACTS["hidden"]}/{name}'


def shown(name='file'):
    return f'{FACTS["shown"]}/{name}'


def own_place():
    """Where the attempt makes a name of its own: for a link, on the file system of what it links to."""
    return os.path.dirname(own())


def link_target(place):
    """A new name: in the control beside the file, since links do not cross file systems."""
    return f'{place}/linked-{os.getpid()}' if control() else f'{own_place()}/linked'


def through_link():
    link = own() + '.link'
    os.symlink(hidden(), link)
    read(link)


def reopened(path):
    """A descriptor that can do nothing, opened again through /proc."""
    fd = os.open(path, os.O_PATH)
    opened(f'/proc/self/fd/{fd}')


def executed(path):
    child = os.fork()
    if child == 0:
        try:
            os.execv(path, [path])
        except OSError as error:
            os._exit(error.errno)
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status):
        fail(os.waitstatus_to_exitcode(status))


def racing_open():
    """A name that leads to its own file and to the hidden one by turns."""
    place = own_place()
    os.symlink(place + '/file', place + '/mine')
    os.symlink(hidden(), place + '/theirs')
    os.symlink(place + '/file', place + '/name')
    stop = []

    def turn():
        while not stop:
            for source in ('mine', 'theirs'):
                os.symlink(os.readlink(f'{place}/{source}'), place + '/next')
                os.rename(place + '/next', place + '/name')
    thread = threading.Thread(target=turn)
    thread.start()
    # However busy the machine is: the control ends with its first success, the probe not before its first refusal.
    error, now = None, time.monotonic()
    end, patience = now + (10 if control() else 0.2), now + 10
    try:
        while time.monotonic() < end or (error is None and time.monotonic() < patience):
            try:
                if read(place + '/name') != b'x':
                    return
            except OSError as met:
                error = met.errno
    finally:
        stop.append(1)
        thread.join()
    fail(error or errno.ENOENT)


def link_of_open():
    fd = os.open(shown(), os.O_RDONLY)
    call('linkat', -100, f'/proc/self/fd/{fd}'.encode(), -100, link_target(FACTS['shown']).encode(), 0x400)


def exchanged():
    mine = shown('spare 4') if control() else own()
    call('renameat2', -100, shown().encode(), -100, mine.encode(), 2)  # RENAME_EXCHANGE


def mapped_shared():
    fd = os.open(shown(), os.O_RDWR)
    mmap.mmap(fd, 0)


def removed_and_made(path):
    os.unlink(path)
    write(path)


def removed_and_linked(path):
    os.unlink(path)
    os.symlink('/', path)


def planted(path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write(path)


def bound(path):
    socket.socket(socket.AF_UNIX).bind(f'{path}/bound-{os.getpid()}')


def fifo_read(path):
    if not os.read(os.open(path, os.O_RDONLY | os.O_NONBLOCK), 1):
        fail(errno.ENODATA)


def files():
    add = group('Files of the host')
    add('Read a file that the policy does not expose', '`open`', lambda: read(hidden()), ABSENT, LANDLOCK)
    add('... through `/proc/self/root`', '`open`', lambda: read('/proc/self/root' + hidden()), ABSENT, LANDLOCK)
    add('... through `/proc/self/cwd/../..`', '`open`', lambda: read('/proc/self/cwd' + '/..' * 20 + hidden()), ABSENT,
        LANDLOCK)
    add('... through a symbolic link of its own', '`open`', through_link, ABSENT, LANDLOCK)
    add('... opened as a path, then again through `/proc/self/fd`', '`open(O_PATH)`', lambda: reopened(hidden()), ABSENT,
        LANDLOCK)
    add('... while the name changes between two files', '`open`, `rename`', racing_open, ABSENT, LANDLOCK)
    add('... in a directory opened before', '`openat`', lambda: os.open(
        'file', os.O_RDONLY, dir_fd=os.open(FACTS['hidden'], os.O_PATH)), ABSENT, LANDLOCK)
    add('List its directory', '`getdents64`', lambda: os.listdir(FACTS['hidden']), ABSENT, LANDLOCK)
    add('List what is next to an exposed directory', '`getdents64`', lambda: os.path.basename(FACTS['hidden']) in os.listdir(
        os.path.dirname(FACTS['hidden'])) or fail(errno.ENOENT), 'ENOENT: own root', LANDLOCK)
    add('See its size and times', '`stat`', lambda: os.stat(hidden()), 'ENOENT: own root', 'ok: ')
    add('Run a program that is not exposed', '`execve`', lambda: executed(hidden('true')), ABSENT, LANDLOCK)
    add('Overwrite it', '`open(O_WRONLY)`', lambda: opened(hidden(), os.O_WRONLY), ABSENT, LANDLOCK)
    add('Truncate it', '`truncate`', lambda: os.truncate(hidden(), 3), ABSENT, LANDLOCK)
    add('... by an open that asks for no access', '`open(O_TRUNC)`', lambda: opened(hidden('spare 4'), 3 | os.O_TRUNC), ABSENT,
        UNASKED)
    add('Open it for neither reading nor writing', '`open(3)`', lambda: opened(hidden(), 3), ABSENT, UNASKED)
    add('Make a file next to it', '`open(O_CREAT)`', lambda: write(hidden('new')), ABSENT, LANDLOCK)
    add('Make a directory next to it', '`mkdir`', lambda: os.mkdir(hidden('made')), ABSENT, LANDLOCK)
    add('Make a symbolic link next to it', '`symlink`', lambda: os.symlink('x', hidden('pointed')), ABSENT, LANDLOCK)
    add('Make a named pipe next to it', '`mknod`', lambda: os.mkfifo(hidden('piped')), ABSENT, LANDLOCK)
    add('Bind a Unix socket next to it', '`bind`', lambda: bound(FACTS['hidden']), ABSENT, LANDLOCK)
    add('Rename it', '`rename`', lambda: os.rename(hidden('spare 1'), hidden('spare 1') + 'x'), ABSENT, LANDLOCK)
    add('Move it to its own directory', '`rename`', lambda: os.rename(hidden('spare 2'), link_target(FACTS['hidden'])),
        ABSENT, 'EACCES|EXDEV: Landlock')
    add('Remove it', '`unlink`', lambda: os.unlink(hidden('spare 3')), ABSENT, LANDLOCK)
    add('Remove a directory', '`rmdir`', lambda: os.rmdir(hidden('empty')), ABSENT, LANDLOCK)
    add('Give it a name in its own directory', '`link`', lambda: os.link(hidden(), link_target(FACTS['hidden'])), ABSENT,
        'EACCES|EXDEV: Landlock')
    add('Read a named pipe that is not exposed', '`open`', lambda: fifo_read(hidden('fifo')), ABSENT, LANDLOCK)
    add('Read what another process has in `/dev/shm`', '`open`', lambda: read(FACTS['shm']), ABSENT, LANDLOCK)
    add('Read what another process has in `/tmp`', '`open`', lambda: read(FACTS['tmp']), ABSENT, LANDLOCK)
    add('List `/root`', '`getdents64`', lambda: os.listdir('/root'), ABSENT, LANDLOCK, ROOT)
    add('Read `/etc/shadow`', '`open`', lambda: read('/etc/shadow'), 'EACCES: mask', LANDLOCK, ROOT)
    add('Write to an exposed file', '`open(O_WRONLY)`', lambda: opened(shown(), os.O_WRONLY), SEALED, LANDLOCK)
    add('Map an exposed file for writing', '`mmap(MAP_SHARED)`', mapped_shared, SEALED, LANDLOCK)
    add('Truncate an exposed file', '`truncate`', lambda: os.truncate(shown(), 3), SEALED, LANDLOCK)
    add('... while opening it to read', '`open(O_TRUNC)`', lambda: opened(shown('spare 2'), os.O_RDONLY | os.O_TRUNC),
        SEALED, LANDLOCK)
    add('Make a file in an exposed directory', '`open(O_CREAT)`', lambda: write(shown('new')), SEALED, LANDLOCK)
    add('... without a name', '`open(O_TMPFILE)`', lambda: opened(FACTS['shown'], os.O_TMPFILE | os.O_RDWR),
        'EROFS|EACCES: read-only + Landlock', LANDLOCK)
    add('Replace an exposed file', '`unlink`, `open`', lambda: removed_and_made(shown('spare 1')), SEALED, LANDLOCK)
    add('Exchange an exposed file for its own', '`renameat2`', exchanged, 'EROFS|EXDEV|EACCES: read-only + Landlock',
        'EACCES|EXDEV: Landlock')
    add('Give an exposed file a name in its own directory', '`link`', lambda: os.link(
        shown(), link_target(FACTS['shown'])), 'EXDEV|EROFS|EACCES: overlay + Landlock', 'EACCES|EXDEV: Landlock')
    add('... by a descriptor of it', '`linkat`', link_of_open, 'EXDEV|EROFS|EACCES: overlay + Landlock',
        'EACCES|EXDEV: Landlock')
    add('Write into a named pipe in an exposed directory', '`open`', lambda: opened(
        shown('fifo'), os.O_WRONLY | os.O_NONBLOCK), 'ENXIO|EACCES: overlay + Landlock', LANDLOCK)
    add('Read a named pipe in an exposed directory', '`open`', lambda: fifo_read(shown('fifo')), 'ENODATA: overlay', 'ok: ')
    add('Keep others from opening an exposed file', '`fcntl(F_SETLEASE)`', lambda: fcntl.fcntl(
        os.open(shown(), os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_RDLCK), 'EINVAL: seccomp', None, ROOT)
    add('Add a user', '`open("/etc/passwd")`', lambda: opened('/etc/passwd', os.O_WRONLY), SEALED + ' + user id',
        'EACCES: Landlock + user id', ROOT)
    add('Add a program', '`open("/usr/bin/...")`', lambda: opened('/usr/bin', os.O_TMPFILE | os.O_RDWR),
        'EROFS|EACCES: read-only + Landlock + user id', 'EACCES: Landlock + user id', ROOT)


def effects():
    """What is written inside is to leave the host's file as it is: the suite looks at it."""
    listed = group('The checkout on disk')
    def add(what, how, path, attempt):  # noqa: E306
        listed(what, how, attempt, 'unchanged: overlay', 'unchanged: copy', looks_at=path)
    at = 'of-the-checkout/'
    add('Change a file', '`write`', at + 'written', lambda: write(at + 'written'))
    add('Remove a file', '`unlink`', at + 'removed', lambda: os.unlink(at + 'removed'))
    add('Make a file', '`open(O_CREAT)`', at + 'made', lambda: write(at + 'made'))
    add('Move a directory away', '`rename`', at + 'moved', lambda: shutil.move(at + 'moved', at + 'away'))
    add('Put a link in place of a file', '`symlink`', at + 'linked', lambda: removed_and_linked(at + 'linked'))
    add('Move a directory, write in it, move it back', '`rename`', at + 'hooked/file', lambda: (
        shutil.move(at + 'hooked', at + 'x'), write(at + 'x/file'), shutil.move(at + 'x', at + 'hooked')))
    add('Make a program of a file', '`chmod`', at + 'read', lambda: os.chmod(at + 'read', 0o755))
    add('Set the times of a file', '`utimensat`', at + 'touched', lambda: os.utime(at + 'touched', (1, 1)))
    add('Plant a hook of git\'s', '`.git/hooks`', '.git/hooks/pre-commit', lambda: planted('.git/hooks/pre-commit'))
    add('Change git\'s configuration', '`.git/config`', '.git/config', lambda: write('.git/config', '[core]\n', 'a'))
    add('Add to git\'s index', '`.git/index`', '.git/index', lambda: write('.git/index', 'x', 'a'))
    add('Make instructions for agents', '`.codex/config.toml`', '.codex/config.toml', lambda: planted('.codex/config.toml'))
    add('Make a repository in a directory', '`.git/HEAD`', at + '.git/HEAD', lambda: planted(at + '.git/HEAD'))
    add('Remove the history', '`.git/objects`', '.git/objects', lambda: shutil.move('.git/objects', '.git/gone'))


files()
effects()
