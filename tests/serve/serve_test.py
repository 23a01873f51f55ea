#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: serve_test.py AGENTIC-CI SOURCE MODULES [unittest arguments]   MODULES: where npm's packages are put"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

USER = 12345  # Of no account.


def main():
    if 'SESSION_TEST_BIN' in os.environ:
        import acceptance_cases
        import mcp_cases
        import mixed_cases
        import notice_cases
        import serve_cases
        import tree_cases
        loader = unittest.TestLoader()
        if sys.argv[1:]:
            suite = loader.loadTestsFromNames(sys.argv[1:])
        else:
            class Landlock(serve_cases.Commands):
                TIER = 'landlock'

            class LandlockPolicies(notice_cases.Policies):
                TIER = 'landlock'
            modules = (serve_cases, acceptance_cases, mixed_cases, tree_cases, notice_cases, mcp_cases)
            suite = unittest.TestSuite([*map(loader.loadTestsFromModule, modules),
                                        *map(loader.loadTestsFromTestCase, (Landlock, LandlockPolicies))])
        result = unittest.TextTestRunner(verbosity=2).run(suite)
        sys.exit(not (result.wasSuccessful() and result.testsRun))
    base = tempfile.mkdtemp(prefix='serve-bin-')
    try:
        os.chmod(base, 0o755)
        binary, source = shutil.copy(sys.argv[1], base + '/agentic-ci'), pathlib.Path(sys.argv[2])
        here = base + '/tests'
        shutil.copytree(source / 'tests/serve', here, ignore=shutil.ignore_patterns('__pycache__'))
        shutil.copy(source / 'tests/session/harness.py', here)
        shutil.copy(source / 'docs/reference/serve.md', here)
        shutil.copy(source / 'docs/reference/schemas/serve.schema.json', here)
        env = dict(os.environ, SESSION_TEST_BIN=binary, PYTHONDONTWRITEBYTECODE='1')
        # Where every user may read them.
        installed = subprocess.run([source / 'tests/sigstore/install', sys.argv[3], source / 'tests/serve/package.json'],
                                   stdout=subprocess.PIPE, text=True)
        if installed.returncode == 0:
            env['SERVE_TEST_MODULES'] = shutil.copytree(installed.stdout.strip(), base + '/node_modules', symlinks=True)
        command = ['/usr/bin/python3', here + '/serve_test.py', *sys.argv[4:]]
        status = subprocess.run(command, env=env).returncode
        if os.geteuid() == 0:
            env['TMPDIR'] = base + '/user'
            os.mkdir(env['TMPDIR'])
            os.chown(env['TMPDIR'], USER, USER)
            again = subprocess.run(command, env=env, user=USER, group=USER, extra_groups=[]).returncode
            status = status or again
        sys.exit(status)
    finally:
        shutil.rmtree(base, ignore_errors=True)


if __name__ == '__main__':
    main()
