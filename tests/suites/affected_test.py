#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/check --since chooses what a change can affect, and leaves out what it cannot.

usage: affected_test.py BUILD_DIRECTORY
"""
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / 'tools'))
import affected  # noqa: E402

DIRECTORY = ''
# What is changed: tests that must be chosen, and tests that must not.
TABLE = (
    ('runner/codec/glob/glob.cc', 'unit_codec_glob unit_policy_decide unit_gateway kernel attack cli', 'unit_sandbox_limit layers'),
    ('runner/sandbox/sandbox.h', 'unit_sandbox unit_run kernel gitea', 'unit_gateway unit_sigstore unit_sandbox_network'),
    ('runner/sigstore/verify_test.cc', 'unit_sigstore', 'unit_image kernel cli'),
    ('runner/base/fd.h', 'unit_base unit_sigstore unit_cli kernel', 'layers containment'),
    ('tests/kernel/harness.py', 'kernel kernels containers', 'websocket unit_sandbox'),
    ('tests/services/model/model.py', 'budget agents_claude-code', 'unit_gateway layers'),
    ('tests/websocket/websocket_test.py', 'websocket', 'kernel gitea unit_base'),
    ('docs/reference/containment.md', 'containment generated', 'unit_base websocket'),
    ('README.md', 'readme', 'websocket unit_base'),
    ('action.yml', 'action generated', 'websocket unit_base'),
    ('cmake/flags.cmake', 'unit_base kernel layers websocket readme', ''),
    ('policies/prices.yml', 'unit_gateway_budget kernel', ''),
    ('tools/check.py', 'unit_base kernel counting', ''),
)


class Affected(unittest.TestCase):
    def test_table(self):
        known = affected.commands(DIRECTORY)
        for path, chosen, left in TABLE:
            with self.subTest(path):
                found = set(affected.affected([path], DIRECTORY))
                self.assertLessEqual(set(chosen.split() + left.split()), set(known), 'no test is called so')
                self.assertEqual(set(chosen.split()) - found, set())
                self.assertEqual(set(left.split()) & found, set())

    def test_every_room_of_the_product_is_known(self):
        sources = [path for path in (ROOT / 'runner').rglob('*.cc')]
        self.assertEqual({str(path.parent.relative_to(ROOT / 'runner')) for path in sources} - set(affected.rooms()), set())

    def test_no_change_needs_no_test(self):
        self.assertEqual([test for test in affected.affected([], DIRECTORY) if test.startswith('unit_')], [])

    def test_a_revision_that_does_not_exist_is_an_error(self):
        with self.assertRaises(subprocess.CalledProcessError):
            affected.changed('no-such-revision')


if __name__ == '__main__':
    DIRECTORY = sys.argv.pop(1)
    unittest.main()
