#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the sandbox promises, asked of the kernel, as root and as an ordinary user.

kernel_test.py RUNNER PROBE [NAME...]

As root the cases run twice: as root, and as a user of no account. Mounts that a case needs are made
in a mount namespace of the test's own. NAMEs select cases by a part of their name.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
USER = 12345  # As harness.USER.
PYTHON = '/usr/bin/python3' if os.path.exists('/usr/bin/python3') else sys.executable
MODULES = ['exit_code_cases', 'file_cases', 'environment_cases', 'process_cases', 'surface_cases',
           'checkout_cases', 'stream_cases', 'host_ends_cases', 'program_cases', 'flood_cases', 'doctor_cases', 'containment_cases']


class Result(unittest.TestResult):
    """One line a case, and why it failed."""

    def addSuccess(self, test):
        print(f'ok      {test.id()}', flush=True)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        print(f'FAILED  {test.id()}\n{self.failures[-1][1]}', flush=True)

    def addError(self, test, err):
        super().addError(test, err)
        print(f'FAILED  {test.id()}\n{self.errors[-1][1]}', flush=True)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        print(f'skipped {test.id()}\n# SKIP {reason}', flush=True)


def cases(names):
    suite = unittest.TestSuite()
    for module in MODULES:
        for group in unittest.defaultTestLoader.loadTestsFromName(module):
            for case in group:
                left_out = getattr(getattr(case, case._testMethodName), 'left_out', False)
                if not left_out and (not names or any(name in case.id() for name in names)):
                    suite.addTest(case)
    return suite


def run_cases(names):
    sys.path.insert(0, HERE)
    result = Result()
    cases(names).run(result)
    if result.testsRun == 0:
        print(f'FAILED  no case is called {" or ".join(names)}\n0 passed, 1 failed')
        return 1
    failed = len(set(str(test) for test, _ in result.failures + result.errors))
    print(f'{result.testsRun - failed - len(result.skipped)} passed, {failed} failed')
    return 1 if failed else 0


def make_fixtures(base):
    """In a mount namespace of our own: places that hold secrets, a full disk, a checkout elsewhere."""
    sys.path.insert(0, HERE)
    import fixtures
    fixtures.make(base, USER)


def run_as(identity, names, env):
    """The cases in a process of their own; (passed, failed)."""
    print(f'-- as {identity}', flush=True)
    line = [PYTHON, os.path.join(HERE, 'kernel_test.py'), '--cases', *names]
    if identity == 'an ordinary user' and os.geteuid() == 0:
        line = ['setpriv', f'--reuid={USER}', f'--regid={USER}', '--clear-groups', *line]
        env = dict(env, HOME=env['KERNEL_TEST_BASE'] + '/home')
    process = subprocess.Popen(line, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, errors='replace')
    count = None
    for text in process.stdout:
        match = re.match(r'(\d+) passed, (\d+) failed', text)
        if match:
            count = int(match[1]), int(match[2])
        else:
            print(text, end='', flush=True)
    if process.wait() != 0 and count is not None and count[1] == 0:
        count = count[0], 1
    return count or (0, 1)


def prepare(runner, probe, names):
    base = tempfile.mkdtemp(prefix='agentic-ci-kernel-')
    os.chmod(base, 0o755)
    try:
        os.mkdir(base + '/probe')
        env = dict(os.environ, KERNEL_TEST_BASE=base, KERNEL_TEST_PROBE=base + '/probe/probe',
                   KERNEL_TEST_BIN=f'{base}/aci-{os.getpid()}', PYTHONDONTWRITEBYTECODE='1')
        shutil.copy(runner, env['KERNEL_TEST_BIN'])
        shutil.copy(probe, env['KERNEL_TEST_PROBE'])
        # The repository may lie where an ordinary user cannot go.
        shutil.copytree(HERE, base + '/tests', ignore=shutil.ignore_patterns('__pycache__'))
        line = [PYTHON, base + '/tests/kernel_test.py', '--all', *names]
        if os.geteuid() == 0:
            line = ['unshare', '--mount', '--propagation', 'private', *line]
        return subprocess.run(line, env=env).returncode
    finally:
        subprocess.run(['rm', '-rf', base])


def run_all(names):
    env = dict(os.environ)
    base = env['KERNEL_TEST_BASE']
    if os.geteuid() != 0:
        print('# SKIP root: the cases run as this user only')
        passed, failed = run_as('an ordinary user', names, env)
    else:
        make_fixtures(base)
        env['KERNEL_TEST_FIXTURES'] = '1'
        passed, failed = 0, 0
        for identity, owner in (('root', 0), ('an ordinary user', USER)):
            for path in (base, base + '/probe', base + '/probe/probe'):
                os.chown(path, owner, owner)
            more = run_as(identity, names, env)
            passed, failed = passed + more[0], failed + more[1]
    print(f'{passed} passed, {failed} failed')
    return 1 if failed else 0


def main():
    if sys.argv[1] == '--cases':
        return run_cases(sys.argv[2:])
    if sys.argv[1] == '--all':
        return run_all(sys.argv[2:])
    return prepare(sys.argv[1], sys.argv[2], sys.argv[3:])


if __name__ == '__main__':
    sys.exit(main())
