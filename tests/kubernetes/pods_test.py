#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs in pods as they are allowed to be: what doctor says there, and what it says to type; runs, and how they end.

usage: pods_test.py BINARY PROBE TESTBED CACHE [unittest arguments]

AGENTIC_CI_KUBERNETES=all tries every pod of pods.py; otherwise those of the small part alone. No traffic leaves the namespace
that the cluster is in.
"""
import concurrent.futures
import contextlib
import glob
import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import sys
import tempfile
import time
import unittest

import pods
from cluster import EVERY, Cluster, every, make_root, require, use_programs

PODS_AT_ONCE = 4
# The shortest burst of processes comes first: where no group of the run's own counts, one is known by the container's peak.
STEPS = ('doctor', 'default', 'everyday', 'sh-bomb', 'bash-bomb', 'forks', 'few-forks', 'memory')
CHOSEN = [one for one in pods.PODS if EVERY or one.small]
STEP = re.compile(r'^@begin (\S+)\n(.*?)^@end \1 (\d+)$', re.MULTILINE | re.DOTALL)
NO_USERS = 'users of a pod\'s own need containerd 2 and runc 1.2: tests/kubernetes/install'
CLUSTER = None
SEEN = {}  # Name of a pod -> the steps it took, in time.


def steps(text):
    """{name: (exit code, output)} of what inside.sh printed."""
    return {name: (int(code), output) for name, output, code in STEP.findall(text)}


def run_pod(one, tier, *names, namespace=None, name=None, limits=None, before=None):
    """Starts the pod, lets it take these steps, and returns them; `before`: called once it runs."""
    name = name or one.name
    namespace = namespace or one.level
    CLUSTER.apply(pods.manifest(one, namespace, ['/usr/bin/inside.sh', tier, *names], name, limits))
    try:
        if before:
            CLUSTER.running(namespace, name)
            before(CLUSTER.get('Pod', namespace, name))
        ended = CLUSTER.ended(namespace, name, seconds=90)
        text = CLUSTER.log(namespace, name)
        if not text.endswith('@done\n'):
            raise AssertionError(f'{name}: {ended}\n{text[-3000:]}')
        return steps(text)
    finally:
        CLUSTER.delete('Pod', namespace, name)


class InPod:
    """What holds in each pod of pods.py, read from what one start of it has printed."""

    @classmethod
    def setUpClass(cls):
        if cls.pod.name not in SEEN:
            raise unittest.SkipTest(NO_USERS)
        cls.seen = SEEN[cls.pod.name].result()

    def record(self, name):
        return json.loads(self.seen[name + '.record'][1])

    def limited(self, name, limit):
        """The run ended at this limit, and says so."""
        code, said = self.seen[name]
        self.assertEqual(code, 125, said[-2000:])
        outcome = self.record(name)['outcome']
        self.assertEqual((outcome['kind'], outcome['limit']), ('limit', limit))

    def test_tier_and_what_to_type(self):
        code, said = self.seen['doctor']
        self.assertEqual(code, 0, said)
        end = f'tier {self.pod.tier}: runs can start here'
        self.assertIn(end + (' with --isolation landlock; ' if self.pod.tier == 'landlock' else '\n'), said)
        code, started = self.seen['default']
        if self.pod.tier == 'namespaces':
            self.assertEqual(code, 0, started)
            self.assertIn('isolation=namespaces', started)
            self.assertNotIn('hint:', started)
            return
        self.assertEqual(code, 69, started)
        self.assertIn(f'hint: {self.pod.remedy} (or agentic-ci run --isolation landlock ...)\n', started)
        self.assertIn(f'for more: {self.pod.remedy}\n', said)

    @every
    def test_what_is_printed_helps_when_it_is_typed(self):
        if not self.pod.remedy:
            return
        if not CLUSTER.user_namespaces:
            self.skipTest(NO_USERS)
        code, said = run_pod(pods.typed(self.pod), 'namespaces', 'default', name=self.pod.name + '-typed')['default']
        self.assertEqual(code, 0, said)
        self.assertIn('isolation=namespaces', said)

    def test_everyday_run(self):
        code, said = self.seen['everyday']
        self.assertEqual(code, 0, said)
        self.assertEqual(self.record('everyday')['isolation']['tier'], self.pod.tier)
        for line in ('web=heard', 'elsewhere=', 'shadow=', ' M a.txt', ' D gone.txt'):
            self.assertRegex(said, f'(?m)^{line}$')
        changes = json.loads(self.seen['everyday.changes'][1])['files']
        self.assertEqual(sorted((change['state'], change['path']) for change in changes),
                         [('deleted', 'gone.txt'), ('modified', 'a.txt')])

    def test_limit_of_processes_is_said(self):
        short = ['sh-bomb'] if self.pod.tier == 'landlock' or self.counted() else []
        for name in (*short, 'bash-bomb', 'forks'):
            with self.subTest(name):
                self.limited(name, 'pids')
        self.assertEqual(self.seen['few-forks'][0], 0, self.seen['few-forks'][1])  # The control.

    def counted(self):
        """Whether the container's groups can be written: then the kernel counts for the run alone."""
        return bool(self.pod.context.get('privileged')) and self.pod.user == 0

    def test_what_counts(self):
        notes = {control['name']: control['note'] for control in self.record('everyday')['isolation']['controls']}
        for name in ('memory', 'pids'):
            self.assertEqual(notes[name] == 'cgroup', self.counted(), notes)

    def test_limit_of_memory_is_said(self):
        self.limited('memory', 'memory')

    def test_nothing_is_left(self):
        self.assertEqual(self.seen['left'], (0, ''))


def in_pod(one):
    name = 'Pod' + ''.join(word.capitalize() for word in one.name.split('-'))
    return name, type(name, (InPod, unittest.TestCase), {'pod': one, '__module__': __name__})


globals().update(in_pod(one) for one in CHOSEN)


class OfThePod(unittest.TestCase):
    """Limits that are the pod's: reached, they are said as the run's own are."""

    def run_in(self, name, step, limits=None, before=None):
        pod = next(one for one in pods.PODS if one.name == 'restricted')
        seen = run_pod(pod, 'landlock', *(['await-go'] if before else []), step, 'few-forks', name=name, limits=limits,
                       before=before)
        code, said = seen[step]
        self.assertEqual(code, 125, said[-2000:])
        self.assertEqual(seen['few-forks'][0], 0, 'the control')
        return json.loads(seen[step + '.record'][1])['outcome']

    def test_memory(self):
        self.assertEqual(self.run_in('memory', 'large', limits={'memory': '256Mi'})['limit'], 'memory')

    @every
    def test_memory_that_another_run_of_the_container_used(self):
        """What the kernel counts may be the other's, so neither is said to have reached a limit, and the one that waits goes on."""
        pod = next(one for one in pods.PODS if one.name == 'restricted')
        seen = run_pod(pod, 'landlock', 'neighbours', name='neighbours', limits={'memory': '256Mi'})
        code, said = seen['waits']
        self.assertEqual(code, 0, said)
        self.assertIn('went', said)
        self.assertEqual(json.loads(seen['waits.record'][1])['outcome']['kind'], 'success')
        code, said = seen['large']
        self.assertNotIn(code, (0, 125), said)  # The control: its program was killed.
        self.assertEqual(json.loads(seen['large.record'][1])['outcome']['kind'], 'agent-failed')

    @every
    def test_processes(self):
        def set_limit(pod):
            """As the kubelet does for `podPidsLimit`."""
            uid = pod['metadata']['uid']
            groups = [path for path in glob.glob('/sys/fs/cgroup/**/*' + uid, recursive=True)
                      if os.path.exists(path + '/pids.max')]
            self.assertEqual(len(groups), 1)
            pathlib.Path(groups[0], 'pids.max').write_text('100')
            pathlib.Path(CLUSTER.volume(uid, 'v0'), 'go').touch()
        self.assertEqual(self.run_in('processes', 'unlimited-forks', before=set_limit)['limit'], 'pids')


class Killed(unittest.TestCase):
    """What a pod leaves that ends in the middle of a run; the report and the run's own directory lie on the node."""
    SCRIPT = ('git init -q co; exec agentic-ci run --isolation landlock --workdir co --report-dir /kept/own/report -- '
              'sh -c "echo begun; sleep 600; : %s"')

    def setUp(self):
        self.marker = 'pod-' + secrets.token_hex(4)
        self.kept = pathlib.Path(CLUSTER.base, self.marker)
        for name in ('tmp', 'own'):
            (self.kept / name).mkdir(0o700, parents=True)
            os.chown(self.kept / name, 1000, 1000)

    def start(self, name, script):
        restricted = next(one for one in pods.PODS if one.name == 'restricted')
        one = restricted._replace(volumes={**restricted.volumes, '/kept': {'hostPath': {'path': str(self.kept)}}})
        made = pods.manifest(one, 'privileged', ['/bin/sh', '-c', script], name)
        made['spec']['containers'][0]['env'] = [{'name': 'TMPDIR', 'value': '/kept/tmp'}, {'name': 'HOME', 'value': '/builds'}]
        CLUSTER.apply(made)

    def begin(self):
        self.start(self.marker, self.SCRIPT % self.marker)
        CLUSTER.running('privileged', self.marker)
        CLUSTER.until(lambda: 'begun' in CLUSTER.log('privileged', self.marker), 60)
        self.assertNotEqual(self.alive(), [])  # The control.
        self.assertNotEqual(self.left(), [])

    def alive(self):
        found = []
        for path in pathlib.Path('/proc').glob('[0-9]*/cmdline'):
            try:
                line = path.read_text(errors='replace')
            except OSError:
                continue
            if self.marker in line and 'sleep 600' in line:
                found.append(int(path.parent.name))
        return found

    def left(self):
        return [path.name for path in (self.kept / 'tmp').iterdir()]

    def test_deleted(self):
        self.begin()
        start = time.monotonic()
        CLUSTER.delete('Pod', 'privileged', self.marker, grace=60)
        self.assertLess(time.monotonic() - start, 50)  # It did not have to be killed.
        self.assertEqual(self.alive(), [])
        self.assertEqual(self.left(), [])
        outcome = json.loads((self.kept / 'own/report/run.json').read_text())['outcome']
        self.assertEqual((outcome['kind'], outcome['exit_code']), ('terminated', 143))

    @every
    def test_killed(self):
        self.begin()
        for pid in self.alive():
            with contextlib.suppress(OSError):  # It ended with the first.
                if pathlib.Path(f'/proc/{pid}/comm').read_text() == 'agentic-ci\n':
                    os.kill(pid, signal.SIGKILL)
        self.assertEqual(CLUSTER.ended('privileged', self.marker)['exitCode'], 137)
        CLUSTER.until(lambda: not self.alive(), 60)
        CLUSTER.delete('Pod', 'privileged', self.marker)
        self.assertNotEqual(self.left(), [])  # The next run on this volume removes it.
        self.start(self.marker + '-next', 'git init -q co; agentic-ci run --isolation landlock --workdir co '
                                          '--report-dir /kept/own/next -- true')
        self.assertEqual(CLUSTER.ended('privileged', self.marker + '-next')['exitCode'], 0)
        self.assertEqual(self.left(), [])
        CLUSTER.delete('Pod', 'privileged', self.marker + '-next')


def cases(suite):
    for one in suite:
        yield from cases(one) if isinstance(one, unittest.TestSuite) else [one]


class Main(unittest.TestProgram):
    """Starts the cluster, and the pods of the cases that were chosen, before the first case."""

    def runTests(self):
        global CLUSTER
        if self.testLoader.errors:  # A name that is unknown: unittest says so without a cluster.
            return super().runTests()
        require(TESTBED)
        wanted = {case.pod.name for case in cases(self.test) if isinstance(case, InPod)}
        base = tempfile.mkdtemp(prefix='pods-')
        try:
            root = make_root(base + '/root', programs=['/usr/bin/bash', '/usr/bin/git'], files={
                '/usr/bin/agentic-ci': BINARY, '/usr/bin/kernel_probe': PROBE,
                '/usr/bin/inside.sh': pathlib.Path(__file__).with_name('inside.sh'),
                '/usr/share/git-core': '/usr/share/git-core'})
            with Cluster(TESTBED, CACHE) as CLUSTER, concurrent.futures.ThreadPoolExecutor(PODS_AT_ONCE) as pool:
                CLUSTER.load(pods.IMAGE, root)
                for level in ('restricted', 'baseline', 'privileged'):
                    CLUSTER.namespace(level, level)
                for one in CHOSEN:
                    if one.name in wanted and (CLUSTER.user_namespaces or 'hostUsers' not in one.spec):
                        SEEN[one.name] = pool.submit(run_pod, one, one.tier, *STEPS)
                super().runTests()
        finally:
            shutil.rmtree(base, ignore_errors=True)


if __name__ == '__main__':
    BINARY, PROBE, TESTBED, CACHE = (os.path.abspath(path) for path in sys.argv[1:5])
    use_programs(CACHE)
    Main(argv=[sys.argv[0], *sys.argv[5:]], verbosity=2)
