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
        header = 'runner/policy/model/policy.h'
        lines = len((self.root / header).read_text().splitlines())
        self.append(header, '#include "run/request.h"\n')

        status, output = self.check()

        self.assertEqual(status, 1)
        self.assertIn(f'{header}:{lines + 1}: error: policy/model/ may not include run/request.h', output)
        self.assertRegex(output, r'runner/CMakeLists\.txt:\d+ lists: base codec')

    def test_folders_of_the_same_rank_may_not_meet(self):
        (self.root / 'runner/gateway/new.h').write_text('#include "sandbox/new.h"\n')
        self.assertEqual(self.check()[0], 1)

    def test_a_room_may_not_include_the_one_above_it_nor_its_neighbour(self):
        for room, header in (('gateway/http', 'gateway/gateway.h'), ('gateway/names', 'gateway/http/message.h'),
                             ('policy/model', 'policy/load/parse.h')):
            planted = self.root / 'runner' / room / 'planted.h'
            planted.write_text(f'#include "{header}"\n')
            self.assertIn(f'runner/{room}/planted.h:1: error: {room}/ may not include {header}', self.check()[1])
            planted.unlink()
        self.assertEqual(self.check(), (0, ''))

    def test_a_folder_of_rooms_stands_for_all_of_them(self):
        (self.root / 'runner/agent/planted.h').write_text('#include "codec/wire/http_head.h"\n#include "codec/text/utf8.h"\n')
        self.assertEqual(self.check(), (0, ''))

    def test_an_include_that_leads_nowhere_is_found(self):
        self.append('runner/policy/model/policy.h', '#include "codec/data/nothing.h"\n')
        self.assertIn('runner/codec/data/nothing.h does not exist', self.check()[1])

    def test_a_folder_without_a_line_is_found(self):
        for folder in ('stray', 'policy/stray', 'policy'):
            path = self.root / 'runner' / folder / 'stray.h'
            path.parent.mkdir(exist_ok=True)
            path.write_text('')
            self.assertIn(f'runner/{folder}/ has no line', self.check()[1])
            path.unlink()

    def test_a_line_that_makes_a_cycle_is_found(self):
        self.edit_lines('runner_folder(net base', 'runner_folder(net base policy/model')
        self.assertIn('net may include policy/model, which is not above it: a cycle', self.check()[1])

    def test_a_room_on_a_line_that_no_file_includes_is_found(self):
        self.edit_lines('runner_folder(net base', 'runner_folder(net base codec/glob codec')
        planted = self.root / 'runner/net/planted.h'
        planted.write_text('#include "codec/wire/http_head.h"\n')
        status, output = self.check()
        self.assertEqual(status, 1)
        self.assertRegex(output, r'^runner/CMakeLists\.txt:\d+: error: net may include codec/glob, and no file of it does: .*\n$')
        planted.write_text('#include "codec/wire/http_head.h"\n#include "codec/glob/glob.h"\n')
        self.assertEqual(self.check(), (0, ''))

    def test_a_line_that_names_no_room_is_found(self):
        self.edit_lines('runner_folder(agent base', 'runner_folder(agent basis')
        self.assertIn('basis, which is not a room', self.check()[1])

    def test_a_room_without_a_charter_is_found(self):
        self.edit_lines('# The HTTP client, on libcurl.\n', '\n')
        self.assertIn('net has no charter', self.check()[1])

    def test_a_crowded_room_is_found(self):
        for number in range(46):
            (self.root / f'runner/net/source{number}.h').write_text('')
        self.assertRegex(self.check()[1], r'runner/net: error: \d+ sources, at most 45')

    def edit_lines(self, old, new):
        cmake = self.root / 'runner/CMakeLists.txt'
        self.assertIn(old, cmake.read_text())
        cmake.write_text(cmake.read_text().replace(old, new))

    def test_a_file_that_uses_what_it_does_not_include_is_found(self):
        shutil.copytree(ROOT / 'tools', self.root / 'tools')
        for name, include in (('whole', '#include <string>\n'), ('part', '')):
            (self.root / f'runner/{name}.h').write_text(f'#pragma once\n{include}struct Alone {{ std::string a; }};\n')
        run = subprocess.run([self.root / 'tools' / 'alone', 'runner/whole.h', 'runner/part.h'], capture_output=True, text=True)
        self.assertEqual(run.returncode, 1)
        self.assertIn('runner/part.h: error: does not compile by itself', run.stdout)
        self.assertEqual(run.stdout.splitlines()[-1], '1 passed, 1 failed')


if __name__ == '__main__':
    unittest.main()
