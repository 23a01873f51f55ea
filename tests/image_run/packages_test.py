#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""apt-get in a lasting sandbox of a directory that mmdebstrap made: what it installs works, is kept by a snapshot, and costs no protection.

usage: packages_test.py BINARY [TEST...]
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BINARY = os.path.abspath(sys.argv.pop(1))
SOURCE = pathlib.Path(__file__).resolve().parents[2]
USER = 1000 if os.geteuid() == 0 else os.geteuid()
SECONDS = 300
PACKAGE = 'hello'  # Depends on nothing that the base is without.


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Not beneath /tmp: the sandbox has one of its own.
        cls.top = pathlib.Path(tempfile.mkdtemp(prefix='packages-', dir='/var/tmp'))
        cls.addClassCleanup(shutil.rmtree, cls.top, ignore_errors=True)
        cls.top.chmod(0o755)
        sources = cls.top / 'sources.list'
        sources.write_text(subprocess.run([SOURCE / 'tools/debian-sources'], check=True, capture_output=True, text=True).stdout)
        made = subprocess.run(['mmdebstrap', '--quiet', '--variant=apt', '--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr',
                               'bookworm', cls.top / 'root', sources],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise unittest.SkipTest(f'network: mmdebstrap fails: {made.stderr.strip().splitlines()[-1:]}')
        shutil.copy(BINARY, cls.top / 'agentic-ci')  # Where the user may go.
        cls.home = cls.top / 'home'
        cls.home.mkdir()

    def setUp(self):
        self.checkout = self.home / 'checkout'
        shutil.rmtree(self.checkout, ignore_errors=True)
        self.checkout.mkdir()

    def configure(self, text):
        (self.checkout / '.agentic-ci').mkdir(exist_ok=True)
        (self.checkout / '.agentic-ci/config.yml').write_text(text)
        (self.checkout / '.agentic-ci/openshell-policy.yml').write_text('defaults: minimal\n')
        git = ['git', '-c', 'safe.directory=*', '-c', 'user.name=a', '-c', 'user.email=a@example.com', '-C', self.checkout]
        for line in (['init', '-q'], ['add', '-A'], ['commit', '-qm', 'one', '--allow-empty']):
            subprocess.run([*git, *line], check=True)

    def tool(self, *line, code=0, user=USER, **variables):
        if os.geteuid() == 0:
            subprocess.run(['chown', '-R', f'{user}:{user}', self.home], check=True)
        become = [] if os.geteuid() == user else ['setpriv', f'--reuid={user}', f'--regid={user}', '--clear-groups']
        done = subprocess.run([*become, self.top / 'agentic-ci', *line], cwd=self.checkout, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=SECONDS, check=False,
                              env={'PATH': '/usr/bin:/bin', 'HOME': str(self.home), **variables})
        if code is not None:
            self.assertEqual(done.returncode, code, f'{line}: {done.stdout[-2000:]}{done.stderr[-4000:]}')
        return done

    def event(self):
        path = self.home / 'event.json'
        path.write_text('{"repository": {"default_branch": "main"}}')
        return path

    def base(self, user=USER, **_):
        """The root file system, as files of that user."""
        if os.geteuid() != 0:
            return self.top / 'root'
        own = self.top / f'own-{user}'
        if not own.exists():
            subprocess.run(['cp', '-a', self.top / 'root', own], check=True)
            subprocess.run(['chown', '-R', f'{user}:{user}', own], check=True)
        return own

    def create(self, name, **variables):
        self.addCleanup(self.tool, 'sandbox', 'delete', name, code=None, **variables)
        return self.tool('sandbox', 'create', '--name', name, '--image', f'dir:{self.base(**variables)}', '--report-dir', self.home / f'report-{name}', **variables)

    def inside(self, name, *line, code=0, **variables):
        return self.tool('sandbox', 'exec', name, '--timeout', f'{SECONDS}s', '--', *line, code=code, **variables).stdout

    def install_and_keep(self, **variables):
        self.configure('ecosystems: [debian]\n')
        self.create('packages-apt', **variables)
        self.inside('packages-apt', 'apt-get', 'update', **variables)
        self.inside('packages-apt', 'apt-get', 'install', '-y', '--no-install-recommends', PACKAGE, 'openssh-client', **variables)
        self.assertIn('Hello', self.inside('packages-apt', PACKAGE, **variables))
        # openssh-client has a group and a program with its rights: dpkg changed its owner, as far as it knows.
        self.assertIn('ssh', self.inside('packages-apt', 'getent', 'group', '_ssh', **variables))
        self.tool('sandbox', 'snapshot', 'packages-apt', '--tag', 'with-hello', **variables)
        self.tool('sandbox', 'delete', 'packages-apt', **variables)
        self.create('packages-again', **variables)
        self.inside('packages-again', PACKAGE, code=127, **variables)
        self.tool('sandbox', 'restore', 'packages-again', 'with-hello', **variables)
        self.assertIn('Hello', self.inside('packages-again', PACKAGE, **variables))
        self.assertIn('ok installed', self.inside('packages-again', 'dpkg-query', '-W', '-f', '${Status}', PACKAGE, **variables))
        self.assertFalse((self.top / 'root/usr/bin' / PACKAGE).exists())
        self.tool('sandbox', 'delete', 'packages-again', **variables)
        image = json.loads((self.home / 'report-packages-again/run.json').read_text())['image']
        self.assertEqual((image['reference'], image['signer'], image['digest']), (f'dir:{self.base(**variables)}', '', ''))

    def test_packages_are_installed_into_the_layer_of_a_user(self):
        self.install_and_keep()

    @unittest.skipIf(os.geteuid() != 0, 'needs root')
    def test_packages_are_installed_into_the_layer_of_root(self):
        self.install_and_keep(user=0)

    def test_its_root_has_no_right_that_the_agent_has_not_otherwise(self):
        self.configure('ecosystems: [debian]\n')
        self.create('packages-root')
        script = '''id -u; grep CapEff /proc/self/status; touch /file; chown 1234:1234 /etc/hostname; echo "chown $?"; stat -c %u /etc/hostname
for at in /proc/sys/net/ipv4/ip_forward /proc/sys/kernel/core_pattern /dev/x /proc/sysrq-trigger /sandbox/../boot/x; do
  ( echo 1 >$at ) 2>/dev/null && echo "written $at"; done
mount -t tmpfs none /mnt 2>/dev/null && echo mounted; mknod /tmp/sda b 8 0; echo "mknod $?"; test -e /tmp/sda && echo "a device"
chroot / true 2>/dev/null && echo chroot; unshare -r true 2>/dev/null && echo namespace
echo x >/usr/bin/x && echo changed; true'''
        said = self.inside('packages-root', 'sh', '-c', script).splitlines()
        self.assertEqual(said, ['0', 'CapEff:\t0000000000000000', 'chown 0', '0', 'mknod 0', 'changed'])
        # The control: without the ecosystem, neither the id nor the system.
        self.configure('{}\n')
        self.create('packages-user')
        said = self.inside('packages-user', 'sh', '-c', 'id -u; echo x 2>/dev/null >/usr/bin/x || echo kept; chown 0:0 /tmp 2>/dev/null || echo refused')
        self.assertEqual(said.split(), ['1000', 'kept', 'refused'])
        self.inside('packages-user', 'apt-get', 'update', code=100)

    def test_a_policy_with_an_id_of_its_own_keeps_it(self):
        self.configure('ecosystems: [debian]\n')
        policy = self.home / 'policy.yml'
        policy.write_text('version: 1\nfilesystem_policy: {include_workdir: true, read_only: [/usr, /etc]}\n'
                          'process: {run_as_user: "1234", run_as_group: "1234"}\n')
        planned = self.tool('run', '--policy', policy, '--image', f'dir:{self.base()}', '--plan-only', '--', 'true')
        self.assertIn('packages cannot be installed', planned.stdout + planned.stderr)

    def test_a_directory_is_for_laptops(self):
        self.configure('{}\n')
        line = ('run', '--image', f'dir:{self.base()}', '--report-dir', self.home / 'report')
        done = self.tool(*line, '--', 'cat', '/etc/debian_version')
        self.assertTrue(done.stdout.startswith('12.'), done.stdout)
        self.assertIn('image not verified', done.stderr)
        self.assertIn('not signed', (self.home / 'report/summary.md').read_text())
        done = self.tool(*line, '--policy-ref', 'HEAD', '--', 'true', code=77, GITHUB_ACTIONS='true', GITHUB_EVENT_PATH=str(self.event()),
                         GITHUB_EVENT_NAME='workflow_dispatch', GITHUB_ACTOR='me', GITHUB_REPOSITORY='acme/site', GITHUB_SHA='a' * 40,
                         GITHUB_REF='refs/heads/main')
        self.assertIn('is not signed', done.stderr)
        for path in ('/', self.home, self.checkout):
            done = self.tool('run', '--image', f'dir:{path}', '--', 'true', code=65)
            self.assertIn('must not read', done.stderr)
        (self.checkout / 'root').symlink_to('/usr')
        done = self.tool('run', '--image', 'dir:root', '--', 'true', code=65)
        self.assertIn('a symbolic link in a checkout is not followed', done.stderr)
        if os.geteuid() == 0:
            done = self.tool('run', '--image', f'dir:{self.top}/root', '--', 'true', code=65)
            self.assertIn('another user', done.stderr)
        self.tool('run', '--image', 'dir:/nowhere', '--', 'true', code=66)
        self.tool('image', 'verify', f'dir:{self.top}/root', code=69)

    def test_without_an_image_there_is_no_system_to_install_into(self):
        self.configure('ecosystems: [debian]\n')
        done = self.tool('run', '--', 'true', code=69)
        self.assertIn('--image', done.stderr)


if __name__ == '__main__':
    unittest.main(verbosity=2)
