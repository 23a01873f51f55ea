#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The three first changes of CONTRIBUTING.md work as they are written.

usage: contributing_test.py BINARY COMPILER
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXT = (ROOT / 'CONTRIBUTING.md').read_text()
COMPILER = sys.argv.pop() if len(sys.argv) > 2 else 'c++'
BINARY = pathlib.Path(sys.argv.pop() if len(sys.argv) > 1 else ROOT / 'build' / 'release' / 'agentic-ci').resolve()


def section(title):
    return TEXT.split(f'### {title}\n', 1)[1].split('\n### ', 1)[0].split('\n## ', 1)[0]


def block(text):
    """The first indented block of `text`, without its indentation."""
    lines = re.search(r'((?:^ {4,}.*\n)+)', text, re.MULTILINE).group(1)
    return '\n'.join(line.strip() for line in lines.splitlines()), lines


class Contributing(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.copy = pathlib.Path(directory.name)

    def judge(self, name):
        return subprocess.run([BINARY, 'policy', 'test', name], cwd=self.copy, capture_output=True, text=True)

    def test_a_row_in_a_policy_table(self):
        text = section('A row in a policy table')
        name = re.search(r'Open `(.*?)`', text).group(1)
        shutil.copytree(ROOT / 'tests' / 'policy', self.copy / 'tests' / 'policy')
        shutil.copytree(ROOT / 'policies', self.copy / 'policies')
        table = self.copy / name
        self.assertEqual(self.judge(name).returncode, 0)
        _, row = block(text)
        row = re.sub(r'^ {2}', '', row, flags=re.MULTILINE)  # Cases of a table are indented by two.
        table.write_text(table.read_text() + row)
        done = self.judge(name)
        self.assertEqual(done.returncode, 65, done.stdout + done.stderr)
        self.assertIn('not permitted', done.stdout + done.stderr)
        table.write_text(table.read_text().removesuffix(row) + row.replace('allow', 'deny'))
        self.assertEqual(self.judge(name).returncode, 0)

    def test_the_text_of_an_error(self):
        text = section('The text of an error')
        source, message = re.search(r'In `(.*?)` find `(.*?)`', text).groups()
        self.assertIn(message, (ROOT / source).read_text())
        transcript = re.search(r'transcript in `(.*?)`', text).group(1)
        self.assertIn(message, (ROOT / transcript).read_text())

    def compile(self, name):
        return subprocess.run([COMPILER, '-std=c++20', '-fsyntax-only', '-Wall', '-Werror', '-I', self.copy / 'runner', self.copy / name],
                              capture_output=True, text=True)

    def test_a_field_of_the_policy(self):
        shutil.copytree(ROOT / 'runner', self.copy / 'runner')
        neighbours = (r'^struct Endpoint \{\n', r'^WIRE_ALL\(Endpoint,[^)]*', r'^    Number\(kEndpoint, "port".*\n',
                      r'^    endpoint_\.path = .*\n')
        steps = re.findall(r'^\d\. `(.*?)`(.*?)(?=^\d\. |\Z|^Add)', section('A field of the policy'), re.MULTILINE | re.DOTALL)
        self.assertEqual(len(steps), len(neighbours))
        for (name, step), neighbour in zip(steps, neighbours):
            file = self.copy / name
            if 'WIRE_ALL' in neighbour:  # Without this step, the gateway would lose the field.
                forgotten = self.compile('runner/policy/load/endpoint_parse.cc')
                self.assertNotEqual(forgotten.returncode, 0)
                self.assertIn('Endpoint', forgotten.stderr)
            changed, count = re.subn(neighbour, lambda match: match.group(0) + block(step)[0] + '\n',
                                     file.read_text(), count=1, flags=re.MULTILINE)
            self.assertEqual(count, 1, name)
            file.write_text(changed)
        for name, _ in steps:
            if name.endswith('.cc'):
                done = self.compile(name)
                self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == '__main__':
    unittest.main()
