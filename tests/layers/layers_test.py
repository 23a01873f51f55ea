#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The layering check passes on this tree and fails on each way of breaking the layers."""
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Layers(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.root = pathlib.Path(self.dir.name)
        shutil.copytree(ROOT / 'runner', self.root / 'runner')

    def check(self):
        run = subprocess.run([ROOT / 'tools' / 'layers', self.root], capture_output=True, text=True)
        return run.returncode, run.stdout + run.stderr

    def append(self, path, text):
        with open(self.root / path, 'a') as file:
            file.write(text)

    def test_the_tree_keeps_its_layers(self):
        self.assertEqual(self.check(), (0, ''))

    def test_a_forbidden_include_is_named_with_file_line_and_the_line_to_change(self):
        lines = len((self.root / 'runner/policy/policy.h').read_text().splitlines())
        self.append('runner/policy/policy.h', '#include "run/request.h"\n')

        status, output = self.check()

        self.assertEqual(status, 1)
        self.assertIn(f'runner/policy/policy.h:{lines + 1}: error: policy/ may not include run/request.h',
                      output)
        self.assertRegex(output, r'runner/CMakeLists\.txt:\d+ lists: base codec')

    def test_folders_of_the_same_rank_may_not_meet(self):
        (self.root / 'runner/gateway/new.h').write_text('#include "sandbox/new.h"\n')
        self.assertEqual(self.check()[0], 1)

    def test_an_include_that_leads_nowhere_is_found(self):
        self.append('runner/policy/policy.h', '#include "base/nothing.h"\n')
        self.assertIn('runner/base/nothing.h does not exist', self.check()[1])

    def test_a_folder_without_a_line_is_found(self):
        (self.root / 'runner/stray').mkdir()
        (self.root / 'runner/stray/stray.h').write_text('')
        self.assertIn('runner/stray/ has no line', self.check()[1])

    def test_a_line_that_makes_a_cycle_is_found(self):
        cmake = self.root / 'runner/CMakeLists.txt'
        cmake.write_text(cmake.read_text().replace('runner_folder(codec base', 'runner_folder(codec base policy'))
        self.assertIn('a cycle', self.check()[1])

    def test_a_line_that_names_no_folder_is_found(self):
        cmake = self.root / 'runner/CMakeLists.txt'
        cmake.write_text(cmake.read_text().replace('runner_folder(agent base', 'runner_folder(agent basis'))
        self.assertIn('basis, which is no folder', self.check()[1])


if __name__ == '__main__':
    unittest.main()
