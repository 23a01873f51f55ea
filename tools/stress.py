# SPDX-License-Identifier: Apache-2.0
"""tools/check --stress N: which cases fail by chance.

Runs every suite N times, in random order and two for each processor at once, while the machine is otherwise as unlike
an idle one as can be had without harm: its processors are busy, containers come and go, and a browser with its helpers
is installed. The suite that depends on what else the machine does, has, or was left with fails here.
"""
import collections
import concurrent.futures
import contextlib
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import tempfile
import threading
import time

from suites import ROOT, run_test

AT_ONCE = 2 * len(os.sched_getaffinity(0))  # Most suites wait for something most of the time.
BUSY = 'while :; do :; done'
# The names of cases that failed, as unittest, kernel_test.py and its like, node, Catch2 and golden print them.
CASES = (r'^(?:FAIL|ERROR): (\S+) \((\S+)\)', r'^FAILED +([\w.]+\.\w+.*)$', r'^ *not ok \d+ - (.*)$', r'^(\S+\.test:\d+): error',
         r'^-{79}\n(.+)\n-{79}\n\S+:\d+\n\.{79}\n+\S+: FAILED')


def failed_cases(done):
    """The cases of a suite that failed; `?` where its output names none."""
    found = []
    for pattern in CASES:
        for match in re.finditer(pattern, done.output, re.MULTILINE):
            found.append(match.group(match.lastindex).split(' (')[0].strip())
    return sorted(set(found)) or ['?']


@contextlib.contextmanager
def busy_processors():
    """An endless loop on each processor, which stays there."""
    loops = [subprocess.Popen(['taskset', '-c', str(processor), 'sh', '-c', BUSY], stdin=subprocess.DEVNULL)
             for processor in sorted(os.sched_getaffinity(0))]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@contextlib.contextmanager
def containers():
    """A container that is started and removed, over and over, with a store of its own: its mounts and processes come and go
    on the whole machine. Yields the number of those that ran, so far, as a list of one."""
    base = tempfile.mkdtemp(prefix='agentic-ci-stress-')
    root = base + '/root'
    for name in ('bin', 'dev', 'proc', 'sys', 'tmp', 'etc', 'run', 'var/tmp'):
        os.makedirs(f'{root}/{name}')
    shutil.copy('/bin/busybox', root + '/bin/sh')
    line = ['podman', '--root', base + '/store', '--runroot', base + '/runroot', '--tmpdir', base + '/podman',
            '--cgroup-manager', 'cgroupfs', '--events-backend', 'none', '--runtime', 'runc', 'run', '--rm', '--network', 'none', '--ulimit', 'nproc=1024:1024',
            '--ulimit', 'nofile=1024:1024', '--rootfs', root, '/bin/sh', '-c', 'exit 0']
    stop, count = threading.Event(), [0]

    def turn():
        while not stop.is_set():
            done = subprocess.run(line, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if done.returncode == 0:
                count[0] += 1
            elif count[0] == 0:
                print(f'no containers beside the suites: {done.stderr.strip()}', flush=True)
                return
            else:
                time.sleep(1)  # Podman, too, is slow at times and finds no exit code.

    thread = threading.Thread(target=turn)
    thread.start()
    try:
        yield count
    finally:
        stop.set()
        thread.join()
        remove_store(base)


def remove_store(base):
    """Removes a directory with podman's store in it, and what is mounted there. Podman cleans up behind the last container, too,
    in a process of its own: each of the two may find that the other was faster."""
    for attempt in range(100):
        with open('/proc/self/mountinfo', encoding='utf-8', errors='replace') as mounts:
            places = [words[4] for words in map(str.split, mounts) if words[4].startswith(base + '/')]
        for place in reversed(places):
            subprocess.run(['umount', '-l', place], stderr=subprocess.DEVNULL, check=False)
        try:
            return shutil.rmtree(base)
        except OSError:
            if attempt == 99:
                raise
            time.sleep(0.2)


def table(failures, times, rounds):
    """Lines: each case that failed, and in how many of the suite's runs; worst first."""
    lines = [f'{count:4} of {rounds}  {suite}  {case}' for (suite, case), count in
             sorted(failures.items(), key=lambda item: (-item[1], item[0]))]
    slowest = sorted(times.items(), key=lambda item: -item[1])[:5]
    return lines + ['longest: ' + ', '.join(f'{name} {seconds:.0f} s' for name, seconds in slowest)]


def commit():
    """What is checked: the commit, and a hash of what differs from it."""
    def git(*words):
        return subprocess.run(['git', '-C', ROOT, *words], check=True, capture_output=True).stdout
    return git('rev-parse', 'HEAD').decode().strip() + ' ' + hashlib.sha256(git('diff', 'HEAD')).hexdigest()[:12]


class Account:
    """The runs so far, in a file: one that was stopped goes on where it was."""

    def __init__(self, path, head, resume):
        self.failures, self.times, self.skipped, self.ran = collections.Counter(), collections.Counter(), {}, collections.Counter()
        self.path = path
        lines = [json.dumps(head)]
        if resume:
            text = path.read_text(encoding='utf-8') if path.exists() else '{}\n'
            lines = text[:text.rindex('\n')].splitlines()  # The last one may be cut.
        self.head = json.loads(lines[0])
        if self.head.get('commit') != head['commit']:
            raise SystemExit(f'error: {path} has no run of this commit that could go on')
        for line in lines[1:]:
            self.add(**json.loads(line))
        path.write_text('\n'.join(lines) + '\n', encoding='utf-8')

    def add(self, suite, seconds, skipped, failed):
        self.ran[suite] += 1
        self.times[suite] = max(self.times[suite], seconds)
        if skipped:
            self.skipped[suite] = skipped
        for case in failed:
            self.failures[suite, case] += 1

    def note(self, **line):
        self.add(**line)
        with open(self.path, 'a', encoding='utf-8') as file:
            file.write(json.dumps(line) + '\n')

    def left(self, jobs):
        """`jobs` without those that ran, in their order."""
        ran, left = self.ran.copy(), []
        for name in jobs:
            if ran[name]:
                ran[name] -= 1
            else:
                left.append(name)
        return left


def run(directory, tests, rounds, seed, resume=False):
    """Runs `tests` (as suites.list_tests() gives them) `rounds` times each; prints what failed. The number of failed cases."""
    seed = seed if seed is not None else random.SystemRandom().randrange(1 << 32)
    account = Account(directory / 'stress.jsonl', {'commit': commit(), 'seed': seed, 'rounds': rounds, 'suites': sorted(tests)}, resume)
    seed, rounds = account.head['seed'], account.head['rounds']
    jobs = [name for name in account.head['suites'] for _ in range(rounds)]
    random.Random(seed).shuffle(jobs)
    left = account.left(jobs)
    locks = {lock: threading.Lock() for wanted in tests.values() for lock in wanted}
    guard = threading.Lock()
    print(f'seed {seed}: {len(account.head["suites"])} suites, {rounds} times each, {AT_ONCE} at once', flush=True)
    if resume:
        print(f'{len(jobs) - len(left)} of {len(jobs)} ran before', flush=True)

    def one(name):
        with contextlib.ExitStack() as held:
            for lock in sorted(tests[name]):
                held.enter_context(locks[lock])
            done = run_test(directory, name)
        with guard:
            account.note(suite=name, seconds=done.seconds, skipped=done.skipped, failed=failed_cases(done) if done.failed else [])
            if done.failed:
                log.write(f'=== {name}\n{done.output}\n')
                log.flush()
            print(f'{"FAILED" if done.failed else "ok"} {name} ({done.seconds:.1f}s)', flush=True)

    kept = directory / 'stress.log'  # The test of this tool runs it, too, elsewhere.
    with open(kept, 'a' if resume else 'w', encoding='utf-8') as log, busy_processors(), containers() as beside, \
            concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for done in [pool.submit(one, name) for name in left]:
            done.result()
    for name, why in sorted(account.skipped.items()):
        print(f'not run: {name}: {why}')
    print(f'beside {beside[0]} containers, seed {seed}; outputs of what failed are in {kept}')
    print('\n'.join(table(account.failures, account.times, rounds)))
    print(f'{len(jobs)} runs of suites, {len(account.failures)} cases failed')
    return len(account.failures)
