#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the index says of a file: indexes that libgit2 cannot read, and sparse checkouts. Patches are applied by git.

index_test.py PROBE
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

PROBE = os.path.abspath(sys.argv.pop(1))
KINDS = {
    'plain': [],
    'split': [('config', 'core.splitIndex', 'true'), ('update-index', '--split-index')],
    'sparse': [('sparse-checkout', 'set', '--cone', 'build')],
    'sparse index': [('sparse-checkout', 'set', '--cone', '--sparse-index', 'build')],
}


class Indexes(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='index-')
        self.addCleanup(shutil.rmtree, self.dir)
        self.env = {'PATH': os.environ['PATH'], 'HOME': self.dir, 'GIT_CONFIG_NOSYSTEM': '1', 'GIT_CONFIG_GLOBAL': self.dir + '/gitconfig'}
        with open(self.dir + '/gitconfig', 'w') as file:
            file.write('[user]\nname = t\nemail = t@localhost\n[init]\ndefaultBranch = main\n')
        self.made, self.upper, self.fresh = self.dir + '/made', self.dir + '/upper', self.dir + '/fresh'

    def git(self, directory, *arguments):
        return subprocess.run(['git', *arguments], cwd=directory, env=self.env, capture_output=True, check=True, text=True).stdout

    def write(self, root, files):
        for path, content in files.items():
            os.makedirs(os.path.dirname(f'{root}/{path}'), exist_ok=True)
            with open(f'{root}/{path}', 'wb') as file:
                file.write(content)

    def prepare(self, steps):
        for path in (self.made, self.upper, self.fresh):
            shutil.rmtree(path, ignore_errors=True)
        os.mkdir(self.made)
        self.git(self.made, 'init', '-q')
        self.write(self.made, {'.gitignore': b'build/\n', 'build/rules.mk': b'rules\n', 'build/gone.mk': b'gone\n', 'b/f': b'f\n', 'b/g': b'g\n',
                               '.gitattributes': b'*.t text=auto\n', 'build/crlf.t': b'a\r\n'})
        self.git(self.made, 'add', '-f', '.gitignore', 'build', 'b')
        self.git(self.made, 'add', '.gitattributes')
        self.git(self.made, 'commit', '-qm', 'first')
        for step in steps:
            self.git(self.made, *step)
        os.mkdir(self.upper)

    def capture(self):
        told = subprocess.run([PROBE, 'capture', self.upper, self.made, self.dir + '/patch'], capture_output=True, check=True, text=True).stdout
        self.assertEqual(told.split()[-1], '1', told)
        return told

    def applied(self):
        """What is staged after the patch was applied to a clone."""
        self.git(self.dir, 'clone', '-q', self.made, self.fresh)
        if os.path.getsize(self.dir + '/patch'):
            self.git(self.fresh, 'apply', '--index', self.dir + '/patch')
        return self.git(self.fresh, 'diff', '--cached', '--name-status', '--no-renames').split()

    def test_tracked_files_under_an_ignore_rule_are_captured(self):
        for kind, steps in KINDS.items():
            with self.subTest(kind=kind):
                self.prepare(steps)
                self.write(self.upper, {'build/rules.mk': b'rules\nfixed\n', 'build/x.o': b'x', 'build/crlf.t': b'a\r\nb\r\n'})
                os.mknod(self.upper + '/build/gone.mk', 0o020000, os.makedev(0, 0))
                self.capture()
                self.assertEqual(self.applied(), ['M', 'build/crlf.t', 'D', 'build/gone.mk', 'M', 'build/rules.mk'])

    def test_what_a_sparse_checkout_leaves_out_is_the_base_of_its_change(self):
        for kind in ('sparse', 'sparse index'):
            with self.subTest(kind=kind):
                self.prepare(KINDS[kind])
                self.assertFalse(os.path.exists(self.made + '/b'))
                self.write(self.upper, {'b/f': b'f\n', 'b/g': b'g\nfixed\n', 'b/new': b'new\n'})
                self.capture()
                self.assertEqual(self.applied(), ['M', 'b/g', 'A', 'b/new'])
                subprocess.run([PROBE, 'apply', self.made, self.dir + '/patch'], check=True)
                self.assertEqual(sorted(os.listdir(self.made + '/b')), ['g', 'new'])
                with open(self.made + '/b/g', 'rb') as file:
                    self.assertEqual(file.read(), b'g\nfixed\n')

    def test_what_the_agent_adds_is_captured_whatever_the_rules_say(self):
        for kind, steps in KINDS.items():
            for version in ('2', '4') if kind == 'plain' else ('2',):
                for commit in (False, True):
                    with self.subTest(kind=kind, version=version, commit=commit):
                        self.prepare(steps)
                        outside = self.dir + '/outside'
                        shutil.rmtree(outside, ignore_errors=True)
                        shutil.copytree(self.made, outside)
                        files = {'build/new/index.js': b'b\n', 'build/new/other.js': b'o\n', 'build/planned': b'p\n'}
                        self.write(outside, files)
                        self.write(self.upper, files)
                        self.git(outside, 'add', '-f', 'build/new/index.js')
                        self.git(outside, 'add', '-f', '-N', 'build/planned')  # An entry of version 3.
                        self.git(outside, 'update-index', '--index-version', version)
                        if commit:
                            self.git(outside, 'commit', '-qm', 'work')
                        os.mkdir(self.upper + '/.git')
                        for name in os.listdir(outside + '/.git'):
                            if name == 'index' or name.startswith('sharedindex.'):
                                shutil.copy(f'{outside}/.git/{name}', f'{self.upper}/.git/{name}')
                        self.capture()
                        self.assertEqual(self.applied(), ['A', 'build/new/index.js', 'A', 'build/planned'])

    def test_a_file_that_was_removed_by_hand_is_new(self):
        for kind in ('plain', 'split'):
            with self.subTest(kind=kind):
                self.prepare(KINDS[kind])
                shutil.rmtree(self.made + '/b')
                self.write(self.upper, {'b/g': b'g\nfixed\n'})
                self.assertIn('0 100644 0 2 0 b/g', self.capture())


if __name__ == '__main__':
    unittest.main(verbosity=1)
