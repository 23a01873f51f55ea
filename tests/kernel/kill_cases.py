# SPDX-License-Identifier: Apache-2.0
"""Each process of a run is sent each signal at many moments of it; tearDown looks for what is left."""
import json
import os
import signal
import subprocess
import time

from harness import GONE_SECONDS, RUN_SECONDS, SCRATCH, TIER, Case, only_as, only_in, processes, read, wait_until

MOMENTS = 5
# What the agent does takes a while, and so does collecting what it changed.
AGENT = 'i=0; while [ $i -lt 90 ]; do i=$((i + 1)); printf %020000d 7 >$i.txt; done; sleep 0.1; : "$0"'
OPTIONS = ['--cpus', '1']
SUPERVISOR = ('SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGKILL')
OTHERS = ('SIGTERM', 'SIGABRT', 'SIGKILL')
# What a run may end with that was sent a signal: by itself, with the signal's status, with what was lost, or, before
# it began to listen or if it cannot, of the signal.
ENDS = {0, 74, 130, 143, *(-getattr(signal, name) for name in SUPERVISOR)}


class Kills(Case):
    def sent(self, target, number, delay):
        """A run whose `target` is sent a signal after so long; (exit status, report directory)."""
        process = self.start(['sh', '-c', AGENT, self.marker], options=OPTIONS)
        started = time.monotonic()
        pid = None
        while pid is None and process.poll() is None and time.monotonic() - started < GONE_SECONDS:
            time.sleep(max(0.0, started + delay - time.monotonic()))
            pid = process.pid if target == 'supervisor' else self.child(process.pid, target)
        if pid is not None:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
        try:
            process.communicate(timeout=RUN_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            self.fail(f'{target} was sent {number} after {delay:.3f} s: the run did not end')
        return process.returncode, process.report

    def child(self, supervisor, target):
        try:
            children = read(f'/proc/{supervisor}/task/{supervisor}/children').split()
            names = {read(f'/proc/{pid}/comm').strip(): int(pid) for pid in children}
        except OSError:
            return None
        gateway = names.pop('gateway', None)
        return gateway if target == 'gateway' else next(iter(names.values()), None)

    def matrix(self, target, names):
        started = time.monotonic()
        self.run_agent('sh', '-c', AGENT, self.marker, options=OPTIONS)
        whole = time.monotonic() - started
        for name in names:
            for moment in range(MOMENTS):
                delay = whole * moment / MOMENTS
                with self.subTest(target=target, signal=name, delay=round(delay, 3), tier=TIER):
                    code, report = self.sent(target, getattr(signal, name), delay)
                    self.assertIn(code, ENDS)
                    gone = wait_until(lambda: not processes(self.marker), GONE_SECONDS)
                    self.assertTrue(gone, processes(self.marker))
                    if os.path.exists(report + '/run.json'):  # Whole, or not there.
                        json.loads(read(report + '/run.json'))
        self.sweep()
        self.assertEqual(os.listdir(SCRATCH), [])

    @only_as('root')
    @only_in('landlock')
    def test_agent_that_outlived_all_is_ended_by_the_next_run(self):
        process = self.started_agent('sh -c \'sleep 300; : "$0"\' "$0" & wait; exit 0')
        # Its own shell ends with the first process, what that started does not.
        self.assertTrue(wait_until(lambda: len(self.agents()) > 1, GONE_SECONDS), self.agents())
        first = self.child(process.pid, 'first process')
        for number in (signal.SIGSTOP, signal.SIGKILL):  # Neither sees the other end.
            for pid in (first, process.pid):
                os.kill(pid, number)
        process.communicate()
        self.assertTrue(self.agents(), 'the control')
        self.run_agent('true')
        self.assertTrue(wait_until(lambda: not processes(self.marker), GONE_SECONDS), processes(self.marker))
        self.sweep()

    @only_as('root')
    def test_groups_of_runs_in_other_pid_namespaces_are_not_removed(self):
        process = self.started_agent('sleep 300; : "$0"')
        groups = self.cgroups()
        process.kill()
        process.communicate()
        self.feature('cgroup', groups, 'no controller takes groups here')
        ended = subprocess.Popen(['true'])
        ended.wait()
        parent, name = os.path.split(groups[0])
        own, other = [f'{parent}/agentic-ci-{namespace}-{ended.pid}' for namespace in (name.split('-')[-2], 1)]
        for group in (own, other):
            os.mkdir(group)
        try:
            self.sweep()
            self.assertEqual((os.path.exists(own), os.path.exists(other)), (False, True))
        finally:
            for group in (own, other):
                if os.path.exists(group):
                    os.rmdir(group)

    def test_supervisor(self):
        self.matrix('supervisor', SUPERVISOR)

    def test_gateway(self):
        self.matrix('gateway', OTHERS)

    def test_first_process(self):
        self.matrix('first process', OTHERS)
