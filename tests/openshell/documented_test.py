#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the table of OpenShell's generations says is refused here, is; and nothing else of it.

usage: documented_test.py BINARY [unittest arguments]
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from differences import DOCUMENTED  # noqa: E402


class DocumentedTest(unittest.TestCase):
    def check(self, text):
        """(whether the policy is taken, what was said)."""
        with tempfile.TemporaryDirectory(prefix='documented-') as base:
            path = pathlib.Path(base, 'p.yml')
            path.write_text(text)
            done = subprocess.run([BINARY, 'policy', 'check', '--for', 'openshell', '--openshell', '0.1', path], capture_output=True,
                                  text=True, timeout=60)
            return done.returncode == 0, done.stdout + done.stderr

    def test_each_row(self):
        for row in DOCUMENTED:
            if row.file:
                with self.subTest(row.subject):
                    taken, said = self.check(row.file)
                    self.assertEqual(taken, not row.here.startswith('refused'), said)

    def test_what_is_refused_is_so_for_its_own_part(self):
        for row, part in (('`harness` of a program', 'harness: true'), ("a port in a middleware's selector", ':443'),
                          ('`websocket_credential_rewrite` with `rest`', 'websocket_credential_rewrite: true'),
                          ('`mcp.versions`', 'versions: ["2025-11-25"]')):
            file = next(one.file for one in DOCUMENTED if one.subject == row)
            without = file.replace(part, '') if part == ':443' else file.replace(', ' + part, '').replace(part, '')
            self.assertTrue(self.check(without)[0], (row, without))


if __name__ == '__main__':
    BINARY = sys.argv.pop(1)
    unittest.main(verbosity=2)
