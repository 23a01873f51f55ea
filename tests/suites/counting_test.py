#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/check counts a case that was skipped as such, and as a failure where it is required."""
import os
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / 'tools'))
import check  # noqa: E402
import suites  # noqa: E402

SKIPPED_UNIT = '''
apply_test.cc:72: warning:
  # SKIP root: only root can give a file away

All tests passed (12 assertions in 3 test cases)
'''
UNITTEST = '''test_a ... ok
test_b ... skipped 'npm: no Node whose fetch knows a proxy'

----------------------------------------------------------------------
Ran 3 tests in 0.1s

OK (skipped=1)
'''
TWO_USERS = UNITTEST + UNITTEST.replace('OK (skipped=1)', 'FAILED (failures=1, skipped=1)')


class Counting(unittest.TestCase):
    def test_each_framework_is_understood(self):
        for output, counts in ((SKIPPED_UNIT, (2, 0, 1)), (UNITTEST, (2, 0, 1)),
                               ('# SKIP root: as this user only\n2 passed, 0 failed\n', (2, 0, 1)),
                               ('# pass 3\n# fail 0\n# skipped 1\n', (3, 0, 1)), ('', (1, 0, 0))):
            self.assertEqual(suites.count_cases(output, True), counts, output)
        self.assertEqual(suites.count_cases(TWO_USERS, False), (3, 1, 2))
        self.assertEqual(suites.count_cases('test cases: 4 | 3 passed | 1 failed\n', False), (3, 1, 0))

    def test_a_suite_that_ran_nothing_has_failed(self):
        for output in ('0 passed, 0 failed\n', 'Ran 0 tests in 0.0s\n\nOK\n', '# pass 0\n# fail 0\n'):
            self.assertEqual(suites.count_cases(output, True), (0, 1, 0), output)

    def test_a_skip_is_a_failure_where_its_feature_or_suite_is_required(self):
        reasons = suites.skip_reasons(UNITTEST)
        self.assertEqual(reasons, ['npm: no Node whose fetch knows a proxy'])
        self.addCleanup(os.environ.pop, suites.REQUIRE, None)
        for wanted, required in (('', False), ('root userns', False), ('root npm', True), ('all', True),
                                 ('agents_clients', True), ('agents', False)):
            os.environ[suites.REQUIRE] = wanted
            self.assertEqual(suites.is_required('agents_clients', reasons), required, wanted)

    def test_the_workflows_require_features_that_cases_are_skipped_for(self):
        root = pathlib.Path(__file__).resolve().parents[2]
        sources = [path for folder in ('tests', 'runner') for path in (root / folder).rglob('*') if path.is_file()]
        known = {feature for path in sources for feature in
                 re.findall(r'(?:# SKIP |SKIP\("|skipTest\(f?[\'"])([a-z-]+):', path.read_text(errors='replace'))}
        for name in ('check', 'release'):
            text = (root / f'.github/workflows/{name}.yml').read_text()
            for words in re.findall(rf'{suites.REQUIRE}: ([a-z -]+)', text):
                self.assertLessEqual({'root', 'userns'}, set(words.split()), name)
                self.assertLessEqual(set(words.split()), known, name)


if __name__ == '__main__':
    unittest.main()
