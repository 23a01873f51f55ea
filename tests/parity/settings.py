# SPDX-License-Identifier: Apache-2.0
"""Runs a project's tests: outside the sandbox as an ordinary user, and in each tier."""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

SECONDS = 150
OUTSIDE, TIERS = 'outside', ('namespaces', 'landlock')
PATH = '/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
ACCOUNT = 1000  # The number that the agent has in tier `namespaces`.
POLICY = '''version: 1
filesystem_policy:
  include_workdir: true
  read_only: [/usr, /lib, /lib64, /bin, /sbin, /proc, /sys, /etc, /dev/urandom, /dev/random, /dev/zero, /dev/full, {place}]
  read_write: [/tmp, /dev/null, /dev/tty, /dev/ptmx, /dev/pts, /dev/shm]
'''
# Outside, in a mount namespace of its own: the copy at the checkout's path, an empty /tmp, and an account with a name.
ENTER = '''mount --bind "$1/checkout" "$2" && mount --bind "$1/tmp" /tmp && mount --bind "$1/passwd" /etc/passwd &&
mount --bind "$1/group" /etc/group && cd "$2" && shift 2 && exec setpriv --reuid 1000 --regid 1000 --clear-groups "$@"'''


def variables(home, temporary):
    """The environment of the tests outside; it is like the one inside."""
    return {'PATH': PATH, 'HOME': home, 'TMPDIR': temporary, 'USER': 'sandbox', 'LOGNAME': 'sandbox', 'LANG': 'C.UTF-8',
            'TERM': 'dumb', 'CI': 'true', 'SHELL': '/bin/bash'}


def run(command, log, seconds, **options):
    """Runs to the end, or for so long; answers the seconds and what was printed."""
    start = time.monotonic()
    with open(log, 'wb') as printed, open(f'{log}.err', 'wb') as stderr:
        # What the tests print goes to a pipe, as it does inside.
        cat = subprocess.Popen(['cat'], stdin=subprocess.PIPE, stdout=printed)
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=cat.stdin, stderr=stderr, start_new_session=True, **options)
        cat.stdin.close()
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(seconds)
        finally:  # Also when this program is told to stop.
            took = time.monotonic() - start
            for number, pause in ((signal.SIGTERM, 20), (signal.SIGKILL, None)):
                with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
                    os.killpg(child.pid, number)
                    child.wait(pause)
            child.wait()
            with contextlib.suppress(subprocess.TimeoutExpired):
                cat.wait(5)  # A process that left the session may still have the pipe.
            cat.kill()
            cat.wait()
    return took, pathlib.Path(log).read_text(errors='replace')


def script(place, project):
    text = (place / 'test').read_text().replace('@PLACE@', str(place))
    for word, key in (('@TEST@', 'test'), ('@ARGUMENTS@', 'arguments')):
        text = text.replace(word, str(project.get(key, '')))
    return ['/bin/sh', '-c', text, project['name']]


def outside(project, place, log):
    """Without the sandbox, on a copy of the checkout: by root as the account that the agent has in tier `namespaces`."""
    given = {name: str(value) for name, value in project.get('environment', {}).items()}
    if os.geteuid():
        with tempfile.TemporaryDirectory(prefix='parity-') as scratch:
            os.makedirs(f'{scratch}/home')
            os.makedirs(f'{scratch}/tmp')
            shutil.copytree(place / 'checkout', f'{scratch}/checkout', symlinks=True)
            return run(script(place, project), log, SECONDS, cwd=f'{scratch}/checkout',
                       env=variables(f'{scratch}/home', f'{scratch}/tmp') | given)
    scratch = place / 'copy'
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    subprocess.run(['cp', '-a', place / 'checkout', scratch / 'checkout'], check=True)
    subprocess.run(['chown', '-R', f'{ACCOUNT}:{ACCOUNT}', scratch / 'checkout'], check=True)
    for file, line in (('passwd', f'sandbox:x:{ACCOUNT}:{ACCOUNT}::/tmp/home:/bin/bash'), ('group', f'sandbox:x:{ACCOUNT}:')):
        others = [other for other in pathlib.Path('/etc', file).read_text().splitlines() if f':{ACCOUNT}:' not in other]
        (scratch / file).write_text('\n'.join([*others, line]) + '\n')
    for path in (scratch / 'tmp', scratch / 'tmp/home'):
        path.mkdir()
        os.chown(path, ACCOUNT, ACCOUNT)
    (scratch / 'tmp').chmod(0o1777)
    try:
        return run(['unshare', '--mount', '--propagation', 'private', '/bin/sh', '-c', ENTER, 'enter', scratch, place / 'checkout',
                    *script(place, project)], log, SECONDS, env=variables('/tmp/home', '/tmp') | given)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def inside(tier, binary, project, place, log):
    """In a tier of the sandbox. What the tests need beside the checkout is read-only there."""
    policy = place / 'policy.yml'
    policy.write_text(POLICY.format(place=place))
    given = [word for name, value in project.get('environment', {}).items() for word in ('--env', f'{name}={value}')]
    with tempfile.TemporaryDirectory(prefix='report-', dir=place.parent) as reports:
        command = [binary, 'run', '--isolation', tier, '--workdir', place / 'checkout', '--policy', policy, '--quiet',
                   '--report-dir', f'{reports}/report', '--timeout', f'{SECONDS}s', *given, '--', *script(place, project)]
        took = run(command, log, SECONDS + 60, env={**os.environ, 'PATH': PATH})
        shutil.copy(f'{reports}/report/run.json', f'{log}.json') if os.path.exists(f'{reports}/report/run.json') else None
        return took
