#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A gateway of the run's own for a user who is not root: inside the namespaces of that user's podman. The user, and what a host gives an
ordinary user for rootless podman, are in a mount namespace of the test's own.

usage: rootless_test.py BINARY TESTBED CACHE [unittest arguments]
"""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import unittest

from real import PROGRAMS, Case, Installed, main, read, wait_until

USER = 60123
RUNTIME = f'/run/user/{USER}'  # Nothing else of /run is in podman's namespace of networks.
AS_USER = ['setpriv', '--reuid', str(USER), '--regid', str(USER), '--clear-groups', '--']
INSIDE = ['podman', 'unshare', '--rootless-netns']


def make_user():
    """Root is in a mount namespace of its own."""
    subprocess.run(['mount', '-t', 'tmpfs', '-o', 'mode=755', 'tmpfs', '/run'], check=True)
    os.makedirs(RUNTIME, 0o755)
    os.mkdir('/run/etc')
    for name, line in (('passwd', f'someone:x:{USER}:{USER}::{RUNTIME}:/bin/sh'), ('group', f'someone:x:{USER}:'),
                       ('subuid', 'someone:700000:65536'), ('subgid', 'someone:700000:65536')):
        there = pathlib.Path('/etc', name)
        pathlib.Path('/run/etc', name).write_text((there.read_text() if there.exists() else '') + line + '\n')
        there.touch()
        subprocess.run(['mount', '--bind', f'/run/etc/{name}', there], check=True)
    os.mknod('/run/etc/tun', 0o20666, os.makedev(10, 200))
    os.chmod('/run/etc/tun', 0o666)
    subprocess.run(['mount', '--bind', '/run/etc/tun', '/dev/net/tun'], check=True)
    os.chown(RUNTIME, USER, USER)


def of_user():
    """The processes of that user."""
    for process in pathlib.Path('/proc').glob('[0-9]*'):
        with contextlib.suppress(OSError):
            if process.stat().st_uid == USER:
                yield int(process.name)


class OfUser(Installed):
    """The programs and the image as that user has them."""

    def __init__(self, testbed, cache, base, more=None):
        os.chmod(base, 0o755)
        os.chown(base, USER, USER)
        super().__init__(testbed, cache, base, more)
        shutil.copytree(self.programs, base + '/programs')  # Where they lie, only root may look.
        self.programs = base + '/programs'

    def podman(self, *arguments):
        environment = {'PATH': os.environ['PATH'], 'HOME': self.base, 'XDG_RUNTIME_DIR': RUNTIME, **self.variables}
        return subprocess.run([*AS_USER, 'podman', *arguments], env=environment, cwd=self.base, check=True, capture_output=True, text=True,
                              timeout=600).stdout

    def remove(self):
        for process in of_user():  # Those that keep the namespaces, and their network.
            os.kill(process, signal.SIGKILL)
        super().remove()


class Rootless(Case):
    @classmethod
    def setUpClass(cls):
        if not cls.INSTALLED:
            raise unittest.SkipTest('testbed: OpenShell cannot run here')
        cls.BIN = cls.INSTALLED.base + '/agentic-ci'
        shutil.copy(Case.BIN, cls.BIN)

    def setUp(self):
        super().setUp()
        self.env |= {'XDG_RUNTIME_DIR': RUNTIME, 'HOME': self.INSTALLED.base}  # Where that user's podman has its images.
        subprocess.run(['chown', '-R', f'{USER}:{USER}', self.base], check=True)

    def tearDown(self):
        super().tearDown()
        self.assertEqual(self.states(), [])

    def states(self):
        return list(pathlib.Path(RUNTIME, 'agentic-ci/.openshell').glob('aci-*'))

    def runs(self, process):
        return super().runs(process) and 'slirp4netns' not in self.command_line(process)  # Podman keeps it for the next.

    def start(self, *words, inside=INSIDE, **env):
        return subprocess.Popen([*AS_USER, *inside, self.BIN, *words], cwd=self.work, env=self.env | env, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_run(self):
        """The command that the error names is as good as root's."""
        script = (f'id -un; curl -sS -m 20 {self.url("/allowed")}; curl -sS -m 20 http://denied.invalid/; echo new >n.txt; mkdir d2; exit 3')
        _, errors = self.end(self.start('run', *self.options('r'), '--', 'true', inside=[]), 69)
        self.assertIn('hint: podman unshare --rootless-netns agentic-ci', errors)
        # The machine of the gateway is that namespace: a server is there, not on the host's network.
        server = ['sh', '-c', f'python3 -m http.server {self.server.port} --directory {self.base}/served & s=$!; "$@"; r=$?; kill $s; exit $r', 'sh']
        served = pathlib.Path(self.base, 'served/allowed')
        served.parent.mkdir()
        served.write_text('hello')
        output, errors = self.end(self.start('run', *self.options('r'), '--', 'sh', '-c', script, inside=[*INSIDE, *server]), 3)
        self.assertEqual(output.split()[0], 'sandbox')
        self.assertIn('hello', output)
        self.assertEqual([d['host'] for d in self.record('r')['denials']], ['denied.invalid'])
        self.assertIn('+new', read(f'{self.base}/r/changes.patch'))
        self.assertEqual(self.controls('r')['network'], 'enforced')
        self.assertEqual(self.INSTALLED.podman('ps', '-aq'), '')

    def test_lasting(self):
        self.call('setup', *self.options('r'))
        self.call('exec', '--', 'sh', '-c', 'echo one >made.txt')
        self.assertEqual(self.call('exec', '--', 'cat', 'made.txt'), 'one\n')
        self.call('stop', '--apply')
        self.assertEqual(read(self.work / 'made.txt'), 'one\n')
        self.assertEqual(os.stat(self.work / 'made.txt').st_uid, USER)

    def test_killed(self):
        """What a killed run left is gone after the next command."""
        run = self.start('run', *self.options('r'), '--', 'sh', '-c', 'echo begun; sleep 100')
        self.assertEqual(run.stdout.readline(), 'begun\n')
        state = self.state()
        owner = int(read(state / 'lock'))
        os.kill(owner, 9)
        run.communicate(timeout=600)
        self.assertTrue(wait_until(lambda: not os.path.exists(f'/proc/{owner}')))
        # Podman's last process for the container may come back to a part of it once more.
        self.assertTrue(wait_until(lambda: self.call('sandbox', 'list') == '' and not state.exists()))
        self.assertEqual(self.INSTALLED.podman('ps', '-aq'), '')


if __name__ == '__main__':
    if os.geteuid() == 0 and 'PRIVATE' not in os.environ:
        os.execvpe('unshare', ['unshare', '--mount', '--propagation', 'private', sys.executable, *sys.argv], os.environ | {'PRIVATE': '1'})
    if os.geteuid() == 0:
        make_user()
    PROGRAMS += ('newuidmap', 'slirp4netns')
    main(sys.argv, installed=OfUser)
