# SPDX-License-Identifier: Apache-2.0
"""How a run ends: exit codes, and the record that every end leaves."""
import errno
import os
import re
import shutil
import signal
import socket
import subprocess
import time

from harness import BASE, FIXTURES, GONE_SECONDS, PLAIN_ENV, PROBE, ROOT, TIER, USER, Case, git, only_as, only_in, read, wait_until, write


class ExitCodes(Case):
    def test_status_of_the_agent_is_the_status_of_the_run(self):
        for status in (0, 1, 2, 37, 42, 63):
            run = self.shell(f'exit {status}', code=status,
                             kind='agent-failed' if status else 'success')
            self.assertEqual(run.outcome['agent_status'], status)

    def test_status_above_63_is_63_and_the_record_has_the_real_one(self):
        for status in (64, 77, 124, 127, 255):
            run = self.shell(f'exit {status}', code=63, kind='agent-failed')
            self.assertEqual(run.outcome['agent_status'], status)

    def test_agent_that_kills_itself_is_told_as_a_shell_does(self):
        run = self.shell('kill -KILL $$', code=63, kind='agent-failed')
        self.assertEqual(run.outcome['agent_status'], 137)

    def test_last_of_a_pipeline_decides(self):
        self.shell('true | exit 3', code=3)
        self.shell('exit 3 | true', code=0)

    def test_wrong_usage_is_64(self):
        self.run_agent('true', options=['--no-such-option'], code=64)
        self.run_agent(code=64)

    def test_policy_with_a_mistake_is_65(self):
        policy = self.policy('endpoints:\n  - no_such_key: 1\n')
        run = self.run_agent('true', options=['--policy', policy], code=65)
        self.assertIn('policy.yml:', run.err)
        self.assertEqual(run.outcome['exit_code'], 65)

    def test_policy_of_the_repository_with_a_mistake_is_65(self):
        write(self.checkout + '/.agentic-ci/openshell-policy.yml', 'endpoints: 3\n')
        git(self.checkout, 'add', '.')
        git(self.checkout, 'commit', '-qm', 'policy')
        self.run_agent('true', code=65)

    def test_control_that_is_required_and_not_enforced_is_69(self):
        require = lambda name: (write(self.checkout + '/.agentic-ci/config.yml', f'require: [seccomp, {name}]\n'),
                                git(self.checkout, 'add', '.'), git(self.checkout, 'commit', '-qm', 'config'))
        require('capture')
        self.shell('echo started')  # The control.
        missing = 'cpu' if TIER == 'namespaces' else 'namespaces'  # No share of processors was asked for.
        require(missing)
        run = self.shell('echo started', code=69)
        self.assertIn(f".agentic-ci/config.yml requires '{missing}' to be enforced; here, ", run.err)
        self.assertNotIn('started', run.out)

    def test_named_input_that_does_not_exist_is_66(self):
        self.run_agent('true', options=['--policy', self.dir + '/none.yml'], code=66)
        self.run_agent('true', checkout=self.dir + '/none', code=66)
        run = self.run_agent('no-such-program-here', code=66)
        self.assertIn('no-such-program-here', run.err)
        self.assertEqual(run.outcome['exit_code'], 66)

    @only_in('namespaces')
    def test_host_without_user_namespaces_is_69_with_what_to_type(self):
        line, report = self.command(['true'])
        script = ('echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"')
        done = subprocess.run(['unshare', '-Ur', 'sh', '-c', script, 'sh', *line], cwd=self.dir,
                              capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 69, done.stderr)
        self.assertRegex(done.stderr, 'hint: (sudo sysctl -w user.max_user_namespaces|setpriv)')
        self.assertTrue(os.path.exists(report + '/run.json'))

    def test_report_directory_on_a_full_disk_is_74(self):
        self.feature('root', FIXTURES, 'nobody here can mount a small disk')
        self.run_agent('true', report=f'{BASE}/full/{"root" if ROOT else "user"}/report', code=74)

    def test_report_directory_on_a_disk_that_the_run_fills_is_74(self):
        self.feature('root', FIXTURES, 'nobody here can mount a small disk')
        report = f'{BASE}/small/{"root" if ROOT else "user"}/report'
        run = self.shell('echo more >>README.md; yes | head -c 3000000; echo end', report=report, code=74)
        self.assertEqual(run.out.splitlines()[-1], 'end')  # What was said is shown all the same.
        self.assertIn('No space left on device', run.err)
        self.assertIn('\n+more\n', self.kept_patch(run))
        left = os.listdir(report)
        self.assertEqual([name for name in left if name == 'run.json' or name.endswith('.new')], [])
        self.shell('echo end', report=report)  # The control, where the last run could not write.
        self.assertIn('run.json', os.listdir(report))

    def kept_patch(self, run):
        """The patch that a run saved elsewhere since the report's disk was full. Removes it."""
        self.assertRegex(run.err, r'the changes are in /\S+\.patch\n')
        path = re.search(r'the changes are in (\S+)', run.err)[1]
        try:
            return read(path)
        finally:
            os.unlink(path)

    def test_report_that_does_not_fit_is_a_smaller_one_with_the_reason(self):
        self.feature('root', FIXTURES, 'nobody here can mount a small disk')
        place = f'{BASE}/small/{"root" if ROOT else "user"}'
        whole = self.shell('echo x >> README.md', report=place + '/report')
        patch = read(whole.report + '/changes.patch')
        size = sum(os.path.getsize(f'{place}/report/{name}') for name in os.listdir(place + '/report'))
        shutil.rmtree(place + '/report')
        room = shutil.disk_usage(place).free
        seen = set()
        for left in range(8192, size + 40000, 8192):
            with open(place + '/filler', 'wb') as file:
                file.write(b'x' * (room - left))
            run = self.finish(self.start(['sh', '-c', 'echo x >> README.md'], report=place + '/report'))
            names = set(os.listdir(place + '/report')) if os.path.exists(place + '/report') else set()
            rendered = names - {'.gitignore', 'agent.log', 'agent.jsonl', 'events.log', 'events.ocsf.jsonl'}
            shape = 'whole' if 'report.html' in rendered else 'less' if rendered else 'none'
            seen.add(shape)
            self.assertEqual(run.code, 0 if shape == 'whole' else 74, run.err)
            if 'the changes are in ' in run.err:
                self.assertIn('\n+x\n', self.kept_patch(run))
            if shape == 'less':
                self.assertEqual(rendered, {'changes.patch', 'changes.json', 'summary.md', 'run.json'})
                self.assertIn('No space left on device', run.record['outcome']['reason'])
                self.assertIn('No space left on device', read(run.report + '/summary.md'))
                self.assertIn(read(run.report + '/changes.patch'), ('', patch))
            shutil.rmtree(place + '/report', ignore_errors=True)
            os.remove(place + '/filler')
        self.assertEqual(seen, {'whole', 'less', 'none'})

    def test_two_runs_do_not_write_to_one_report_directory(self):
        process = self.waiting_agent()
        run = self.run_agent('true', report=process.report, code=77)
        self.assertIn('another run is writing its report there', run.err)
        self.release()
        first = self.finish(process)
        self.assertEqual((first.code, first.out, first.outcome['kind']), (0, 'end\n', 'success'))
        self.run_agent('true', report=process.report)  # The control.

    def test_report_directory_below_another_directory_of_the_checkout_is_not_shown(self):
        write(self.checkout + '/out/kept', 'x')
        report = self.checkout + '/out/reports/1'
        for _ in range(2):  # The second finds one there.
            run = self.shell('cat out/kept; ls -A out/reports/1 2>/dev/null; exit 0', report=report)
            self.assertEqual(run.out, 'x')

    def test_report_directory_that_is_a_link_in_the_checkout_is_refused(self):
        target = self.dir + '/elsewhere'
        os.mkdir(target)
        os.symlink(target, self.checkout + '/agentic-ci-report')
        self.run_agent('true', report=self.checkout + '/agentic-ci-report', code=77)
        self.assertEqual(os.listdir(target), [])

    def test_report_directory_through_a_link_is_refused_and_nothing_is_removed(self):
        target = self.run_agent('true').report  # A report of ours.
        before = sorted(os.listdir(target))
        os.symlink(os.path.dirname(target), self.checkout + '/out')
        name = '/' + os.path.basename(target)
        run = self.run_agent('true', report=self.checkout + '/out' + name, code=77)
        self.assertNotIn('rm ', run.err)
        self.assertEqual(sorted(os.listdir(target)), before)
        self.run_agent('true', report=target)  # Control: it is replaced where it is named itself.

    def test_report_goes_to_the_directory_that_was_prepared_whatever_has_its_name_by_then(self):
        victim = self.dir + '/victim'
        os.mkdir(victim)
        write(victim + '/run.json', '{"precious": true}')
        process = self.waiting_agent(report=self.dir + '/swapped')
        os.rename(process.report, self.dir + '/aside')
        os.symlink(victim, process.report)
        self.release()
        self.assertEqual(self.finish(process).code, 0)
        self.assertEqual(read(victim + '/run.json'), '{"precious": true}')
        self.assertEqual(os.listdir(victim), ['run.json'])
        self.assertIn('"success"', read(self.dir + '/aside/run.json'))

    def test_change_of_a_workflow_is_77_and_is_not_applied(self):
        run = self.shell('mkdir -p .github/workflows; echo x > .github/workflows/x.yml',
                         options=['--apply'], code=77, kind='refused')
        self.assertFalse(os.path.exists(self.checkout + '/.github'))
        self.assertTrue(os.path.exists(run.report + '/changes.patch'))

    def test_secret_without_a_value_is_78(self):
        run = self.run_agent('true', options=['--secret', 'NOT_SET_HERE@api.example.com'], code=78)
        self.assertIn('NOT_SET_HERE', run.err)
        self.assertEqual(run.outcome['exit_code'], 78)

    def test_time_limit_is_124(self):
        run = self.shell('echo > kept; sleep 1000', options=['--timeout', '4s'], code=124, kind='timed-out')
        self.assertEqual(run.record['changes']['files'], 1)
        self.assertTrue([limit for limit in run.record['limits'] if limit['name'] == 'wall'][0]['fired'])

    def test_a_reader_that_stopped_suspends_no_limit_and_no_signal(self):
        read, write = os.pipe()
        try:
            for script, options, signal_name, code in (
                    ('yes | head -c 1000000; sleep 1000', ['--timeout', '3s'], None, 124),
                    ('yes | head -c 1000000 >&2; sleep 1000', [], signal.SIGTERM, 143)):
                process = self.start(['sh', '-c', script], options=options, stdout=write)
                if signal_name:
                    time.sleep(2)
                    os.kill(process.pid, signal_name)
                run = self.finish(process)
                self.assertEqual(run.code, code, run.err)
                self.assertEqual(run.outcome['exit_code'], code)
                with open(run.report + '/agent.log', encoding='utf-8') as log:
                    self.assertGreater(len(log.read()), 100000)
        finally:
            os.close(read)
            os.close(write)

    def test_a_patch_that_takes_too_long_is_125(self):
        write(self.checkout + '/lines', 'a\nb\n' * 2000000)
        git(self.checkout, 'add', '.')
        git(self.checkout, 'commit', '-qm', 'lines')
        run = self.shell("tr ab ba <lines >turned && sed -n 'n;p' lines >>turned && mv turned lines",
                         options=['--runner-cpu', '1s'], code=125, kind='limit')
        self.limited(run, 'runner-cpu')

    def test_idle_limit_is_124_and_output_resets_it(self):
        run = self.shell('for i in 1 2 3 4 5 6 7; do echo $i; sleep 0.5; done; sleep 50',
                         options=['--idle-timeout', '3s'], code=124, kind='idle')
        self.assertIn('7', run.out)  # After more than three seconds.

    def limited(self, run, name):
        """The run ended at this limit, and says so in both places."""
        self.assertEqual((run.code, run.outcome['kind']), (125, 'limit'), run.err[-1000:] + run.out[-500:])
        self.assertEqual(run.outcome['limit'], name)
        fired = [limit['name'] for limit in run.record['limits'] if limit['fired']]
        self.assertEqual(fired, [name])

    def test_cpu_time_of_all_processes_is_125(self):
        # Each for itself stays below, and is waited for. The kernel ends each by the time it used, however busy the host.
        script = 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sh -c "ulimit -t 1; while :; do :; done"; done; exit 0'
        run = self.shell(script, options=['--agent-cpu', '2s'], code=125)
        self.limited(run, 'agent-cpu')
        used = [limit for limit in run.record['limits'] if limit['name'] == 'agent-cpu'][0]['used']
        self.assertTrue(2 < used < 10, used)  # Of twelve; a slow machine looks seldom.
        run = self.shell('exit 0', options=['--agent-cpu', '2s'])  # The control.
        self.assertEqual([limit['fired'] for limit in run.record['limits'] if limit['name'] == 'agent-cpu'], [False])

    def test_a_process_has_no_more_files_open_than_the_limit(self):
        script = 'i=3; while [ $i -lt 60 ]; do eval "exec $i</dev/null" || exit 7; i=$((i+1)); done'
        options = ['--open-files', '40']
        self.run_agent('bash', '-c', script, options=options, code=7)
        self.run_agent('bash', '-c', script)
        self.run_agent('bash', '-c', 'ulimit -n 50', options=options, code=1)  # It cannot be raised.
        # What others of this user have under way in messages is more than that.
        ours, theirs = socket.socketpair()
        with ours, theirs:
            for _ in range(50):
                socket.send_fds(ours, [b'x'], [ours.fileno()])
            self.run_agent('bash', '-c', script, options=options, code=7)

    def test_a_file_becomes_no_larger_than_the_limit(self):
        script = 'head -c 3000000 /dev/zero > large'
        self.shell(script, options=['--file-size', '1MiB'], code=63)  # SIGXFSZ.
        self.shell(script, options=['--file-size', '4MiB'])

    def test_memory_limit_is_125(self):
        run = self.run_agent(PROBE, 'allocate', '400', '50', options=['--memory', '128MiB'], code=125,
                             checkout=os.path.dirname(PROBE))
        self.limited(run, 'memory')
        self.run_agent(PROBE, 'allocate', '400', '0', checkout=os.path.dirname(PROBE))  # The control.

    @only_as('root')
    def test_nothing_of_the_memory_limit_is_left_for_swap(self):
        process = self.started_agent('sleep 300; : "$0"', options=['--memory', '64MiB'])
        settings = {'memory.memsw.limit_in_bytes': str(64 << 20), 'memory.swap.max': '0', 'memory.swappiness': '0'}
        found = {}
        for group in self.cgroups():
            for name in settings:
                if os.path.exists(f'{group}/{name}'):
                    with open(f'{group}/{name}') as file:
                        found[name] = file.read().strip()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.finish(process).code, 143)
        self.feature('cgroup', found, 'nothing here counts or bounds swap')
        self.assertTrue([name for name, value in found.items() if value == settings[name]], found)

    def test_memory_that_belongs_to_no_process_alone_is_counted(self):
        # TCP waits instead, on cgroups of v1.
        places = ['shared', 'page-tables', 'unix', 'closed'] + ([] if ROOT else ['tcp', 'waiting'])
        if TIER == 'namespaces':  # In tier landlock there are no segments.
            places += ['segment']
        for where in places:
            with self.subTest(where=where):
                line = [PROBE, 'hold', where, '200']
                run = self.run_agent(*line, '50', options=['--memory', '128MiB'], code=125,
                                     checkout=os.path.dirname(PROBE))
                self.limited(run, 'memory')
                self.run_agent(*line, '0', checkout=os.path.dirname(PROBE))

    def test_sockets_of_other_programs_of_the_user_do_not_count(self):
        pairs, held = [], 0
        while held < 64 << 20:
            pairs.append(socket.socketpair())
            pairs[-1][0].setblocking(False)
            try:
                while True:
                    held += pairs[-1][0].send(bytes(65536))
            except BlockingIOError:
                pass
        for pair in pairs:
            for end in pair:
                self.addCleanup(end.close)
        self.run_agent('sleep', '2', options=['--memory', '56MiB'])  # Its control is the case above.

    @only_as('root')
    def test_memory_limit_that_is_reached_while_the_agent_starts_is_125(self):
        self.feature('strace', shutil.which('strace'), 'what says that the agent started cannot be delayed')
        self.feature('root', ROOT, 'without a cgroup the kernel ends no process')
        line, report = self.command([PROBE, 'hold', 'closed', '200', '50'], options=['--memory', '128MiB'],
                                    checkout=os.path.dirname(PROBE))
        slow = ['strace', '-f', '-qq', '-o', '/dev/null', '-e', 'inject=prctl:delay_enter=100000']
        process = subprocess.Popen(slow + line, env=dict(PLAIN_ENV, HOME=self.home), cwd=self.dir, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.report = report
        self.limited(self.finish(process), 'memory')

    def delegated(self):
        """Groups of its own for an ordinary user, as `Delegate=yes` makes them: where to enter."""
        top, parts = '/sys/fs/cgroup', ('memory', 'pids')
        if os.path.exists(top + '/cgroup.controllers'):
            subprocess.run(f'echo "+memory +pids" > {top}/cgroup.subtree_control', shell=True, check=True)
            parts, entrance = ('',), 'cgroup.procs'
        else:
            entrance = 'tasks'
        entrances = []
        for part in parts:
            group = os.path.join(top, part, self.marker)
            os.mkdir(group)
            self.addCleanup(os.rmdir, group)
            for name in ('', 'cgroup.procs', 'tasks', 'cgroup.subtree_control', 'cgroup.threads'):
                if os.path.exists(f'{group}/{name}'):
                    os.chown(f'{group}/{name}', USER, USER)
            entrances.append(f'{group}/{entrance}')
        return entrances

    @only_as('root')  # Which delegates it.
    def test_delegated_cgroup_is_used_by_an_ordinary_user(self):
        writable = os.access('/sys/fs/cgroup', os.W_OK)
        self.feature('cgroup', writable, 'nobody here can delegate a cgroup')
        entrances = self.delegated()
        subprocess.run(['chown', '-R', f'{USER}:{USER}', self.dir], check=True)

        def run(enter):
            line, report = self.command(['sh', '-c', '(head -c 300000000 /dev/zero; sleep 60) | tail -n1 >/dev/null; exit 0'],
                                        options=['--memory', '64MiB'])
            script = ''.join(f'echo $$ > {file};' for file in enter) + 'exec "$@"'
            process = subprocess.Popen(
                ['sh', '-c', script, 'sh', 'setpriv', f'--reuid={USER}', f'--regid={USER}',
                 '--clear-groups', *line], env=dict(PLAIN_ENV, HOME=self.home), cwd=self.dir,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            process.report = report
            self.supervisors.append(process.pid)
            done = self.finish(process)
            self.limited(done, 'memory')
            return [c['note'] for c in done.record['isolation']['controls'] if c['name'] == 'memory'][0]

        self.assertEqual(run(entrances), 'cgroup')
        polled = run([])  # The control.
        self.assertIn('is polled', polled)
        self.assertIn('are not counted', polled)

    def test_shared_memory_counts_once_however_many_processes_have_it(self):
        self.run_agent(PROBE, 'hold', 'family', '40', '2', options=['--memory', '128MiB'],
                       checkout=os.path.dirname(PROBE))

    def test_number_of_files_is_part_of_the_disk_limit(self):
        script = 'i=0; while [ $i -lt 6000 ]; do : > ${TMPDIR:-/tmp}/$i; i=$((i+1)); done; exit 0'
        self.limited(self.shell(script, options=['--disk', '8MiB'], code=125), 'disk')
        self.shell(script)

    def test_processors_that_are_the_limit_cannot_be_left(self):
        self.run_agent(PROBE, 'processors', checkout=os.path.dirname(PROBE))
        # Under a cgroup the share is the limit, not which processors.
        code = 0 if ROOT else errno.EPERM
        self.run_agent(PROBE, 'processors', options=['--cpus', '1'], code=code,
                       checkout=os.path.dirname(PROBE))

    def test_memory_limit_that_the_agent_outlives_is_125(self):
        script = f'./{os.path.basename(PROBE)} allocate 400 50 || true; sleep 1; echo done > f'
        self.limited(self.shell(script, options=['--memory', '128MiB'], code=125,
                                checkout=os.path.dirname(PROBE)), 'memory')

    def test_disk_limit_is_125_whatever_the_agent_says(self):
        # A gate refuses what is in the checkout: the limit goes before it.
        for file, code in (('${TMPDIR:-/tmp}/big', 0), ('big', 77)):
            for rest in ('', ' || true'):
                script = f'head -c 48000000 /dev/zero > {file}{rest}'
                self.limited(self.shell(script, options=['--disk', '16MiB'], code=125), 'disk')
                self.shell(script, code=code)

    def test_disk_limit_that_was_reached_in_between_is_125(self):
        script = 'head -c 48000000 /dev/zero > ${TMPDIR:-/tmp}/big; sleep %d; rm ${TMPDIR:-/tmp}/big; echo > f'
        run = self.shell(script % 50, options=['--disk', '16MiB'], code=125)
        self.limited(run, 'disk')
        used = [limit for limit in run.record['limits'] if limit['name'] == 'disk'][0]['used']
        self.assertGreater(used, 15 << 20)  # The most there was, not what was left over.
        self.shell(script % 0)

    def test_output_limit_is_125(self):
        run = self.run_agent(PROBE, 'write', '2', options=['--output', '256KiB'], code=125,
                             kind='limit', checkout=os.path.dirname(PROBE))
        self.assertEqual(run.outcome['limit'], 'output')
        self.assertLessEqual(os.path.getsize(run.report + '/agent.log'), 300 << 10)

    def test_pids_limit_is_125(self):
        where = {'checkout': os.path.dirname(PROBE)}
        run = self.finish(self.start([PROBE, 'fork', '60'], options=['--pids', '16'], **where))
        self.limited(run, 'pids')
        free = self.run_agent(PROBE, 'fork', '60', **where)
        self.assertEqual(free.values()['forks'], '60')

    def test_pids_limit_that_the_agent_outlives_is_125(self):
        script = ('(i=0; while [ $i -lt 60 ]; do sleep 50 & i=$((i+1)); done) 2>/dev/null;'
                  'i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done; exit 0')
        self.limited(self.shell(script, options=['--pids', '32'], code=125), 'pids')
        self.shell(script)  # The control.

    def test_fork_bomb_ends_the_run(self):
        bomb = 'bomb() { bomb | bomb & }; bomb; exec sleep 100'
        run = self.finish(self.start(['sh', '-c', bomb], options=['--pids', '64', '--timeout', '20s']))
        if run.code != 124:  # Where nothing counts refused forks, it may be over before it is seen; its first shell goes on.
            self.limited(run, 'pids')

    def run_without_cgroups(self, *command, options):
        """As in a pod: root's run finds no cgroup. An ordinary user's has none here."""
        line, report = self.command(list(command), options)
        hidden = ['unshare', '-m', '--propagation', 'private', 'sh', '-c', 'umount -l /sys/fs/cgroup && exec "$@"', 'sh']
        process = subprocess.Popen((hidden if ROOT and os.listdir('/sys/fs/cgroup') else []) + line, cwd=self.dir,
                                   env=dict(PLAIN_ENV, HOME=self.home), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.report = report
        self.supervisors.append(process.pid)
        run = self.finish(process)
        self.assertNotIn('cgroup', [control['note'] for control in run.record['isolation']['controls']])
        return run

    def test_fork_bomb_whose_first_process_ends_at_once_is_125(self):
        bomb, options = ('bash', '-c', 'f() { f | f & }; f'), ['--pids', '64', '--timeout', '20s']
        for _ in range(3):
            self.limited(self.run_agent(*bomb, options=options, code=125), 'pids')
            self.limited(self.run_without_cgroups(*bomb, options=options), 'pids')

    def test_what_is_left_running_near_the_limit(self):
        script, options = 'for i in $(seq %d); do sleep 50 & done', ['--pids', '64']
        run = self.finish(self.start(['bash', '-c', script % 58], options=options))
        if 'cgroup' in [control['note'] for control in run.record['isolation']['controls'] if control['name'] == 'pids']:
            self.assertEqual(run.code, 0, run.err)  # It would know of a refusal.
        else:
            self.limited(run, 'pids')
        self.limited(self.run_without_cgroups('bash', '-c', script % 58, options=options), 'pids')
        for run in (self.run_agent, self.run_without_cgroups):  # The control.
            self.assertEqual(run('bash', '-c', script % 40, options=options).code, 0)

    def test_refused_fork_of_an_agent_that_ends_at_once_is_remembered(self):
        script = ('import os, time\n'
                  'try:\n'
                  '    for _ in range(200):\n'
                  '        if os.fork() == 0:\n'
                  '            time.sleep(60)\n'
                  '            os._exit(0)\n'
                  'except BlockingIOError:\n'
                  '    print("refused", flush=True)\n'
                  'os._exit(0)\n')
        run = self.run_agent('/usr/bin/python3', '-c', script, options=['--pids', '32'], code=125)
        self.limited(run, 'pids')
        self.run_agent('/usr/bin/python3', '-c', script.replace('200', '10'), options=['--pids', '32'])  # The control.

    def test_processes_that_hand_over_to_the_next_are_waited_for(self):
        """A look at /proc sees none of them: each starts the next and ends."""
        script = ('import os, time\n'
                  'end = time.monotonic() + 1\n'
                  'while time.monotonic() < end:\n'
                  '    if os.fork() != 0:\n'
                  '        os._exit(0)\n'
                  '    time.sleep(0.01)\n'
                  'try:\n'
                  '    for _ in range(%d):\n'
                  '        if os.fork() == 0:\n'
                  '            time.sleep(60)\n'
                  '            os._exit(0)\n'
                  'except BlockingIOError:\n'
                  '    pass\n'
                  'os._exit(0)\n')
        self.limited(self.run_agent('/usr/bin/python3', '-c', script % 200, options=['--pids', '64'], code=125), 'pids')
        self.run_agent('/usr/bin/python3', '-c', script % 10, options=['--pids', '64'])  # The control.

    @only_as('user')
    def test_kernel_bounds_the_processes_of_a_user_whom_no_cgroup_counts(self):
        script = 'grep "Max processes" /proc/self/limits'
        run = self.shell(script, options=['--pids', '64', '--isolation', 'landlock'])
        pids = [control for control in run.record['isolation']['controls'] if control['name'] == 'pids'][0]
        self.feature('no cgroup', pids['note'] != 'cgroup', 'a cgroup counts')
        most = int(run.out.split()[2])
        self.assertGreater(most, 64)
        self.assertLess(most, 64 + 64 + 2000)  # And what the user has already.
        self.assertNotIn(str(most), self.outside(script))  # The control.

    def test_signal_while_nothing_was_started_yet_ends_the_run(self):
        pipe = self.dir + '/policy.yml'
        os.mkfifo(pipe)
        for number, code, kind in ((signal.SIGINT, 130, 'interrupted'),
                                   (signal.SIGTERM, 143, 'terminated')):
            process = self.start(['true'], options=['--policy', pipe])  # It waits for a writer.
            report = process.report + '/events.ocsf.jsonl'
            self.assertTrue(wait_until(lambda: os.path.exists(report), GONE_SECONDS))
            time.sleep(0.2)
            process.send_signal(number)
            run = self.finish(process)
            self.assertEqual((run.code, run.outcome['kind']), (code, kind))
        process = self.start(['true'], options=['--policy', pipe])  # The control.
        write(pipe, 'version: 1\n')
        self.assertEqual(self.finish(process).code, 0)

    def test_interrupt_is_130_and_termination_143(self):
        for number, code, kind in ((signal.SIGINT, 130, 'interrupted'),
                                   (signal.SIGTERM, 143, 'terminated'),
                                   (signal.SIGHUP, 143, 'terminated')):
            process = self.started_agent('trap "" INT TERM HUP; echo > kept; sleep 50; : "$0"')
            process.send_signal(number)
            run = self.finish(process)
            self.assertEqual(run.code, code)
            self.assertEqual(run.outcome['kind'], kind)
            self.assertTrue(run.outcome['reason'])
