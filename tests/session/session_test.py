#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: session_test.py AGENTIC-CI [unittest arguments]"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

USER = 12345  # Of no account.


def cases(suite):
    """Each case of a suite of suites."""
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from cases(one)
        else:
            yield one


def applies(case):
    """Whether this user and this tier are those that a case is about."""
    method = getattr(case, case._testMethodName, None)
    root = os.geteuid() == 0
    if getattr(method, 'only_root', False) and not root:
        return False
    if getattr(method, 'never_root', False) and root:
        return False
    if getattr(method, 'only_root_in_namespaces', False) and not (root and case.TIER == 'namespaces'):
        return False
    return getattr(case, 'applies', lambda: True)()


def main():
    if 'SESSION_TEST_BIN' in os.environ:
        import files_cases
        import hostile_cases
        import late_cases
        import pool_cases
        import sandbox_cases
        import shell_cases
        import terminal_cases
        import watch_cases
        loader = unittest.TestLoader()
        suite = unittest.TestSuite()
        names = sys.argv[1:]
        for module in (shell_cases, sandbox_cases, files_cases, hostile_cases, late_cases, pool_cases, terminal_cases,
                       watch_cases):
            suite.addTests(loader.loadTestsFromModule(module))
        if names:
            suite = loader.loadTestsFromNames(names)
        # Tier landlock has no processes of its own to list, and no network of its own to share.
        if not names:
            class Landlock(shell_cases.Shells):
                TIER = 'landlock'

            class LandlockFiles(files_cases.Files):
                TIER = 'landlock'

            class LandlockHostile(hostile_cases.Hostile):
                TIER = 'landlock'

            class LandlockLate(late_cases.Late):
                TIER = 'landlock'

            class LandlockPools(pool_cases.Pools):
                TIER = 'landlock'

            class LandlockTerminals(terminal_cases.Terminals):
                TIER = 'landlock'

            class LandlockWatches(watch_cases.Watches):
                TIER = 'landlock'
            for case in (Landlock, LandlockFiles, LandlockHostile, LandlockLate, LandlockPools, LandlockTerminals,
                         LandlockWatches):
                suite.addTests(loader.loadTestsFromTestCase(case))
        result = unittest.TextTestRunner(verbosity=2).run(unittest.TestSuite(case for case in cases(suite) if applies(case)))
        sys.exit(not (result.wasSuccessful() and result.testsRun))
    base = tempfile.mkdtemp(prefix='session-bin-')
    try:
        os.chmod(base, 0o755)
        binary = shutil.copy(sys.argv[1], base + '/agentic-ci')
        here = base + '/tests'
        shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../runner/session/protocol.h'), base)
        shutil.copytree(os.path.dirname(os.path.abspath(__file__)), here,
                        ignore=shutil.ignore_patterns('__pycache__'))
        env = dict(os.environ, SESSION_TEST_BIN=binary, PYTHONDONTWRITEBYTECODE='1')
        command = [sys.executable, here + '/session_test.py', *sys.argv[2:]]
        status = subprocess.run(command, env=env).returncode
        if os.geteuid() == 0:
            env['TMPDIR'] = base + '/user'
            os.mkdir(env['TMPDIR'])
            os.chown(env['TMPDIR'], USER, USER)
            command[0] = shutil.which('python3', path='/usr/bin:/bin') or sys.executable
            again = subprocess.run(command, env=env, user=USER, group=USER, extra_groups=[]).returncode
            status = status or again
        sys.exit(status)
    finally:
        shutil.rmtree(base, ignore_errors=True)


if __name__ == '__main__':
    main()
