# SPDX-License-Identifier: Apache-2.0
"""What the tests of suites have in common. They take AGENTIC-CI ROOT [TEST...]."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BINARY, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
sys.path.insert(0, str(ROOT / 'tests/services/model'))
HERE = pathlib.Path(__file__).resolve().parent


class Case(unittest.TestCase):
    def setUp(self):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix='suite-test-'))
        self.addCleanup(shutil.rmtree, self.top, ignore_errors=True)

    def call(self, *words, **environment):
        """`agentic-ci eval WORDS`, whose output is in self.out and self.err."""
        done = subprocess.run([BINARY, 'eval', *[str(word) for word in words]], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, text=True, cwd=self.top, env={**os.environ, **environment})
        self.out, self.err = done.stdout, done.stderr
        return done.returncode

    def write(self, name, text):
        path = self.top / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path


def run():
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
