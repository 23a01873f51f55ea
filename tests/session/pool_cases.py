# SPDX-License-Identifier: Apache-2.0
"""Pools: sandboxes that were created before they are needed."""
import json
import os
import pathlib
import signal
import subprocess

from harness import BIN, BUSY_SECONDS, Case, processes, read, wait_until


class Pools(Case):
    def setUp(self):
        super().setUp()
        self.reports = os.path.join(self.base, 'reports')

    def pool(self, size, *options, code=0, reports=None):
        done = self.call('sandbox', 'create', '--pool', str(size), '--name', 'warm', '--workdir', self.work, '--report-dir',
                         reports or self.reports, '--isolation', self.TIER, *options)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def take(self, code=0):
        done = self.call('sandbox', 'take', 'warm')
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout.strip()

    def waiting(self):
        listed = json.loads(self.call('sandbox', 'list', '--json').stdout)['sandboxes']
        return [one['name'] for one in listed if one.get('pool') == 'warm']

    def fills(self, names):
        self.assertTrue(wait_until(lambda: self.waiting() == names, BUSY_SECONDS), self.waiting())

    def pid(self, name):
        return self.facts(name)['pid']

    def test_no_descriptor_of_the_creator_is_kept_and_options_can_name_one(self):
        policy = os.path.join(self.base, 'policy.yml')
        pathlib.Path(policy).write_text('version: 1\n')
        for pool in ([], ['--pool', '1']):
            with self.subTest(pool):
                reads, writes = os.pipe()
                given = os.open(policy, os.O_RDONLY)
                done = subprocess.run([BIN, 'sandbox', 'create', *pool, '--name', 'warm', '--workdir', self.work,
                                       '--report-dir', self.reports, '--isolation', self.TIER, '--policy',
                                       f'/dev/fd/{given}'], env=self.env, cwd=self.base, capture_output=True,
                                      pass_fds=(writes, given), stdin=subprocess.DEVNULL)
                self.assertEqual(done.returncode, 0, done.stderr)
                os.close(writes)
                os.close(given)
                os.set_blocking(reads, False)
                ends = wait_until(lambda: self.at_end(reads), BUSY_SECONDS)
                os.close(reads)
                self.assertTrue(ends)  # The sandbox lives, and has nothing that writes there.
                self.assertEqual(self.call('sandbox', 'delete', 'warm').returncode, 0)

    def at_end(self, pipe):
        try:
            return os.read(pipe, 1) == b''
        except BlockingIOError:
            return False

    def test_what_was_changed_before_it_was_taken_is_what_its_agent_found(self):
        self.pool(1)
        pathlib.Path(self.work, 'a.txt').write_text('edited\n')
        name = self.take()
        self.script('echo mine >>a.txt', name=name)
        diff = self.call('sandbox', 'diff', name)
        if self.TIER == 'namespaces':
            self.assertIn(' edited\n+mine\n', diff.stdout)
        self.assertEqual('not all changes' in diff.stderr, self.TIER == 'landlock', diff.stderr)

    def test_each_is_given_once_and_another_takes_its_place(self):
        self.assertEqual(self.pool(2).stdout, 'warm\n')
        self.assertEqual(self.waiting(), ['warm-1', 'warm-2'])
        self.assertEqual([self.take(), self.take()], ['warm-1', 'warm-2'])
        self.fills(['warm-3', 'warm-4'])
        # What was taken is a sandbox as any other, and another's writes are not seen in it.
        self.assertEqual(self.script('cat a.txt; echo one >made', name='warm-1')['stdout'], 'alpha\n')
        where = self.script('pwd', name='warm-1')['stdout']
        self.assertEqual(where == self.work + '\n', self.TIER == 'namespaces', where)  # In tier landlock, it is a copy.
        self.assertEqual(self.script('ls', name='warm-2')['stdout'], 'a.txt\nb.txt\ndir\n')
        done = self.call('sandbox', 'delete', 'warm-1')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('made', read(self.reports + '/1/changes.patch'))
        # The end of the pool is that of those which wait, and of no other.
        self.assertEqual(self.call('sandbox', 'delete', 'warm').returncode, 0)
        self.assertEqual(self.names(), ['warm-2'])
        self.assertEqual(self.script('echo on', name='warm-2')['stdout'], 'on\n')
        self.take(code=66)
        # What waited has left nothing, and the next pool writes over no report.
        self.assertEqual(sorted(os.listdir(self.reports)), ['1', '2'])
        self.pool(1)
        self.assertEqual(self.take(), 'warm-3')
        self.assertIn('made', read(self.reports + '/1/changes.patch'))

    def test_takers_at_once_get_different_ones_and_wait_where_none_is_ready(self):
        self.pool(1)
        takers = [subprocess.Popen([BIN, 'sandbox', 'take', 'warm'], env=self.env, cwd=self.base, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True) for _ in range(5)]
        told = [taker.communicate(timeout=600) for taker in takers]
        self.assertEqual(sorted(out.strip() for out, _ in told), [f'warm-{n}' for n in range(1, 6)], told)
        for name in ('warm-1', 'warm-5'):
            self.assertEqual(self.script('echo $((1 + 1))', name=name)['stdout'], '2\n')

    def test_one_that_waits_takes_no_commands(self):
        self.pool(1)
        for words in (['exec', 'warm-1', '--', 'true'], ['diff', 'warm-1'], ['put', 'warm-1', self.work + '/a.txt', '/tmp/x'],
                      ['get', 'warm-1', '/etc/passwd', 'x'], ['reset', 'warm-1'], ['snapshot', 'warm-1'], ['shell', 'warm-1']):
            done = self.call('sandbox', *words)
            self.assertEqual(done.returncode, 64, words)
            self.assertIn('sandbox take warm', done.stderr)
        self.assertEqual(self.take(), 'warm-1')
        self.assertEqual(self.call('sandbox', 'exec', 'warm-1', '--', 'true').returncode, 0)

    def test_one_whose_name_cannot_be_told_is_not_kept(self):
        self.pool(1)
        with open('/dev/full', 'w') as full:
            done = subprocess.run([BIN, 'sandbox', 'take', 'warm'], env=self.env, cwd=self.base, stdout=full,
                                  stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 74, done.stderr)
        self.fills(['warm-2'])
        self.assertNotIn('warm-1', self.names())

    def test_a_pool_that_is_not_full_yet_can_be_ended(self):
        for size in (4, 16, 64):
            process = subprocess.Popen(
                [BIN, 'sandbox', 'create', '--pool', str(size), '--name', 'warm', '--workdir', self.work, '--report-dir',
                 self.reports, '--isolation', self.TIER], env=self.env, cwd=self.base, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True)
            # Its process is not known yet when its name is taken.
            self.assertTrue(wait_until(lambda: 'warm' in self.names() and self.pid('warm') > 0, BUSY_SECONDS))
            os.kill(self.pid('warm'), signal.SIGTERM)
            _, told = process.communicate(timeout=BUSY_SECONDS)
            self.assertTrue(wait_until(lambda: self.names() == [], BUSY_SECONDS), self.names())
            if process.returncode != 0:  # Otherwise it was full already: a larger one is tried.
                break
        self.assertEqual(process.returncode, 75, told)
        self.assertIn('ended before it was full', told)

    def test_two_pools_with_one_report_directory_share_its_numbers(self):
        makers = [subprocess.Popen([BIN, 'sandbox', 'create', '--pool', '4', '--name', name, '--workdir', self.work, '--report-dir',
                                    self.reports, '--isolation', self.TIER], env=self.env, cwd=self.base,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for name in ('left', 'right')]
        for maker in makers:
            _, told = maker.communicate(timeout=BUSY_SECONDS)
            self.assertEqual(maker.returncode, 0, told)
        self.assertEqual(sorted(os.listdir(self.reports)), [str(number) for number in range(1, 9)])

    def test_reports_lie_where_no_other_user_can_swap_them_and_only_reports_are_removed(self):
        os.mkdir(self.reports)
        os.chmod(self.reports, 0o777)
        self.assertIn('other users', self.pool(1, code=77).stderr)
        os.chmod(self.reports, 0o755)
        self.pool(2)  # The control.
        pathlib.Path(self.reports, '1', 'kept').write_text('x')
        os.rename(self.reports, self.reports + '.aside')
        victim = pathlib.Path(self.base, 'victim')
        (victim / '1').mkdir(parents=True)
        (victim / '1/run.json').write_text('precious')
        os.symlink(victim, self.reports)
        self.assertEqual(self.call('sandbox', 'delete', 'warm').returncode, 0)
        self.assertTrue(wait_until(lambda: os.listdir(self.reports + '.aside') == ['1'], BUSY_SECONDS))
        self.assertEqual(os.listdir(self.reports + '.aside/1'), ['kept'])
        self.assertEqual((victim / '1/run.json').read_text(), 'precious')

    def test_a_name_that_is_taken_is_left_out(self):
        self.create(name='warm-1')
        self.pool(1)
        self.assertEqual(self.take(), 'warm-2')

    def test_one_that_ended_while_it_waited_is_not_given(self):
        self.pool(1)
        os.kill(self.pid('warm-1'), signal.SIGKILL)
        self.fills(['warm-2'])
        self.assertEqual(self.take(), 'warm-2')

    def test_with_a_killed_pool_those_that_wait_end_and_others_go_on(self):
        self.pool(2)
        taken = self.take()
        os.kill(self.pid('warm'), signal.SIGKILL)
        self.assertTrue(wait_until(lambda: self.names() == [taken], BUSY_SECONDS), self.names())
        self.assertEqual(self.script('echo on', name=taken)['stdout'], 'on\n')

    def test_a_signal_and_the_time_to_live_end_a_pool_with_those_that_wait(self):
        self.pool(2)
        os.kill(self.pid('warm'), signal.SIGTERM)
        self.assertTrue(wait_until(lambda: self.names() == [], BUSY_SECONDS), self.names())
        self.pool(1, '--ttl', '2s')
        self.assertTrue(wait_until(lambda: not processes(self.marker), BUSY_SECONDS))

    def test_one_that_waits_for_half_its_time_is_replaced(self):
        self.pool(1, '--ttl', '8s')
        self.assertTrue(wait_until(lambda: 'warm-1' not in self.names(), BUSY_SECONDS))

    def test_a_creator_that_is_killed_leaves_no_pool(self):
        size, unfinished = 12, 0
        for awaited in ('', 'warm', 'warm-1', 'warm-2', 'warm-4'):
            process = subprocess.Popen(
                [BIN, 'sandbox', 'create', '--pool', str(size), '--name', 'warm', '--workdir', self.work, '--report-dir',
                 self.reports, '--isolation', self.TIER], env=self.env, cwd=self.base, stdout=subprocess.PIPE)
            if awaited:
                wait_until(lambda: awaited in self.names() or process.poll() is not None, BUSY_SECONDS)
            process.kill()
            process.communicate()
            made = self.names()
            if len(made) <= size:
                unfinished += 1
            elif 'warm' in made:
                # It was whole before its creator was killed, printed or not: it is a pool as any other.
                self.call('sandbox', 'delete', 'warm')
            gone = wait_until(lambda: self.names() == [] and not processes(self.marker), BUSY_SECONDS)
            self.assertTrue(gone, (awaited, self.names()))
        self.assertGreater(unfinished, 0)

    def test_what_cannot_be_is_refused_and_leaves_nothing(self):
        for size, code in (('65', 64), ('0', 65), ('-1', 65), ('x', 65), ('', 65)):
            self.pool(size, code=code)
        self.pool(1, code=64, reports=self.work + '/reports')
        self.assertFalse(os.path.exists(self.work + '/reports'))
        self.pool(1, '--snapshot', 'none', code=64)
        policy = pathlib.Path(self.base, 'policy.yml')
        policy.write_text('version: 1\nno_such_key: 1\n')
        alone = self.call('sandbox', 'create', '--workdir', self.work, '--report-dir', self.report, '--policy', str(policy))
        refused = self.pool(2, '--policy', str(policy), code=alone.returncode)
        self.assertEqual(refused.stderr.replace('/reports', '/report'), alone.stderr)
        self.assertTrue(refused.stderr.startswith(f'{policy}:2:1: error: '), refused.stderr)
        self.assertEqual(self.names(), [])
        self.assertEqual(os.listdir(self.reports), [])
        self.take(code=66)
        self.pool(1)
        self.pool(1, code=64)  # The name is taken.
        for words in (['exec', 'warm', '--', 'true'], ['diff', 'warm'], ['reset', 'warm'], ['delete', 'warm', '--apply']):
            self.assertEqual(self.call('sandbox', *words).returncode, 64, words)
        self.assertEqual(self.call('watch', 'warm').returncode, 64)
        self.create()
        self.assertEqual(self.call('sandbox', 'take', 'one').returncode, 64)
        self.assertEqual(self.waiting(), ['warm-1'])
