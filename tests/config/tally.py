# SPDX-License-Identifier: Apache-2.0
"""What the suites about the configuration share: one run of the program, and a count of what held."""
import os
import subprocess
import sys

BINARY = os.path.abspath(sys.argv[1])
passed = failed = 0


def check(holds, what):
    global passed, failed
    passed += bool(holds)
    if not holds:
        failed += 1
        print('FAILED', what)


def run(directory, *arguments, **environment):
    """(status, output) of the program in `directory`, with a home of its own."""
    environment = {'PATH': os.environ['PATH'], 'HOME': str(directory.parent), 'LC_ALL': 'C.UTF-8', **environment}
    done = subprocess.run([BINARY, *arguments], cwd=directory, env=environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout + done.stderr


def finish():
    """The suite's exit status: nothing that was checked is a failure, too."""
    print(f'{passed} passed, {failed} failed')
    return 0 if passed and not failed else 1
