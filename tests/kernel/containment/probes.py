#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries everything. Run in the sandbox and, as the control, outside of it.

probes.py FACTS [control [WALL]]: FACTS is a file of outside.py's; WALL is put up by itself, and what it is said to stop
is tried. Prints a JSON list a line, of a probe's name and 'ok', or the name of
the error that it met.
"""
import errno
import json
import os
import signal
import subprocess
import sys

sys.dont_write_bytecode = True

import table  # noqa: E402
import of_files  # noqa: E402,F401
import of_kernel  # noqa: E402,F401
import of_metadata  # noqa: E402,F401
import of_network  # noqa: E402,F401
import of_processes  # noqa: E402
import walls  # noqa: E402

SECONDS = 120
NAMES = {errno.EOPNOTSUPP: 'EOPNOTSUPP', errno.EAGAIN: 'EAGAIN'}  # Of two, the better known.
CLONE_NEWUSER, APART = 0x10000000, 0x00020000 | 0x04000000 | 0x08000000 | 0x40000000  # Mounts, UTS, IPC, network.


def answer(attempt):
    try:
        attempt()
        return 'ok'
    except OSError as error:
        return NAMES.get(error.errno) or errno.errorcode.get(error.errno, str(error))
    except (AssertionError, subprocess.TimeoutExpired) as error:
        return f'{type(error).__name__}: {error}'


def step_apart():
    """Into namespaces where the attempt can succeed without harm to the host."""
    user = os.geteuid()
    table.call('unshare', APART | (CLONE_NEWUSER if user else 0))
    if user:
        table.write('/proc/self/uid_map', f'0 {user} 1')
    table.call('mount', b'none', b'/', None, 0x4000 | 0x40000, None)  # MS_REC, MS_PRIVATE


def run(probe):
    """In a process of its own: what it does to itself ends with it."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        os.setpgid(0, 0)
        heard = 'died'
        try:
            if table.control() and probe.control == table.APART:
                heard = answer(step_apart)
            if table.FACTS['wall']:
                walls.RAISE[table.FACTS['wall']]()
            if heard in ('died', 'ok'):
                heard = answer(probe.attempt)
        except BaseException as error:  # It is reported as what it is.
            heard = f'{type(error).__name__}: {error}'
        os.write(theirs, heard.encode()[:4000])
        os._exit(0)
    os.close(theirs)
    heard = os.read(ours, 4096).decode()
    os.close(ours)
    _, status = os.waitpid(child, 0)
    return heard or signal.Signals(status & 127).name


def main():
    with open(sys.argv[1]) as file:
        table.FACTS.update(json.load(file))
    control, wall = len(sys.argv) > 2, ''.join(sys.argv[3:4])
    first = table.FACTS['victim'] if control else os.getppid()
    supervisor = first if control else of_processes.parent_of_or_none(first)
    table.FACTS.update(control=control, wall=wall, first=first, supervisor=supervisor)
    for probe in table.every_probe():
        if control and (probe.control not in table.CONTROLS or wall not in ('', 'seccomp') and not walls.names(probe, wall)):
            continue
        print(json.dumps([probe.name, run(probe)]), flush=True)


if __name__ == '__main__':
    main()
