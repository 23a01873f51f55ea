#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/demo shows its claims in default containers too, and says that it does so in tier landlock.

container_test.py AGENTIC_CI DOCKER-PROFILE [NAME...]
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tests' / 'containers'))
import containers_test as containers  # noqa: E402  pylint: disable=wrong-import-position

RUN_SECONDS = 300


def show(base, profile, user):
    """What tools/demo prints in a container, and its exit status."""
    done = subprocess.run(
        ['podman', *containers.store(base), '--runtime', 'runc', 'run', '--rm', '--network', 'none', '--user', f'{user}:{user}',
         *containers.PROFILES[profile], *containers.LIMITS, '-v', '/usr:/usr:ro', '-v', f'{base}/runner:/runner:ro',
         '-v', f'{ROOT}:/clone:ro', '--rootfs', base + '/root', 'python3', '-B', '/clone/tools/demo.py',
         '--binary', '/runner/agentic-ci', '--directory', f'/var/tmp/demo-{profile}-{user}'],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors='replace',
        timeout=RUN_SECONDS)
    return done.stdout


class Demo(unittest.TestCase):
    def check(self, profile, user):
        shown = show(BASE, profile, user)
        self.assertRegex(shown, r'\n\d+ passed, 0 failed\n$', shown)
        self.assertIn('tier        landlock, which has to be asked for: --isolation landlock\n', shown)
        self.assertIn('tier landlock: runs can start here with --isolation landlock; without it, a run ends with:', shown)
        self.assertIn(' ✓ in tier landlock\n', shown)
        self.assertIn('run by uid 1000\n', shown)

    def test_podman_as_root(self):
        self.check('podman', 0)

    def test_podman_as_an_ordinary_user(self):
        self.check('podman', 1000)

    def test_docker_as_root(self):
        self.check('docker', 0)


def main():
    global BASE
    BASE = tempfile.mkdtemp(prefix='agentic-ci-containers-')
    try:
        os.chmod(BASE, 0o755)
        containers.make_root(BASE)
        os.mkdir(BASE + '/runner')
        shutil.copy(sys.argv[1], BASE + '/runner/agentic-ci')
        os.mkdir(BASE + '/shown-podman-0')
        why = containers.why_not(BASE)
        if not why:
            agents = subprocess.run([ROOT / 'tests/agents/install', ROOT / 'build/agents', 'claude-code'],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            why = agents.stderr.strip() if agents.returncode else shutil.which('node') is None and 'node is not installed'
        if why:
            print(f'# SKIP demo in a container: {why}')
            return 77
        suite = unittest.TestSuite(case for case in unittest.defaultTestLoader.loadTestsFromTestCase(Demo)
                                   if not sys.argv[3:] or any(name in case.id() for name in sys.argv[3:]))
        result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
        return 0 if result.testsRun and result.wasSuccessful() else 1
    finally:
        subprocess.run(['podman', *containers.store(BASE), 'system', 'reset', '--force'],
                       capture_output=True)
        shutil.rmtree(BASE, ignore_errors=True)


if __name__ == '__main__':
    sys.exit(main())
