#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""actionlint and zizmor find nothing in the workflows and actions of this repository and of the examples.

usage: lint_test.py ACTIONLINT ZIZMOR
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ACTIONLINT, ZIZMOR = sys.argv[1:3]
del sys.argv[1:3]
COMMIT = '@' + '0123456789abcdef' * 2 + '01234567'


class Lint(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)
        # Gitea's workflows are not among them: their actions are named by URL.
        self.workflows = [self.copy(path) for path in [*ROOT.glob('.github/workflows/*.yml'),
                                                       *ROOT.glob('examples/*/.github/workflows/*.yml')]]
        readme = re.search(r'```yaml\n# \.github/workflows/agent\.yml\n(.*?)```', (ROOT / 'README.md').read_text(), re.DOTALL)[1]
        self.readme = self.write('readme/.github/workflows/agent.yml', readme)
        self.actions = [self.copy(ROOT / name) for name in ('action.yml', 'post/action.yml')]
        self.assertGreater(len(self.workflows), 8)

    def copy(self, path):
        return self.write(path.relative_to(ROOT), path.read_text())

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace('@COMMIT', COMMIT))
        return path

    def run_tool(self, *command):
        return subprocess.run(command, cwd=self.root, capture_output=True, text=True, timeout=600)

    def zizmor(self, *paths, persona='pedantic'):
        return self.run_tool(ZIZMOR, '--persona', persona, '--offline', '--no-progress', '-q', '-c', ROOT / 'tests/action/zizmor.yml', *paths)

    def test_actionlint_finds_nothing(self):
        run = self.run_tool(ACTIONLINT, '-no-color', *self.workflows, self.readme)
        self.assertEqual((run.returncode, run.stdout), (0, ''), run.stderr)

    def test_zizmor_finds_nothing(self):
        run = self.zizmor(*self.workflows, *self.actions)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        # Twelve lines leave out what a pedant asks for: reasons beside permissions, and a concurrency group.
        run = self.zizmor(self.readme, persona='regular')
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_they_find_what_is_wrong(self):
        wrong = self.write('wrong/.github/workflows/x.yml', '''
on: pull_request_target
jobs:
  a:
    runs-on: ubuntu-24.04
    steps:
      - uses: actions/checkout@v4
      - run: echo ${{ github.event.pull_request.title }} ${{ nonsense.x }}
''')
        self.assertIn('nonsense', self.run_tool(ACTIONLINT, '-no-color', wrong).stdout)
        found = self.zizmor(wrong)
        self.assertNotEqual(found.returncode, 0)
        for name in ('template-injection', 'unpinned-uses', 'dangerous-triggers', 'excessive-permissions', 'artipacked'):
            self.assertIn(name, found.stdout)

    def test_scripts_pass_shellcheck(self):
        if shutil.which('shellcheck') is None:
            self.skipTest('shellcheck: not here')
        scripts = [*ROOT.glob('action/*.sh'), ROOT / 'gitlab-component/install.sh', ROOT / 'tests/action/install',
                   ROOT / 'tests/upgrades/install', ROOT / 'tests/upgrades/run', ROOT / 'tests/build/install', ROOT / 'tests/build/run',
                   ROOT / 'images/agent/build', *(ROOT / 'tools' / name for name in ('check', 'debian-sources', 'dist', 'in-debian', 'install', 'pin', 'reproduce', 'snapshot', 'sysroot'))]
        run = self.run_tool('shellcheck', *scripts)
        self.assertEqual((run.returncode, run.stdout), (0, ''))


if __name__ == '__main__':
    unittest.main(verbosity=2)
