#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generated policies and requests, judged by OpenShell's own engine and by ours.

usage: differential_test.py BINARY TESTBED CACHE [SEED]

Every difference needs a reason in the tables of differences.py. Where this program is the looser one
the reason must say so. A reason that no longer occurs fails the test (with its own seed): it would hide the next difference.
"""
import collections
import concurrent.futures
import fcntl
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from differences import FILES, REQUESTS  # noqa: E402
from generate import generated_file, odd_files, requests  # noqa: E402

SKIPPED = 4
POLICIES = 80
# One with which each reason occurs.
SEED = 99


def harness(testbed, cache):
    """The path of OpenShell's harness, unpacked once."""
    archives = sorted(pathlib.Path(testbed).glob('openshell-*.tar.zst'))
    if not archives:
        print(f'# SKIP testbed: no build of OpenShell in {testbed}')
        sys.exit(SKIPPED)
    directory = pathlib.Path(cache) / archives[-1].name.removesuffix('.tar.zst')
    found = directory / 'openshell' / 'bin' / 'openshell-verdicts'
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / 'lock', 'w') as lock, tempfile.TemporaryDirectory(dir=cache) as fresh:
        fcntl.flock(lock, fcntl.LOCK_EX)  # One at a time: several suites of one build start here together.
        if not found.exists():
            tar = pathlib.Path(fresh) / 'openshell.tar'
            subprocess.run(['zstd', '-q', '--long=27', '-d', archives[-1], '-o', tar], check=True)
            subprocess.run(['tar', '-xf', tar, '-C', fresh], check=True)
            os.rename(pathlib.Path(fresh) / 'openshell', directory / 'openshell')
    return found


def ask(program, questions):
    """OpenShell's answers, one for each question."""
    text = ''.join(json.dumps(question) + '\n' for question in questions)
    answers = subprocess.run([program], input=text, capture_output=True, text=True, timeout=600, check=True)
    lines = [json.loads(line) for line in answers.stdout.splitlines()]
    assert len(lines) == len(questions), answers.stderr
    return lines


def question(text, request):
    port = '' if request.port == 443 else f':{request.port}'
    body = request.body and f'Content-Type: application/json\r\nContent-Length: {len(request.body)}\r\n'
    raw = f'{request.method} {request.target} HTTP/1.1\r\nHost: {request.host}{port}\r\n{body}\r\n{request.body}'
    return {'op': 'explain', 'policy': text, 'host': request.host, 'port': request.port, 'binary': request.binary,
            'ancestors': [], 'raw': raw, 'tls': True}


class Ours:
    """What this program says."""

    def __init__(self, binary, directory):
        self.binary = binary
        self.policy = directory / 'policy.yml'
        self.table = directory / 'table.yml'

    def loads(self, file):
        self.policy.write_text(file.policy)
        done = self._policy('check', self.policy)
        assert done.returncode in (0, 65), done
        return done.returncode == 0

    def verdicts(self, file, asked):
        """True for each request that passes: a table that expects every one to be allowed says which is not."""
        self.policy.write_text(file.policy)
        cases = [{'case': f'#{n}#', 'request': f'{one.method} https://{one.host}:{one.port}{one.target}', 'binary': one.binary,
                  'expect': 'allow', **({'body': one.body, 'fields': ['Content-Type: application/json']} if one.body else {})}
                 for n, one in enumerate(asked)]
        self.table.write_text(json.dumps({'policy': self.policy.name, 'cases': cases}))
        done = self._policy('test', self.table)
        output = done.stdout + done.stderr
        assert f'{len(cases)} cases' in output, output
        return [f'#{n}#' not in output for n in range(len(cases))]

    def _policy(self, *words):
        return subprocess.run([self.binary, 'policy', *words], capture_output=True, text=True, timeout=600)


class Differences:
    def __init__(self):
        self.unexplained = []
        self.reasons = collections.Counter()
        self.verdicts = collections.Counter()

    def take(self, table, subject, theirs, ours):
        self.verdicts[('allow' if theirs else 'deny') + (' here allow' if ours else ' here deny')] += 1
        if theirs == ours:
            return
        for difference in table:
            if difference.looser == ours and difference.applies(subject):
                self.reasons[difference.reason] += 1
                return
        self.unexplained.append(f'OpenShell {"allows" if theirs else "refuses"}, here {"allowed" if ours else "refused"}: {subject}')


def main():
    binary, testbed, cache = sys.argv[1:4]
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else SEED
    program = harness(testbed, cache)
    dice = random.Random(seed)
    found = Differences()
    with tempfile.TemporaryDirectory(prefix='differential-') as name:
        ours = Ours(binary, pathlib.Path(name))
        generated = [generated_file(dice) for _ in range(POLICIES)]
        files = generated + odd_files()
        answers = ask(program, [{'op': 'check', 'policy': file.policy} for file in files])
        here = [ours.loads(file) for file in files]
        for file, there, loads in zip(files, answers, here):
            found.take(FILES, file, there['loads'], loads)
        compared = [(file, requests(dice, file)) for file, there, loads in zip(generated, answers, here) if there['loads'] and loads]
        # The harness waits a while for an answer to what is malformed: that costs time and no processor.
        with concurrent.futures.ThreadPoolExecutor(POLICIES) as pool:
            answers = pool.map(lambda one: ask(program, [question(one[0].policy, request) for request in one[1]]), compared)
        for (file, asked), theirs in zip(compared, answers):
            for request, there, allowed in zip(asked, theirs, ours.verdicts(file, asked)):
                found.take(REQUESTS, request, there['verdict'] == 'allow', allowed)
    print(f'seed {seed}:', dict(found.verdicts))
    for reason, times in sorted(found.reasons.items()):
        print(f'{times:5d}  {reason}')
    for line in sorted(found.unexplained, reverse=True)[:40]:  # What is looser here comes first.
        print('UNEXPLAINED', line)
    unused = [one.reason for one in (*REQUESTS, *FILES) if one.reason not in found.reasons]
    for reason in unused:
        print('NO LONGER SEEN', reason)
    # A comparison in which one side always says the same compares nothing.
    enough = all(found.verdicts[key] >= 100 for key in ('allow here allow', 'deny here deny'))
    if not enough:
        print('TOO FEW verdicts of one kind')
    wrong = len(found.unexplained) + (len(unused) if seed == SEED else 0) + (not enough)
    print(f'{sum(found.verdicts.values()) - len(found.unexplained)} passed, {wrong} failed')
    sys.exit(1 if wrong else 0)


if __name__ == '__main__':
    main()
