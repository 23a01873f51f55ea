# SPDX-License-Identifier: Apache-2.0
"""The checks of tools/check, in order. One line each; the output of one that fails."""
import argparse
import concurrent.futures
import contextlib
import dataclasses
import os
import re
import subprocess
import sys
import threading
import time

import affected
import guest
import prefetch
import stress
from suites import BUILD, REQUIRE, ROOT, Done, count_cases, list_tests, run_test

# Suites mostly wait for processes they started: more at once than there are processors.
SUITES_AT_ONCE = 5
LONGEST = ('kernels', 'kernel', 'forge_delivery', 'gitea', 'session', 'faults', 'ecosystems', 'gateway_process')
OUTPUT_LINES_MAX = 60  # Of a failure; the whole is in build/check.log.
FAILURES_SHOWN_MAX = 10
FAILURE = re.compile(r'\s*(FAIL|ERROR|not ok )|.*: FAILED')
# Suites that claim containment: a failure there counts even if a second run passes.
CONTAINMENT = {'attack', 'containment', 'identity', 'smuggling', 'credentials', 'containers', 'kernel', 'kernels'}
# Suites that run inside the emulated arm64 machine.
ARM64_SUITES = '^unit_'
FLAKY_MAX = 1  # Suites that may fail beside others and pass alone, in one run.


class Tally:
    def __init__(self):
        self.passed, self.failed, self.skipped, self.flaky = 0, 0, [], []
        self.lock = threading.Lock()
        self.log = open(BUILD / 'check.log', 'w', encoding='utf-8')

    def report(self, name, seconds, output, passed, failed, skipped=None):
        return self.take(Done(name, seconds, output, passed, failed, skipped))

    def take(self, done, again=False):
        """Counts and prints one check; `again`: its failures are not counted, since it is run a second time."""
        with self.lock:
            self.log.write(f'=== {done.name}\n{done.output}\n')
            self.log.flush()
            if done.failed:
                print('\n'.join(excerpt(done.output.rstrip().splitlines())))
            word = 'FAILED' if done.failed else 'skipped' if done.skipped and not done.passed else 'ok'
            spent = f', {done.processor:.1f}s of processor' if done.processor else ''
            print(f'{word} {done.name} ({done.seconds:.1f}s{spent}){", and is run again at the end" if again else ""}', flush=True)
            if again:
                return False
            self.passed += done.passed
            self.failed += done.failed
            if done.skipped:
                self.skipped.append(f'{done.name}: {done.skipped}')
            return not done.failed

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


def run_tests(tally, directory, tests, prefix=''):
    """Runs `tests`, as list_tests() gives them. What fails beside others is run once more, alone, and is reported as
    flaky if it passes then; not so what claims containment."""
    locks = {lock: threading.Lock() for wanted in tests.values() for lock in wanted}
    again = []

    def run(name):
        with contextlib.ExitStack() as held:
            for lock in sorted(tests[name]):
                held.enter_context(locks[lock])
            done = run_test(directory, name, prefix)
        second = bool(done.failed) and name not in CONTAINMENT
        if second:
            again.append(name)
        tally.take(done, again=second)

    # The longest first, then what crosses processes.
    ordered = sorted(tests, key=lambda name: (name not in LONGEST, name.startswith('unit_')))
    with concurrent.futures.ThreadPoolExecutor(SUITES_AT_ONCE) as pool:
        for done in [pool.submit(run, name) for name in ordered]:
            done.result()
    for name in again:
        if tally.take(run_test(directory, name, prefix)):
            tally.flaky.append(prefix + name)


def configure(tally, preset):
    return tally.command(f'configure {preset}', 'cmake', '--preset', preset, '-DAGENTIC_CI_COMMIT=')


def build(tally, preset, targets=(), runner=()):
    chosen = ['--target', *targets] if targets else []
    return tally.command(f'build {preset}', *runner, 'cmake', '--build', '--preset', preset, '-j', '2', *chosen)


def compile_more(tally, units, every):
    """While suites wait for processes, and only then: files by themselves, and the sanitized build."""
    nice = ('nice', '-n', '19')
    tally.command('alone', *nice, 'tools/alone', *(['--all'] if every else []))
    return configure(tally, 'sanitize') and build(tally, 'sanitize', units, nice)


def fetch_packages(tally):
    """Whether what the suites need from registries is there, or may be missing."""
    start = time.monotonic()
    missing = prefetch.everything()
    needed = bool(missing) and 'all' in os.environ.get(REQUIRE, '').split()
    tally.report('packages', time.monotonic() - start, '\n'.join(missing), not missing, int(needed),
                 None if needed or not missing else f'not to be had: {"; ".join(missing)}')
    return not needed


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
    subprocess.run([ROOT / 'tests' / 'index.py'], check=False)
    goldens = sorted(ROOT.glob('tests/cli/*.test'))
    subprocess.run([ROOT / 'tools' / 'golden', '--update', *goldens], check=False)
    subprocess.run([ROOT / 'tests' / 'demo' / 'readme_test.py', '--update', BUILD / 'release' / 'agentic-ci'],
                   check=False)


def chosen(names):
    """The tests called `names`; all of them without any."""
    tests = list_tests(BUILD / 'release', '.')
    unknown = [name for name in names if name not in tests]
    if unknown:
        sys.exit(f'tools/check: error: no suite is called {" or ".join(unknown)}; ctest --test-dir build/release -N lists them')
    return {name: tests[name] for name in names or tests}


def check(tally, arguments):
    check_format(tally, arguments.update)
    tally.command('layers', 'tools/layers')
    tally.command('rules', 'tools/tidy')
    fast = arguments.fast
    if not configure(tally, 'release'):
        return
    units = list_tests(BUILD / 'release', '^unit_')
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        fetched = None if fast else pool.submit(fetch_packages, tally)
        if not build(tally, 'release', units if fast else ()) or fetched and not fetched.result():
            return
    if arguments.update and not fast:
        update()
    if arguments.stress:
        failed = stress.run(BUILD / 'release', chosen(arguments.suites), arguments.stress, arguments.seed,
                            arguments.resume)
        tally.failed += failed
        return
    if fast:
        run_tests(tally, BUILD / 'release', units)
        tally.skipped.append('everything but unit tests: --fast')
        return
    if arguments.since:
        names = affected.affected(affected.changed(arguments.since))
        tests = list_tests(BUILD / 'release', '.')
        run_tests(tally, BUILD / 'release', {name: tests[name] for name in names})
        tally.skipped.append(f'{len(tests) - len(names)} of {len(tests)} suites, and the sanitized build: --since')
        return
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        sanitized = pool.submit(compile_more, tally, units, arguments.alone)
        run_tests(tally, BUILD / 'release', list_tests(BUILD / 'release', '.'))
    if sanitized.result():
        run_tests(tally, BUILD / 'sanitize', list_tests(BUILD / 'sanitize', '^unit_'), 'sanitize ')


def check_arm64(tally):
    """The cross build for arm64: its files here, its unit tests and the sandbox on an arm64 kernel in an emulated machine."""
    if not (tally.command('sysroot', 'tools/sysroot') and configure(tally, 'arm64') and build(tally, 'arm64')):
        return
    run_tests(tally, BUILD / 'arm64', list_tests(BUILD / 'arm64', '^(build|kernels|sbom)$'), 'arm64 ')
    for done in guest.run_suites(BUILD / 'arm64', ARM64_SUITES, 'arm64', 'aarch64-linux-gnu-strip', BUILD / 'machines'):
        tally.take(dataclasses.replace(done, name=f'arm64 {done.name}'))


def check_kubernetes(tally):
    """Runs in every pod of tests/kubernetes, on a real cluster."""
    os.environ['AGENTIC_CI_KUBERNETES'] = 'all'
    if configure(tally, 'release') and build(tally, 'release', ('agentic-ci', 'kernel_probe')):
        run_tests(tally, BUILD / 'release', list_tests(BUILD / 'release', '^kubernetes_'))


def check_release(tally):
    """The release workflow from a tag to an action that installs what was released, on this machine (tests/release)."""
    if not tally.command('sysroot', 'tools/sysroot') or not tally.command('act', 'tests/action/install', BUILD / 'actions', 'act'):
        return
    for script in ('tests/release/release_test.py', 'tests/release/image_test.py'):
        start = time.monotonic()
        run = subprocess.run([ROOT / script, BUILD / 'actions/act'], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors='replace')
        name = script.rpartition('/')[2].removesuffix('_test.py')
        tally.take(Done(name, time.monotonic() - start, run.stdout, *count_cases(run.stdout, run.returncode == 0)[:2]))


def check_fuzz(tally, minutes):
    """Searches for inputs that break a parser: one case for each target. What is found is in build/fuzz/found/."""
    start = time.monotonic()
    run = subprocess.run([ROOT / 'tests/fuzz/run', str(minutes)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, errors='replace')
    passed = run.stdout.count(' executions, clean\n')
    print(run.stdout, end='', flush=True)
    tally.report('fuzz', time.monotonic() - start, run.stdout, passed, max(run.stdout.count(' executions, ') - passed, run.returncode != 0))


def main():
    parser = argparse.ArgumentParser(prog='tools/check')
    parser.add_argument('--fast', action='store_true', help='format, layers, rules and unit tests')
    parser.add_argument('--kernels', action='store_true', help='boot every kernel of tests/kernels, not only the first')
    parser.add_argument('--alone', action='store_true', help='compile every file by itself, not only what changed lately')
    parser.add_argument('--update', action='store_true', help='rewrite what is generated, then check')
    parser.add_argument('--arch', choices=['arm64'], help='the cross build instead, under emulation')
    parser.add_argument('--kubernetes', action='store_true', help='every pod of tests/kubernetes, on a real cluster, instead')
    parser.add_argument('--release', action='store_true', help='a dry run of the release workflow instead')
    parser.add_argument('--fuzz', type=int, metavar='MINUTES', help='every fuzz target for MINUTES, instead')
    parser.add_argument('--since', metavar='REV', help='only the tests that what changed since REV can affect')
    parser.add_argument('--stress', type=int, metavar='N', help='run every suite N times beside a busy machine')
    parser.add_argument('--seed', type=int, help='with --stress: the order of an earlier run')
    parser.add_argument('--resume', action='store_true', help='with --stress: go on with a run of this commit that was stopped')
    parser.add_argument('suites', nargs='*', help='with --stress: these suites alone')
    arguments = parser.parse_args()
    if (arguments.suites or arguments.seed is not None or arguments.resume) and not arguments.stress:
        parser.error('--seed, --resume and names of suites go with --stress')
    if arguments.resume and (arguments.suites or arguments.seed is not None):
        parser.error('--resume takes the suites and the seed of the run that was stopped')
    BUILD.mkdir(exist_ok=True)
    os.environ['CLICOLOR_FORCE'] = '0'
    if arguments.kernels:
        os.environ['AGENTIC_CI_KERNELS'] = 'all'
    start = time.monotonic()
    tally = Tally()
    if arguments.arch:
        check_arm64(tally)
    elif arguments.kubernetes:
        check_kubernetes(tally)
    elif arguments.release:
        check_release(tally)
    elif arguments.fuzz is not None:
        check_fuzz(tally, arguments.fuzz)
    else:
        check(tally, arguments)
    for line in tally.skipped:
        print(f'not run: {line}')
    for name in tally.flaky:
        print(f'flaky: {name} failed beside others and passed alone; its first output is in {BUILD.name}/check.log')
    print(f'took {time.monotonic() - start:.0f}s')
    print(last_line(tally.passed, tally.failed, tally.flaky))
    return 1 if tally.failed or len(tally.flaky) > FLAKY_MAX else 0


def last_line(passed, failed, flaky):
    return f'{passed} passed, {failed} failed' + (f', {len(flaky)} flaky' if flaky else '')


if __name__ == '__main__':
    sys.exit(main())
