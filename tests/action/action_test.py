#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The action runs a binary only when its hash is the one pinned in its own commit, and passes inputs
on without making program text of them."""
import functools
import hashlib
import http.server
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ARCH = os.uname().machine
VERSION = '9.8.7'
ASSET = f'agentic-ci-{VERSION}-linux-{ARCH}'
BINARY = b'#!/bin/sh\necho "ran $*"\n'


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


class Action(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)
        for name in ('temp', 'cache', 'release', 'work'):
            (self.root / name).mkdir()
        shutil.copytree(ROOT / 'action', self.root / 'action')
        self.pin(hashlib.sha256(BINARY).hexdigest())
        self.publish(BINARY)
        handler = functools.partial(Quiet, directory=self.root / 'release')
        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)

    def pin(self, digest, asset=ASSET):
        (self.root / 'action/checksums.txt').write_text(f'# a comment\n{digest}  {asset}\n')

    def publish(self, data):
        folder = self.root / 'release' / f'v{VERSION}'
        folder.mkdir(exist_ok=True)
        (folder / ASSET).write_bytes(data)

    def script(self, name, **variables):
        self.output = self.root / 'output'
        self.output.write_text('')
        environment = {
            'PATH': os.environ['PATH'], 'GITHUB_OUTPUT': str(self.output),
            'RUNNER_TEMP': str(self.root / 'temp'), 'RUNNER_TOOL_CACHE': str(self.root / 'cache'),
            'GITHUB_SERVER_URL': 'https://github.example', 'VERSION': VERSION,
            'DOWNLOAD_URL': f'http://127.0.0.1:{self.server.server_port}', **variables,
        }
        return subprocess.run(['bash', '--noprofile', '--norc', '-eo', 'pipefail', '-c',
                               f'"{self.root}/action/{name}.sh"'], env=environment, cwd=self.root / 'work',
                              capture_output=True, text=True)

    def path(self):
        match = re.fullmatch(r'path=(.+)\n', self.output.read_text())
        self.assertIsNotNone(match, self.output.read_text())
        return pathlib.Path(match[1])

    def assert_refused(self, run, status, words):
        self.assertEqual(run.returncode, status, run.stdout + run.stderr)
        self.assertIn('::error title=agentic-ci::', run.stdout)
        self.assertIn(words, run.stdout)
        self.assertEqual(self.output.read_text(), '')
        for file in (self.root / 'temp').rglob('*'):
            self.assertFalse(file.is_file() and file.stat().st_mode & 0o111, f'{file} is executable')

    def test_the_pinned_release_is_fetched_and_runs(self):
        run = self.script('install')
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertEqual(subprocess.check_output([self.path(), 'x'], text=True), 'ran x\n')

    def test_a_release_with_another_hash_is_refused_and_never_executable(self):
        self.publish(BINARY + b'evil\n')
        self.assert_refused(self.script('install'), 77, 'is not what action/checksums.txt pins')

    def test_an_asset_without_a_checksum_is_refused_before_anything_is_fetched(self):
        self.pin('0' * 64, ASSET + 'x')
        self.server.shutdown()
        self.assert_refused(self.script('install'), 77, 'has no checksum')

    def test_a_short_checksum_is_none(self):
        self.pin(hashlib.sha256(BINARY).hexdigest()[:40])
        self.assert_refused(self.script('install'), 77, 'has no checksum')

    def test_a_cached_binary_is_compared_again(self):
        self.assertEqual(self.script('install').returncode, 0)
        cached = self.root / 'cache/agentic-ci' / VERSION / ASSET
        self.assertEqual(cached.read_bytes(), BINARY)
        cached.write_bytes(b'#!/bin/sh\necho changed\n')
        self.assertEqual(self.script('install').returncode, 0)
        self.assertEqual(self.path().read_bytes(), BINARY)
        self.assertEqual(cached.read_bytes(), BINARY)

    def test_a_cached_binary_needs_no_network(self):
        self.assertEqual(self.script('install').returncode, 0)
        (self.root / 'release' / f'v{VERSION}' / ASSET).unlink()
        self.assertEqual(self.script('install').returncode, 0)
        self.assertNotIn(str(self.root / 'cache'), str(self.path()))

    def test_a_cache_that_cannot_be_written_is_no_failure(self):
        (self.root / 'cache/agentic-ci').write_text('in the way')
        run = self.script('install')
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn('not cached', run.stdout)

    def test_a_release_that_is_not_there_is_temporary(self):
        (self.root / 'release' / f'v{VERSION}' / ASSET).unlink()
        self.assert_refused(self.script('install'), 75, 'cannot fetch')

    def test_no_release_is_fetched_in_clear_from_another_machine(self):
        self.assert_refused(self.script('install', DOWNLOAD_URL='http://release.example'), 75, 'cannot fetch')

    def test_path_is_used_as_it_is_and_nothing_is_fetched(self):
        mine = self.root / 'work/my agentic-ci'
        mine.write_bytes(BINARY)
        mine.chmod(0o755)
        self.assertEqual(self.script('install', BINARY_PATH='my agentic-ci', VERSION='').returncode, 0)
        self.assertEqual(self.path(), mine)
        self.assertEqual(list((self.root / 'temp').iterdir()), [])

    def test_a_path_that_is_no_program_is_an_error(self):
        self.assert_refused(self.script('install', BINARY_PATH='nowhere'), 66, 'no executable file nowhere')
        (self.root / 'work/data').write_text('x')
        self.assert_refused(self.script('install', BINARY_PATH='data'), 66, 'no executable file data')

    def test_a_version_is_a_version(self):
        for version in ('latest', '../1.2.3', '1.2', '1.2.3/..', '$(id)', ''):
            self.assert_refused(self.script('install', VERSION=version), 64, 'version')
        self.assertEqual(self.script('install', VERSION='v' + VERSION).returncode, 0)

    def test_an_input_of_two_lines_can_not_write_an_output_or_a_command(self):
        run = self.script('install', BINARY_PATH='x\n::error::y')
        self.assert_refused(run, 64, 'several lines')
        self.assertNotIn('\n::error::y', run.stdout)

    def test_run_passes_the_inputs_on_and_keeps_the_status(self):
        program = self.root / 'work/fake'
        program.write_text('#!/bin/sh\necho "$* $INPUTS"\nexit 9\n')
        program.chmod(0o755)
        run = self.script('run', BINARY=str(program), INPUTS='{"prompt":"$(id) `id`"}')
        self.assertEqual((run.returncode, run.stdout), (9, 'action {"prompt":"$(id) `id`"}\n'))

    def test_post_turns_a_refusal_into_a_warning_and_nothing_else(self):
        program = self.root / 'work/fake'
        program.write_text('#!/bin/sh\necho "$1 [$2] [$GITHUB_STEP_SUMMARY]"\nexit "$FAKE_STATUS"\n')
        program.chmod(0o755)
        for status, ends in ((0, 0), (77, 0), (75, 75), (78, 78)):
            run = self.script('post', BINARY=str(program), REPORT_DIR='a b', FAKE_STATUS=str(status),
                              GITHUB_STEP_SUMMARY='there')
            self.assertEqual(run.returncode, ends)
            self.assertIn('post [a b] []\n', run.stdout)
            self.assertEqual('::warning title=agentic-ci::no comment' in run.stdout, status == 77)


class Metadata(unittest.TestCase):
    def setUp(self):
        self.text = (ROOT / 'action.yml').read_text()

    def test_no_expression_stands_inside_a_script(self):
        runs = re.findall(r'^ +run: (.*)$', self.text, re.MULTILINE)
        self.assertEqual(len(runs), 3)
        for run in runs:
            self.assertRegex(run, r"""^'"\$GITHUB_ACTION_PATH/action/[a-z]+\.sh"'$""")

    def test_no_other_action_is_used(self):
        self.assertNotRegex(self.text, r'(?m)^\s*(- )?uses:')

    def test_the_default_version_is_this_one(self):
        version = re.search(r'kVersion = "([^"]+)"', (ROOT / 'runner/base/version.h').read_text())[1]
        self.assertIn(f'  version:\n', self.text)
        self.assertRegex(self.text, r'(?s)\n  version:\n.{0,300}?default: "' + re.escape(version) + '"')

    def test_outputs_are_those_the_program_writes(self):
        block = self.text[self.text.index('\noutputs:'):self.text.index('\nruns:')]
        listed = re.findall(r'(?m)^  ([a-z-]+):$', block)
        header = (ROOT / 'runner/cli/github.h').read_text()
        written = []
        for table in ('kActionOutputs', 'kPostOutputs'):
            start = header.index(f'{table} =')
            written += re.findall(r'\{"([a-z-]+)",', header[start:header.index('});', start)])
        self.assertEqual(listed, written)
        for name in listed:
            self.assertRegex(block, rf'steps\.(run|post)\.outputs\.{name} ')

    def test_every_input_a_step_reads_is_declared_once(self):
        inputs = self.text[self.text.index('\ninputs:'):self.text.index('\noutputs:')]
        declared = re.findall(r'(?m)^  ([a-z-]+):$', inputs)
        self.assertEqual(len(declared), len(set(declared)), declared)
        for name in re.findall(r'inputs\.([a-z-]+)', self.text):
            self.assertIn(name, declared)

    def test_scripts_are_executable_and_short(self):
        for script in (ROOT / 'action').glob('*.sh'):
            self.assertTrue(os.access(script, os.X_OK), script)
            text = script.read_text()
            self.assertLess(len(text.splitlines()), 60, script)
            self.assertIn('\nset -euo pipefail\n', text)


if __name__ == '__main__':
    unittest.main()
