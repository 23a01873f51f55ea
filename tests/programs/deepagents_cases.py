# SPDX-License-Identifier: Apache-2.0
"""LangChain's deep agents, the real package: the integration tests that its partners' sandboxes pass."""
import os
import pathlib
import shutil
import subprocess
import unittest

from clients_cases import HERE, PROGRAMS, Programs
from harness import BIN

PYTHON = os.environ.get('PROGRAMS_TEST_DEEPAGENTS', '')
LIB = os.environ.get('PROGRAMS_TEST_LIB', '') + '/deepagents/lib'


@unittest.skipUnless(PYTHON, 'deepagents: it cannot be had')
class DeepAgents(Programs):
    def test_the_integration_tests(self):
        own = pathlib.Path(self.base, 'own')
        for name in ('python', 'deepagents'):
            shutil.copytree(PROGRAMS / name, own, dirs_exist_ok=True)
        env = {**self.env, 'PYTHONPATH': f'{own}:{LIB}', 'PYTHONDONTWRITEBYTECODE': '1', 'AGENTIC_CI': BIN}
        done = subprocess.run([PYTHON, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', '-p', 'no:benchmark', '-c', '/dev/null',
                               '-o', 'asyncio_mode=auto', str(HERE / 'backend_check.py')], env=env, cwd=self.work,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout.splitlines()[-1], '^79 passed, 7 xfailed', done.stdout)
