#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the sandbox promises, asked of the kernel, as root and as an ordinary user, in both tiers.

kernel_test.py RUNNER PROBE [NAME...]

As root the cases run twice: as root, and as a user of no account. All that is done at the same time, since much of it
waits. Mounts that a case needs are made in a mount namespace of the test's own. NAMEs select cases by a part of their name; KERNEL_TEST_TIERS selects tiers.
"""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = '/usr/bin/python3' if os.path.exists('/usr/bin/python3') else sys.executable
# What holds in both tiers, whatever the mechanism.
OF_BOTH = ['exit_code_cases', 'file_cases', 'environment_cases', 'process_cases', 'checkout_cases', 'tree_cases',
           'stream_cases', 'alike_cases', 'flood_cases', 'kill_cases', 'patch_cases', 'output_cases', 'git_cases', 'record_cases', 'findings_cases', 'left_cases', 'ignored_cases']
MODULES = {'namespaces': OF_BOTH + ['surface_cases', 'host_ends_cases', 'program_cases', 'doctor_cases',
                                    'containment_cases'],  # Of both tiers by itself.
           'landlock': OF_BOTH}


class Result(unittest.TestResult):
    """One line a case, and why it failed."""

    def startTest(self, test):
        super().startTest(test)
        self.started = time.monotonic()

    def addSuccess(self, test):
        print(f'ok      {test.id()} ({time.monotonic() - self.started:.1f}s)', flush=True)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        print(f'FAILED  {test.id()}\n{self.failures[-1][1]}', flush=True)

    def addError(self, test, err):
        super().addError(test, err)
        print(f'FAILED  {test.id()}\n{self.errors[-1][1]}', flush=True)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            failed = self.failures if issubclass(err[0], test.failureException) else self.errors
            print(f'FAILED  {subtest.id()}\n{failed[-1][1]}', flush=True)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        print(f'skipped {test.id()}\n# SKIP {reason}', flush=True)


def cases(names):
    suite = unittest.TestSuite()
    for module in MODULES[os.environ['KERNEL_TEST_TIER']]:
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
    failed = len(set(str(getattr(test, 'test_case', test)) for test, _ in result.failures + result.errors))
    print(f'{result.testsRun - failed - len(result.skipped)} passed, {failed} failed')
    return 1 if failed else 0


def make_fixtures(base, user, in_memory):
    """In a mount namespace of our own: places that hold secrets, a full disk, a checkout elsewhere."""
    import fixtures
    fixtures.make(base, user, in_memory)


def run_all(identity, names):
    """The cases as one user, who is root or not; everything they need is made before."""
    base = os.environ['KERNEL_TEST_BASE']
    line = [PYTHON, os.path.join(HERE, 'kernel_test.py'), '--cases', *names]
    env = dict(os.environ)
    if os.geteuid() == 0:
        sys.path.insert(0, HERE)
        from harness import USER
        # Of each user's cases, and of each tier's, one half has its files in memory, the other on a disk.
        make_fixtures(base, USER, (identity == 'root') == (os.environ['KERNEL_TEST_TIER'] == 'namespaces'))
        env['KERNEL_TEST_FIXTURES'] = '1'
        owner = 0 if identity == 'root' else USER
        for path in (base, base + '/scratch', base + '/probe', base + '/probe/probe'):
            os.chown(path, owner, owner)
        if owner:
            line = ['setpriv', f'--reuid={USER}', f'--regid={USER}', '--clear-groups', *line]
            env['HOME'] = base + '/home'
    return subprocess.run(line, env=env).returncode


def prepare(identity, tier, runner, probe, names):
    """A directory and a mount namespace for one user's cases of a tier; what they print, and their exit status."""
    base = tempfile.mkdtemp(prefix='agentic-ci-kernel-')
    os.chmod(base, 0o755)
    try:
        for name in ('probe', 'scratch'):
            os.mkdir(f'{base}/{name}')
        with open(base + '/mark', 'w') as file:
            file.write(os.urandom(8).hex())
        short = identity[0] + tier[0]
        env = dict(os.environ, KERNEL_TEST_TIER=tier, KERNEL_TEST_BASE=base, KERNEL_TEST_PROBE=base + '/probe/probe',
                   KERNEL_TEST_BIN=f'{base}/aci-{os.getpid()}{short}', PYTHONDONTWRITEBYTECODE='1')
        shutil.copy(runner, env['KERNEL_TEST_BIN'])
        shutil.copy(probe, env['KERNEL_TEST_PROBE'])
        # The repository may lie where an ordinary user cannot go.
        shutil.copytree(HERE, base + '/tests', ignore=shutil.ignore_patterns('__pycache__'))
        line = [PYTHON, base + '/tests/kernel_test.py', '--all', identity, *names]
        if os.geteuid() == 0:
            line = ['unshare', '--mount', '--propagation', 'private', *line]
        done = subprocess.run(line, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors='replace')
        return f'-- as {identity}, tier {tier}\n{done.stdout}', done.returncode
    finally:
        subprocess.run(['rm', '-rf', base])


def main():
    if sys.argv[1] == '--cases':
        return run_cases(sys.argv[2:])
    if sys.argv[1] == '--all':
        return run_all(sys.argv[2], sys.argv[3:])
    runner, probe, *names = sys.argv[1:]
    identities = ['root', 'user'] if os.geteuid() == 0 else ['user']
    if 'root' not in identities:
        print('# SKIP root: the cases run as this user only')
    passed, failed = 0, 0
    tiers = os.environ.get('KERNEL_TEST_TIERS', 'namespaces landlock').split()
    jobs = [(identity, tier) for tier in tiers for identity in identities]
    with concurrent.futures.ThreadPoolExecutor(len(jobs)) as pool:
        for out, code in pool.map(lambda job: prepare(*job, runner, probe, names), jobs):
            count = re.compile(r'^(\d+) passed, (\d+) failed\n', re.MULTILINE)
            print(count.sub('', out), end='', flush=True)
            counts = [(int(some), int(others)) for some, others in count.findall(out)]
            passed += sum(some for some, _ in counts)
            lost = sum(others for _, others in counts)
            failed += lost or (1 if code != 0 else 0)
    if passed + failed == 0:
        print(f'FAILED  no case is called {" or ".join(names)}')
        failed = 1
    print(f'{passed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
