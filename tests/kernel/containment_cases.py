# SPDX-License-Identifier: Apache-2.0
"""The probes of docs/reference/containment.md: each answered in the sandbox as the table says, and outside not refused."""
import json
import os
import shutil
import subprocess
import sys

from harness import FIXTURES, GONE_SECONDS, PLACE, ROOT, Case, only_as, processes, read_process, wait_until, write

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE + '/containment')
import outside  # noqa: E402
import probes  # noqa: E402
import table  # noqa: E402
import walls  # noqa: E402

PYTHON = '/usr/bin/python3'
IDENTITY = 'root' if ROOT else 'user'
# The filter knows these processes by their ids, which outside are another's.
OF_PROCESS_IDS = [f'Processes of the runner: {what}' for what in ('Change the first process\'s limits',
                                                                 'Hold the first process by a descriptor',
                                                                 'Choose the first process\'s processors',
                                                                 'Slow the first process down')]
POLICY = '''version: 1
filesystem_policy:
  include_workdir: true
  read_only: [/usr, /etc, {shown}, {setuid}]
  read_write: [/tmp]
'''


class Containment(Case):
    maxDiff = None

    def setUp(self):
        super().setUp()
        self.feature('python3', os.path.exists(PYTHON), 'it tries everything')
        self.feature('root', FIXTURES, 'what is exposed must lie outside /tmp')
        place = PLACE + '/scratch/' + self.marker
        for name in ('shown', 'hidden'):
            os.makedirs(f'{place}/{name}')
        self.addCleanup(shutil.rmtree, place)
        shutil.copytree(HERE + '/containment', self.checkout, dirs_exist_ok=True)
        self.outside = outside.Outside(place + '/hidden', place + '/shown', self.checkout, PLACE + '/setuid/id')
        self.addCleanup(self.outside.__exit__)
        self.probes = table.every_probe()

    def inside(self, tier):
        policy = self.policy(POLICY.format(shown=self.outside.shown, setuid=PLACE + '/setuid'))
        report = f'{self.dir}/report-of-{tier}'
        write(self.checkout + '/facts.json', json.dumps(dict(self.outside.facts, report=report)))
        # The gates refuse what is written in the checkout.
        run = lambda: self.run_agent(PYTHON, 'probes.py', 'facts.json', code=77, kind='refused', report=report, options=[
            '--policy', policy, '--isolation', tier], env={'JOB_TOKEN': outside.CANARY}).out
        answers = self.outside.answers(self.probes, run)
        self.assertEqual(self.outside.connections, [])
        return answers

    def test_each_probe_is_stopped_in_tier_namespaces(self):
        self.assertEqual(table.wrong(self.probes, 'namespaces', IDENTITY, self.inside('namespaces')), [])

    def test_each_probe_is_stopped_in_tier_landlock(self):
        self.assertEqual(table.wrong(self.probes, 'landlock', IDENTITY, self.inside('landlock')), [])

    def control(self, *wall, **facts):
        write(self.checkout + '/facts.json', json.dumps(dict(self.outside.facts, report=self.dir, **facts)))
        os.makedirs(self.checkout + '/tmp', exist_ok=True)
        environment = {'JOB_TOKEN': outside.CANARY, 'PATH': '/usr/bin', 'TMPDIR': self.checkout + '/tmp'}
        run = lambda: subprocess.run([PYTHON, 'probes.py', 'facts.json', 'control', *wall], cwd=self.checkout, env=environment,
                                     capture_output=True, text=True, timeout=600).stdout
        return self.outside.answers(self.probes, run)

    def test_each_control_succeeds(self):
        self.assertEqual(table.wrong_controls(self.probes, IDENTITY, self.control()), [])

    def filter_of(self, tier):
        """The system-call filter of an agent that runs, in a file."""
        process = self.start(['sh', '-c', 'sleep 100; : "$0"', self.marker], options=['--isolation', tier])
        filtered = lambda: [pid for pid in processes(self.marker) if self.marker in (line := read_process(pid, 'cmdline')) and
                            '--isolation' not in line and 'Seccomp:\t2' in read_process(pid, 'status')]
        self.assertTrue(wait_until(filtered, GONE_SECONDS))
        path = f'{self.dir}/filter-of-{tier}'
        try:
            with open(path, 'wb') as file:
                file.write(walls.read_filter(filtered()[0]))
        except OSError as error:
            self.feature('checkpoint', False, f'the kernel does not show a filter: {error}')
        finally:
            process.terminate()
            self.finish(process)
        return path

    @only_as('root')
    def test_each_mechanism_stops_by_itself_what_it_is_said_to(self):
        self.feature('root', ROOT, 'what only root may do must succeed without the mechanism')
        filters = {tier: self.filter_of(tier) for tier in ('namespaces', 'landlock')}
        wrong, without = [], self.control()
        for wall in walls.RAISE:
            for tier in filters if wall == 'seccomp' else ('',):
                answers = self.control(wall, filter=filters.get(tier))
                self.assertTrue(answers, wall)
                for probe in self.probes:
                    answer, before = answers.get(probe.name), without.get(probe.name)
                    if answer is None or probe.control in table.IF and before != 'ok':
                        continue  # It is not there.
                    named = walls.names(probe, wall, tier) and not (wall == 'seccomp' and probe.name in OF_PROCESS_IDS)
                    # Of the others, what the filter answers by itself; ENOSYS is what it passes on.
                    more = answer in ('EPERM', 'EOPNOTSUPP', 'ENOPROTOOPT', 'SIGSYS') and not any(
                        walls.names(probe, one, tier) for one in (wall, 'broker'))
                    if answer != before and more or answer == before and named:
                        wrong.append(f'{wall} {tier}: {probe.name}: {answer}, without it {before}')
        self.assertEqual(wrong, [])
