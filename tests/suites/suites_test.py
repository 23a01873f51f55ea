#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A suite that is told to run a test which does not exist fails; so does one that runs nothing.

usage: suites_test.py BUILD_DIRECTORY
"""
import concurrent.futures
import json
import subprocess
import sys

ABSENT = 'no-such-test'
SECONDS_MAX = 600
# They take files or directories, not names: a file that is absent is an error of its own.
UNNAMED = {'suites', 'demo', 'demo_canary'}


def passes(test):
    """Whether the suite ends well although nothing of that name is in it."""
    try:
        done = subprocess.run([*test['command'], ABSENT], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=SECONDS_MAX)
    except subprocess.TimeoutExpired:
        return 'ran for ten minutes'
    skipped = next((p['value'] for p in test['properties'] if p['name'] == 'SKIP_RETURN_CODE'), None)
    return 'passed' if done.returncode in (0, skipped) else ''


def main():
    listed = subprocess.run(['ctest', '--test-dir', sys.argv[1], '--show-only=json-v1'], capture_output=True, check=True)
    tests = [test for test in json.loads(listed.stdout)['tests'] if test['name'] not in UNNAMED]
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        wrong = [(test['name'], what) for test, what in zip(tests, pool.map(passes, tests)) if what]
    for name, what in wrong:
        print(f'{name} {what} when told to run {ABSENT}')
    print(f'{len(tests) - len(wrong)} passed, {len(wrong)} failed')
    return 1 if wrong or not tests else 0


if __name__ == '__main__':
    sys.exit(main())
