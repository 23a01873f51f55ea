# SPDX-License-Identifier: Apache-2.0
"""The clients: a user's program in each language, installed and compiled as a user would."""
import os
import pathlib
import subprocess
import unittest

from harness import BIN, BUSY_SECONDS, Case, processes, read, wait_until

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = HERE.parent.parent / 'examples/programs'
PYTHON, NODE, GO = (os.environ.get('PROGRAMS_TEST_' + name, '') for name in ('PYTHON', 'NODE', 'GO'))


class Programs(Case):
    def setUp(self):
        super().setUp()
        self.env['AGENTIC_CI_STORE'] = self.base + '/store'


class Clients(Programs):
    def check(self, *command):
        """The program does what its user wants, and leaves nothing when it is killed."""
        done = subprocess.run([*command, BIN], env=self.env, cwd=self.work, capture_output=True, text=True, timeout=BUSY_SECONDS)
        self.assertEqual((done.returncode, done.stdout), (0, 'done\n'), done.stderr)
        self.assertEqual(read(self.work + '/a.txt'), 'changed\n')
        self.assertEqual(self.names(), [])
        nap = self.nap(1000)
        with subprocess.Popen([*command, BIN, nap], env=self.env, cwd=self.work, stdout=subprocess.PIPE) as own:
            self.assertEqual(own.stdout.readline(), b'holds\n')
            self.assertTrue(wait_until(lambda: self.napping(1000)))
            own.kill()
        self.assertTrue(wait_until(lambda: not processes(self.marker), BUSY_SECONDS), processes(self.marker))

    @unittest.skipUnless(PYTHON, 'pip: setuptools cannot be had')
    def test_python(self):
        self.check(PYTHON, '-W', 'error', str(HERE / 'scenario.py'))

    @unittest.skipUnless(NODE, 'npm: the compiler cannot be had')
    def test_typescript(self):
        self.check('node', NODE)

    @unittest.skipUnless(GO, 'go: no Go here')
    def test_go(self):
        self.check(GO)
