# SPDX-License-Identifier: Apache-2.0
"""The checks of tools/check, in order. One line each; the output of one that fails."""
import argparse
import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / 'build'
# Suites mostly wait for processes they started: more at once than there are processors.
SUITES_AT_ONCE = 3
LONGEST = ('kernels', 'kernel', 'forge_delivery', 'gitea', 'session', 'faults', 'ecosystems', 'gateway_process')
# A variable: features and suites whose skips are failures; `all` names every one.
REQUIRE = 'AGENTIC_CI_TESTS_REQUIRE'
OUTPUT_LINES_MAX = 60  # Of a failure; the whole is in build/check.log.
FAILURES_SHOWN_MAX = 10
FAILURE = re.compile(r'\s*(FAIL|ERROR|not ok )|.*: FAILED')


class Tally:
    def __init__(self):
        self.passed, self.failed, self.skipped = 0, 0, []
        self.lock = threading.Lock()
        self.log = open(BUILD / 'check.log', 'w', encoding='utf-8')

    def report(self, name, seconds, output, passed, failed, skipped=None):
        """One check is over: `passed` and `failed` count its cases."""
        with self.lock:
            return self.report_alone(name, seconds, output, passed, failed, skipped)

    def report_alone(self, name, seconds, output, passed, failed, skipped):
        self.passed += passed
        self.failed += failed
        self.log.write(f'=== {name}\n{output}\n')
        self.log.flush()
        if skipped:
            self.skipped.append(f'{name}: {skipped}')
        if failed:
            print('\n'.join(excerpt(output.rstrip().splitlines())))
        word = 'FAILED' if failed else 'skipped' if skipped and not passed else 'ok'
        print(f'{word} {name} ({seconds:.1f}s)', flush=True)
        return not failed

    def command(self, name, *command):
        start = time.monotonic()
        run = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT)
        failed = run.returncode != 0
        return self.report(name, time.monotonic() - start, run.stdout.decode(errors='replace'),
                           not failed, failed)


def excerpt(lines):
    """Of the output of a failure: its end, and before it what follows each line that says that something failed."""
    if len(lines) <= OUTPUT_LINES_MAX:
        return lines
    end = len(lines) - OUTPUT_LINES_MAX // 3
    failures = [at for at, line in enumerate(lines[:end]) if FAILURE.match(line)][:FAILURES_SHOWN_MAX]
    shown = {at for first in failures for at in range(first, min(first + OUTPUT_LINES_MAX // 3, end))}
    if not shown:
        end = len(lines) - OUTPUT_LINES_MAX
    return [*(lines[at] for at in sorted(shown)), f'... ({BUILD.name}/check.log has the rest)', *lines[end:]]


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


def run_test(tally, directory, name, prefix=''):
    with tempfile.TemporaryDirectory(dir=BUILD) as scratch:
        junit = pathlib.Path(scratch) / 'check.xml'
        subprocess.run(['ctest', '--test-dir', directory, '-R', f'^{re.escape(name)}$', '--output-junit', junit,
                        '--output-log', junit.with_suffix('.log'),
                        '--test-output-size-passed', '1000000', '--test-output-size-failed', '1000000'],
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        tree = ElementTree.parse(junit)
    case = tree.find('testcase')
    output = case.findtext('system-out') or ''
    seconds = float(case.get('time'))
    reasons = skip_reasons(output)
    left_out = case.find('skipped')
    if left_out is not None and not left_out.get('message', '').startswith('SKIP_RETURN_CODE'):
        return tally.report(prefix + name, seconds, output, 0, 1)  # Its program is missing.
    if left_out is not None:
        missing = is_required(name, reasons)
        why = reasons[0] if reasons else 'no reason given'
        return tally.report(prefix + name, seconds, output, 0, int(missing), None if missing else why)
    passed, failed, skipped = count_cases(output, case.get('status') == 'run')
    if skipped and is_required(name, reasons):
        failed, skipped = failed + skipped, 0
    why = ', '.join(reasons[:3])
    return tally.report(prefix + name, seconds, output, passed, failed,
                        f'{skipped} cases{": " + why if why else ""}' if skipped else None)


def run_tests(tally, directory, tests, prefix=''):
    """Runs `tests`, as list_tests() gives them."""
    locks = {lock: threading.Lock() for wanted in tests.values() for lock in wanted}

    def run(name):
        with contextlib.ExitStack() as held:
            for lock in sorted(tests[name]):
                held.enter_context(locks[lock])
            run_test(tally, directory, name, prefix)

    # The longest first, then what crosses processes.
    ordered = sorted(tests, key=lambda name: (name not in LONGEST, name.startswith('unit_')))
    with concurrent.futures.ThreadPoolExecutor(SUITES_AT_ONCE) as pool:
        for done in [pool.submit(run, name) for name in ordered]:
            done.result()


def configure(tally, preset):
    return tally.command(f'configure {preset}', 'cmake', '--preset', preset)


def build(tally, preset, targets=(), runner=()):
    chosen = ['--target', *targets] if targets else []
    return tally.command(f'build {preset}', *runner, 'cmake', '--build', '--preset', preset, '-j', '2', *chosen)


def compile_more(tally, units, every):
    """While suites wait for processes, and only then: files by themselves, and the sanitized build."""
    nice = ('nice', '-n', '19')
    tally.command('alone', *nice, 'tools/alone', *(['--all'] if every else []))
    return configure(tally, 'sanitize') and build(tally, 'sanitize', units, nice)


def sources():
    names = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard', '*.cc', '*.h'], cwd=ROOT,
                           capture_output=True, text=True, check=True).stdout.split()
    return [name for name in names if (ROOT / name).exists()]


def check_format(tally, rewrite):
    start = time.monotonic()
    if rewrite:
        subprocess.run(['clang-format', '-i', *sources()], cwd=ROOT, check=True)
    run = subprocess.run(['clang-format', '--dry-run', *sources()], cwd=ROOT, capture_output=True, text=True)
    names = sorted(set(re.findall(r'^(\S+?):\d+:\d+: warning', run.stderr, re.MULTILINE)))
    output = ''.join(f'{name}: error: not formatted\n' for name in names)
    output += 'to rewrite them: tools/check --update\n' if names else ''
    tally.report('format', time.monotonic() - start, output, not names, len(names))


def update():
    """Rewrites what is made from something else. The release build is there."""
    subprocess.run(['cmake', '--build', '--preset', 'release', '-j', '2', '--target', 'agentic-ci', 'generate'],
                   cwd=ROOT, check=False, stdout=subprocess.DEVNULL)
    subprocess.run([BUILD / 'release' / 'tools' / 'generate', ROOT], check=False)
    goldens = sorted(ROOT.glob('tests/cli/*.test'))
    subprocess.run([ROOT / 'tools' / 'golden', '--update', *goldens], check=False)
    subprocess.run([ROOT / 'tests' / 'demo' / 'readme_test.py', '--update', BUILD / 'release' / 'agentic-ci'],
                   check=False)


def check(tally, arguments):
    check_format(tally, arguments.update)
    tally.command('layers', 'tools/layers')
    tally.command('rules', 'tools/tidy')
    fast = arguments.fast
    if not configure(tally, 'release'):
        return
    units = list_tests(BUILD / 'release', '^unit_')
    if not build(tally, 'release', units if fast else ()):
        return
    if arguments.update and not fast:
        update()
    if fast:
        run_tests(tally, BUILD / 'release', units)
        tally.skipped.append('everything but unit tests: --fast')
        return
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        sanitized = pool.submit(compile_more, tally, units, arguments.alone)
        run_tests(tally, BUILD / 'release', list_tests(BUILD / 'release', '.'))
    if sanitized.result():
        run_tests(tally, BUILD / 'sanitize', list_tests(BUILD / 'sanitize', '^unit_'), 'sanitize ')


def main():
    parser = argparse.ArgumentParser(prog='tools/check')
    parser.add_argument('--fast', action='store_true', help='format, layers, rules and unit tests')
    parser.add_argument('--kernels', action='store_true', help='boot every kernel of tests/kernels, not only the first')
    parser.add_argument('--alone', action='store_true', help='compile every file by itself, not only what changed lately')
    parser.add_argument('--update', action='store_true', help='rewrite what is generated, then check')
    arguments = parser.parse_args()
    BUILD.mkdir(exist_ok=True)
    os.environ['CLICOLOR_FORCE'] = '0'
    if arguments.kernels:
        os.environ['AGENTIC_CI_KERNELS'] = 'all'
    start = time.monotonic()
    tally = Tally()
    check(tally, arguments)
    for line in tally.skipped:
        print(f'not run: {line}')
    print(f'took {time.monotonic() - start:.0f}s')
    print(f'{tally.passed} passed, {tally.failed} failed')
    return 1 if tally.failed else 0


if __name__ == '__main__':
    sys.exit(main())
