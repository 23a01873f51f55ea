#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The shipped binary is one static file: it needs no library, no loader and no file of the host."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = sys.argv.pop(1) if len(sys.argv) > 1 else str(ROOT / 'build' / 'release' / 'agentic-ci')
# Of the ELF header's e_machine.
MACHINE = {62: 'x86_64', 183: 'aarch64'}[int.from_bytes(pathlib.Path(BINARY).read_bytes()[18:20], 'little')]
BYTES_MAX = {'x86_64': 14 << 20, 'aarch64': 27 << 19}[MACHINE]


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Static(unittest.TestCase):
    def test_file_says_static(self):
        self.assertRegex(output('file', '-b', BINARY), r'static-pie linked|statically linked')

    def test_it_names_no_library_and_no_loader(self):
        self.assertNotIn('NEEDED', output('readelf', '-d', BINARY))
        self.assertNotIn('INTERP', output('readelf', '-lW', BINARY))

    def test_memory_is_never_writable_and_executable(self):
        headers = output('readelf', '-lW', BINARY)
        self.assertNotRegex(headers, r'(LOAD|GNU_STACK).* RWE ')
        self.assertIn('GNU_RELRO', headers)

    def test_it_is_small_enough_to_be_downloaded_by_every_run(self):
        self.assertLessEqual(os.stat(BINARY).st_size, BYTES_MAX)

    def test_its_segments_fit_pages_of_every_size(self):
        pages = {'x86_64': 4 << 10, 'aarch64': 64 << 10}[MACHINE]
        alignments = re.findall(r'^ *LOAD .* (0x[0-9a-f]+)$', output('readelf', '-lW', BINARY), re.MULTILINE)
        self.assertTrue(alignments)
        self.assertTrue(all(int(alignment, 16) % pages == 0 for alignment in alignments), alignments)

    def test_it_names_no_path_of_the_machine_that_built_it(self):
        found = re.search(re.escape(str(ROOT).encode()) + rb'[^\0]*', pathlib.Path(BINARY).read_bytes())
        self.assertIsNone(found and found.group(0))

    @unittest.skipIf(MACHINE != os.uname().machine, "foreign: this machine's processor cannot run it")
    def test_it_answers_in_an_empty_root(self):
        with tempfile.TemporaryDirectory() as root:
            shutil.copy(BINARY, root)
            command = ['chroot', root, '/agentic-ci', '--version']
            if os.geteuid() != 0:
                command = ['unshare', '-r'] + command
            path = os.environ['PATH'] + ':/usr/sbin:/sbin'
            run = subprocess.run(command, capture_output=True, text=True, env={'PATH': path})
            self.assertRegex(run.stdout, rf'^agentic-ci \d+\.\d+\.\d+\nlinux-{MACHINE}, .+\n', run.stderr)


if __name__ == '__main__':
    unittest.main()
