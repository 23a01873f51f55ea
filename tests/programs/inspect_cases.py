# SPDX-License-Identifier: Apache-2.0
"""Inspect, the real package: its own checks of sandboxes, and an evaluation."""
import os
import pathlib
import re
import shutil
import subprocess
import unittest

from clients_cases import HERE, PROGRAMS, Programs
from harness import BIN

PYTHON = os.environ.get('PROGRAMS_TEST_INSPECT', '')
LIB = os.environ.get('PROGRAMS_TEST_LIB', '') + '/inspect/lib'
CHECKS = 44  # Of inspect_ai 0.3.285.


@unittest.skipUnless(PYTHON, 'inspect: it cannot be had')
class Inspect(Programs):
    def setUp(self):
        super().setUp()
        # As `pip install` would put them, with the entry point: the packages themselves, from the checkout.
        own = pathlib.Path(self.base, 'own')
        for name in ('python', 'inspect'):
            shutil.copytree(PROGRAMS / name, own, dirs_exist_ok=True)
        information = own / 'agentic_ci_inspect-0.1.0.dist-info'
        information.mkdir()
        (information / 'METADATA').write_text('Metadata-Version: 2.1\nName: agentic-ci-inspect\nVersion: 0.1.0\n')
        points = re.search(r'\[project\.entry-points\.(\w+)\]\n((?:\w+ = .*\n)+)', (own / 'pyproject.toml').read_text())
        (information / 'entry_points.txt').write_text(f'[{points[1]}]\n{points[2]}'.replace('"', ''))
        self.env.update(PYTHONPATH=f'{own}:{LIB}', AGENTIC_CI=BIN, PYTHONDONTWRITEBYTECODE='1', INSPECT_LOG_DIR=self.base + '/logs',
                        INSPECT_DISPLAY='plain', HOME=self.base)

    def run_in_work(self, *command):
        return subprocess.run([PYTHON, *command], env=self.env, cwd=self.base, capture_output=True, text=True)

    def test_its_own_checks(self):
        done = self.run_in_work('-m', 'pytest', '-q', '-rxX', '-p', 'no:cacheprovider', '-c', '/dev/null',
                                '-o', 'asyncio_mode=auto', str(HERE / 'self_check.py'))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        counts = dict(reversed(pair.split()) for pair in done.stdout.splitlines()[-1].strip('= ').split(' in ')[0].split(', '))
        counts.pop('warnings', None)
        self.assertEqual(counts, {'passed': str(CHECKS - 1), 'xfailed': '1'}, done.stdout)
        self.assertIn('test_exec_as_user', done.stdout)

    def test_an_evaluation(self):
        done = self.run_in_work(str(HERE / 'evaluation.py'))
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1:]), (0, ['done']), done.stdout + done.stderr)
