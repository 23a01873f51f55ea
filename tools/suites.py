# SPDX-License-Identifier: Apache-2.0
"""Test suites as ctest knows them: lists them, runs one, counts its cases."""
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / 'build'
# A variable: features and suites whose skips are failures; `all` names every one.
REQUIRE = 'AGENTIC_CI_TESTS_REQUIRE'


@dataclasses.dataclass
class Done:
    """One check that is over. `passed` and `failed` count its cases; `skipped` says which were left out, and why."""
    name: str
    seconds: float
    output: str
    passed: int
    failed: int
    skipped: str | None = None
    processor: float = 0  # Seconds, of all processes that were waited for.


def skip_reasons(output):
    """Why cases were skipped, each once; those of ours begin with the feature that is missing."""
    found = re.findall(r"# SKIP (.+)|skipped '(.+)'|skipped \"(.+)\"", output)
    return sorted(set(''.join(reason).strip() for reason in found))


def is_required(name, reasons):
    """Whether suite `name`, or a feature that it was skipped for, has to be there."""
    features = {reason.partition(':')[0] for reason in reasons}
    return bool(({name, 'all'} | features) & set(os.environ.get(REQUIRE, '').split()))


def count_cases(output, succeeded):
    """(passed, failed, skipped) of one test program, in the words of its framework; else 1 case."""
    def last(pattern):
        found = re.findall(pattern, output, re.MULTILINE)
        return int(found[-1]) if found else None

    def total(pattern):
        return sum(int(number) for number in re.findall(pattern, output, re.MULTILINE))

    passed = last(r'^All tests passed \(\d+ assertions? in (\d+) test cases?\)')  # Catch2
    failed = last(r'^test cases: .*?(\d+) failed')
    skipped = len(re.findall(r'^ *# SKIP ', output, re.MULTILINE))
    if passed is not None or failed is not None:
        # Catch2 takes what base/skip.h ended for passed.
        passed = (passed or last(r'^test cases:.*?(\d+) passed') or 0) - skipped
    elif last(r'^# pass (\d+)') is not None:  # node --test
        passed, failed = last(r'^# pass (\d+)'), last(r'^# fail (\d+)')
        skipped = last(r'^# skipped (\d+)') or 0
    elif last(r'^Ran (\d+) tests?') is not None:  # unittest, perhaps as several users.
        failed = total(r'^FAILED \(.*?failures=(\d+)') + total(r'^FAILED \(.*?errors=(\d+)')
        left_out = total(r'^(?:OK|FAILED) \(.*?skipped=(\d+)')
        passed = max(0, total(r'^Ran (\d+) tests?') - failed - left_out)
        skipped += left_out
    elif last(r'^(\d+) passed, \d+ failed') is not None:  # Our own.
        passed, failed = last(r'^(\d+) passed, \d+ failed'), last(r'^\d+ passed, (\d+) failed')
    if passed == 0 and not failed and not skipped:
        return 0, 1, 0  # A suite that ran nothing has not passed.
    passed, failed = passed or 0, failed or 0
    if succeeded:
        return passed or (0 if skipped else 1), 0, skipped
    return passed, failed or 1, skipped


def list_tests(directory, pattern):
    """What ctest lists: each test's name and its RESOURCE_LOCKs, which a ctest of its own cannot know to be taken."""
    listed = subprocess.run(['ctest', '--test-dir', directory, '--show-only=json-v1', '-R', pattern],
                            capture_output=True, check=True).stdout
    return {test['name']: next((entry['value'] for entry in test.get('properties', []) if entry['name'] == 'RESOURCE_LOCK'), [])
            for test in json.loads(listed)['tests']}


def run_test(directory, name, prefix=''):
    """Runs one test, and returns what has become of it."""
    with tempfile.TemporaryDirectory(dir=BUILD) as scratch:
        junit = pathlib.Path(scratch) / 'check.xml'
        process = subprocess.Popen(['ctest', '--test-dir', directory, '-R', f'^{re.escape(name)}$', '--output-junit', junit,
                                    '--output-log', junit.with_suffix('.log'),
                                    '--test-output-size-passed', '1000000', '--test-output-size-failed', '1000000'],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        tree = ElementTree.parse(junit)
    processor = used.ru_utime + used.ru_stime
    case = tree.find('testcase')
    output = case.findtext('system-out') or ''
    seconds = float(case.get('time'))
    reasons = skip_reasons(output)
    left_out = case.find('skipped')
    if left_out is not None and not left_out.get('message', '').startswith('SKIP_RETURN_CODE'):
        return Done(prefix + name, seconds, output, 0, 1)  # Its program is missing.
    if left_out is not None:
        missing = is_required(name, reasons)
        why = reasons[0] if reasons else 'no reason given'
        return Done(prefix + name, seconds, output, 0, int(missing), None if missing else why, processor)
    passed, failed, skipped = count_cases(output, case.get('status') == 'run')
    if skipped and is_required(name, reasons):
        failed, skipped = failed + skipped, 0
    why = ', '.join(reasons[:3])
    return Done(prefix + name, seconds, output, passed, failed,
                f'{skipped} cases{": " + why if why else ""}' if skipped else None, processor)
