# SPDX-License-Identifier: Apache-2.0
"""The clients: a user's program in each language, installed and compiled as a user would."""
import os
import pathlib
import shutil
import subprocess
import unittest

from harness import BIN, BUSY_SECONDS, Case, processes, read, wait_until

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = HERE.parent.parent / 'examples/programs'
TYPESCRIPT = os.environ.get('PROGRAMS_TEST_TYPESCRIPT', '')


class Programs(Case):
    def setUp(self):
        super().setUp()
        self.home = pathlib.Path(self.base, 'home')
        shutil.copytree(os.environ['HOME'], self.home)
        self.tools = {**os.environ, 'HOME': str(self.home), 'TMPDIR': self.base}
        self.env['AGENTIC_CI_STORE'] = self.base + '/store'

    def build(self, *command, cwd=None):
        done = subprocess.run(command, cwd=cwd or self.base, env=self.tools, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def check(self, *command):
        """The program does what its user wants, and is nowhere when it is killed."""
        done = subprocess.run([*command, BIN], env=self.env, cwd=self.work, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, 'done\n'), done.stderr)
        self.assertEqual(read(self.work + '/a.txt'), 'changed\n')
        self.assertEqual(self.names(), [])
        with subprocess.Popen([*command, BIN, 'hold'], env=self.env, cwd=self.work, stdout=subprocess.PIPE) as own:
            self.assertEqual(own.stdout.readline(), b'holds\n')
            self.assertTrue(wait_until(lambda: processes('sleep\x001000')))
            own.kill()
        self.assertTrue(wait_until(lambda: not processes(self.marker), BUSY_SECONDS), processes(self.marker))

    def test_python(self):
        venv = self.base + '/venv'
        self.build('/usr/bin/python3', '-m', 'venv', venv)
        source = shutil.copytree(PROGRAMS / 'python', self.base + '/python')
        try:
            self.build(venv + '/bin/pip', 'install', '-q', '--disable-pip-version-check', source)
        except AssertionError as error:
            if 'setuptools' in str(error) and 'No matching distribution' in str(error):
                self.skipTest('pip: setuptools cannot be had')
            raise
        self.check(venv + '/bin/python', '-W', 'error', str(HERE / 'scenario.py'))

    @unittest.skipUnless(TYPESCRIPT, 'npm: the compiler cannot be had')
    def test_typescript(self):
        place = pathlib.Path(self.base, 'node')
        package = shutil.copytree(PROGRAMS / 'typescript', place / 'node_modules/agentic-ci-client')
        shutil.copytree(TYPESCRIPT + '/@types', place / 'node_modules/@types')
        shutil.copytree(TYPESCRIPT + '/undici-types', place / 'node_modules/undici-types')
        self.build('node', TYPESCRIPT + '/typescript/bin/tsc', cwd=package)
        self.check('node', shutil.copy(HERE / 'scenario.mjs', place))

    @unittest.skipUnless(shutil.which('go'), 'go: no Go here')
    def test_go(self):
        place = pathlib.Path(self.base, 'go')
        shutil.copytree(HERE / 'go', place / 'main')
        shutil.copytree(PROGRAMS / 'go', place / 'agenticci')
        (place / 'go.work').write_text('go 1.21\n\nuse (\n\t./main\n\t./agenticci\n)\n')
        self.tools.update(GOFLAGS='-mod=readonly', GOTOOLCHAIN='local', GOPROXY='off')
        self.build('go', 'vet', '.', cwd=place / 'agenticci')
        self.build('go', 'build', '-o', place / 'program', '.', cwd=place / 'main')
        self.check(place / 'program')
