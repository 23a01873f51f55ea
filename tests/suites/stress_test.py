#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/check --stress finds cases that fail by chance: one of each kind is planted, which passes alone on an idle machine."""
import contextlib
import io
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / 'tools'))
import stress  # noqa: E402
import suites  # noqa: E402

# Each case does what a hasty test does. What it waits for ends it, so that nothing here depends on a moment.
PLANTED = '''import os, pathlib, socket, subprocess, sys, time, unittest


def ever(condition):
    found, end = None, time.monotonic() + {seconds}
    while time.monotonic() < end:
        found = found or condition()
        time.sleep(0.01)
    return found


class Hasty(unittest.TestCase):
    def test_a_canary_of_all_is_searched_in_command_lines(self):
        holder = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)', '{canary}'])
        def others():
            for path in pathlib.Path('/proc').glob('[0-9]*/cmdline'):
                try:
                    if '{canary}' in path.read_text() and path.parent.name != str(holder.pid):
                        return path.parent.name
                except OSError:
                    pass
        try:
            self.assertIsNone(ever(others))
        finally:
            holder.kill()
            holder.wait()

    def test_b_port_is_fixed(self):
        with socket.socket() as listener:
            listener.bind(('127.0.0.1', {port}))
            listener.listen()
            ever(lambda: False)

    def test_c_mounts_of_the_machine_stay(self):
        before = pathlib.Path('/proc/self/mountinfo').read_bytes()
        self.assertFalse(ever(lambda: pathlib.Path('/proc/self/mountinfo').read_bytes() != before))

    def test_d_clock_is_tight(self):
        os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
        begun, used = time.monotonic(), time.process_time()
        while time.process_time() - used < 0.5:
            pass
        self.assertLess(time.monotonic() - begun, 0.6)


unittest.main()
'''
NAMES = ['test_a_canary_of_all_is_searched_in_command_lines', 'test_b_port_is_fixed', 'test_c_mounts_of_the_machine_stay',
         'test_d_clock_is_tight']


class Stress(unittest.TestCase):
    def setUp(self):
        self.base = pathlib.Path(tempfile.mkdtemp(prefix='stress-test-'))
        self.addCleanup(shutil.rmtree, self.base)
        suites.BUILD.mkdir(exist_ok=True)

    def plant(self, seconds, *names):
        with socket.socket() as free:
            free.bind(('127.0.0.1', 0))
            port = free.getsockname()[1]
        text = PLANTED.format(seconds=seconds, canary='canary-' + os.urandom(8).hex(), port=port)
        (self.base / 'planted.py').write_text(text)
        line = ' '.join(f'"{word}"' for word in (sys.executable, self.base / 'planted.py', *(f'Hasty.{name}' for name in names)))
        (self.base / 'CTestTestfile.cmake').write_text(f'add_test(planted {line})\n')

    def stress(self, **more):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            failed = stress.run(self.base, suites.list_tests(self.base, '.'), 2, seed=7, **more)
        return failed, said.getvalue()

    @unittest.skipUnless(os.geteuid() == 0, 'root: a container of an ordinary user has mounts of its own')
    @unittest.skipUnless(shutil.which('podman'), 'podman: no containers beside the suites')
    def test_one_of_each_kind_is_found(self):
        self.plant(5)
        failed, said = self.stress()
        self.assertEqual(failed, len(NAMES), said)
        for name in NAMES:
            self.assertRegex(said, rf'(?m)^ +[12] of 2  planted  \S*{name}$')
        self.assertIn('seed 7', said)

    @unittest.skipUnless(os.geteuid() == 0, 'root: nobody else can mount')
    def test_store_that_is_still_in_use_is_removed(self):
        store = tempfile.mkdtemp()
        place = store + '/overlay/shm'
        os.makedirs(place)
        subprocess.run(['mount', '-t', 'tmpfs', 'shm', place], check=True)
        with open(place + '/held', 'w'):
            with self.assertRaises(OSError):  # The control.
                shutil.rmtree(store)
            stress.remove_store(store)
        self.assertFalse(os.path.exists(store))

    def test_control_passes_alone(self):
        self.plant(0.1, *NAMES[:2])
        done = suites.run_test(self.base, 'planted')
        self.assertEqual((done.passed, done.failed), (2, 0), done.output)

    def test_control_passes_twice(self):
        self.plant(0.1)
        (self.base / 'planted.py').write_text('print("1 passed, 0 failed")\n')
        failed, said = self.stress()
        self.assertEqual(failed, 0, said)
        self.assertIn('2 runs of suites, 0 cases failed', said)

    def test_a_run_that_was_stopped_goes_on(self):
        """What failed before stays failed, what ran is not run again, and another commit's run is refused."""
        self.plant(0.1)
        (self.base / 'planted.py').write_text('import sys; print("FAILED  case.of.ours"); print("0 passed, 1 failed"); sys.exit(1)\n')
        with self.assertRaises(SystemExit):
            self.stress(resume=True)
        failed, _ = self.stress()
        self.assertEqual(failed, 1)
        account = self.base / 'stress.jsonl'
        lines = account.read_text().splitlines()
        account.write_text('\n'.join(lines[:2]) + '\n{"suite": "pla')
        (self.base / 'planted.py').write_text('print("1 passed, 0 failed")\n')
        failed, said = self.stress(resume=True)
        self.assertEqual(failed, 1, said)
        self.assertIn('1 of 2 ran before', said)
        self.assertRegex(said, r'(?m)^ +1 of 2  planted  case\.of\.ours$')
        self.assertEqual(said.count('ok planted'), 1)
        account.write_text(lines[0].replace('"commit": "', '"commit": "x') + '\n')
        with self.assertRaises(SystemExit):
            self.stress(resume=True)

    def test_a_suite_that_does_not_exist_is_named(self):
        done = subprocess.run([sys.executable, suites.ROOT / 'tools/check.py', 'some-suite'], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn('names of suites go with --stress', done.stderr)


if __name__ == '__main__':
    unittest.main()
