# SPDX-License-Identifier: Apache-2.0
"""Nothing of a run outlives it, however it ends. tearDown of every case looks for what is left."""
import contextlib
import os
import signal
import socket
import subprocess

from harness import GONE_SECONDS, RUN_SECONDS, USER, Case, only_as, only_in, processes, read, wait_until, write

CORES = '/run/cores'  # Where a machine of tests/kernels notes each core.
PYTHON = '/usr/bin/python3'
# Sends its output and errors to who listens at `held`, and ends.
GIVE_AWAY = '''
import os, socket, time
print(os.getcwd(), flush=True)
while not os.path.exists('held'): time.sleep(0.05)
away = socket.socket(socket.AF_UNIX)
away.connect('held')
socket.send_fds(away, [b'x'], [1, 2])
print('given', flush=True)
'''
DAEMON = 'setsid sh -c "(while :; do sleep 0.1; done) & sleep 100" {0} </dev/null >/dev/null 2>&1 & '


class Processes(Case):
    def gone(self):
        return wait_until(lambda: not processes(self.marker), GONE_SECONDS)

    def runners(self):
        """The runner's processes of this case: the supervisor, and its children with their roles."""
        supervisor = self.supervisors[-1]
        children = [int(pid) for pid in read(f'/proc/{supervisor}/task/{supervisor}/children').split()]
        agents = {int(read(f'/proc/{pid}/stat').rsplit(')', 1)[1].split()[1]) for pid in self.agents()}
        init = [pid for pid in children if pid in agents]
        gateway = [pid for pid in children if pid not in agents]
        self.assertTrue(init and gateway, f'{children} {agents}')
        return supervisor, gateway[0], init[0]

    def test_background_loop_ends_with_the_agent(self):
        run = self.shell('(while :; do sleep 0.1; done) & echo started', code=0)
        self.assertIn('started', run.out)
        self.assertTrue(self.gone())

    def test_daemon_ends_with_the_agent(self):
        self.shell(DAEMON.format(self.marker) + 'sleep 0.3; pgrep -f 100 >/dev/null; exit 0')
        self.assertTrue(self.gone())
        # The control: outside, the same daemon lives on.
        self.outside(DAEMON.format(self.marker) + 'sleep 0.3')
        left = processes(self.marker)
        self.assertTrue(left)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        self.assertTrue(self.gone())

    def doors(self, gateway):
        """The loopback ports on which a gateway of tier landlock listens."""
        held = {os.stat(f'/proc/{gateway}/fd/{name}').st_ino for name in os.listdir(f'/proc/{gateway}/fd')}
        rows = [line.split() for line in read(f'/proc/{gateway}/net/tcp').splitlines()[1:]]
        found = [row[1].split(':') for row in rows if row[3] == '0A' and int(row[9]) in held]
        self.assertEqual({address for address, _ in found}, {'0100007F'})
        return [int(port, 16) for _, port in found]

    @only_as('root')
    @only_in('landlock')
    def test_requests_of_other_processes_are_not_the_agents(self):
        seen = self.dir + '/seen'
        os.mkdir(seen)
        for place in (self.dir, seen):
            os.chmod(place, 0o755)
        policy = self.policy(f'version: 1\nfilesystem_policy: {{include_workdir: true, read_only: [/usr, /etc, {seen}]}}\n')
        process = self.started_agent(f': "$0"; until [ -e {seen}/asked ]; do sleep 0.05; done; '
                                     'curl -s -o /dev/null http://agents.example/', options=['--policy', policy])
        doors = self.doors(self.runners()[1])
        self.assertEqual(len(doors), 2)
        for port in doors:
            with socket.create_connection(('127.0.0.1', port)) as stranger:
                with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                    stranger.sendall(b'GET http://strangers.example/ HTTP/1.1\r\nHost: strangers.example\r\n\r\n')
                    self.assertEqual(stranger.recv(1000), b'')
        write(seen + '/asked', '')
        run = self.finish(process)
        self.assertIn('agents.example', read(run.report + '/events.ocsf.jsonl'), run.err)
        self.assertNotIn('strangers.example', read(run.report + '/events.ocsf.jsonl'))
        self.assertEqual([finding['message'] for finding in run.record['findings'] if finding['rule'] == 'other-process'],
                         ["not the agent's: 2 connections of other processes of this machine to the gateway were closed"])

    def test_everything_dies_with_a_killed_supervisor(self):
        process = self.started_agent(DAEMON.format('$0') + 'trap "" TERM HUP; sleep 100; : "$0"')
        process.kill()
        process.communicate()
        self.assertTrue(self.gone())
        self.sweep()

    def test_everything_dies_with_a_killed_first_process(self):
        process = self.started_agent(DAEMON.format('$0') + 'echo > kept; echo ready; sleep 100; : "$0"')
        self.assertEqual(process.stdout.readline(), b'ready\n')
        _, _, init = self.runners()
        os.kill(init, signal.SIGKILL)
        run = self.finish(process)
        self.assertEqual((run.code, run.outcome['kind']), (74, 'sandbox-lost'))
        self.assertEqual(run.record['changes']['files'], 1)  # What it did by then is kept.
        self.assertTrue(self.gone())

    def test_everything_dies_with_a_killed_gateway(self):
        process = self.started_agent(DAEMON.format('$0') + 'echo > kept; echo ready; sleep 100; : "$0"')
        self.assertEqual(process.stdout.readline(), b'ready\n')
        _, gateway, _ = self.runners()
        os.kill(gateway, signal.SIGKILL)
        run = self.finish(process)
        self.assertEqual((run.code, run.outcome['kind']), (74, 'gateway-lost'))
        self.assertEqual(run.record['changes']['files'], 1)  # What it did by then is kept.
        self.assertTrue(self.gone())

    @only_in('namespaces')
    def test_first_process_takes_no_signal_that_the_kernel_may_keep(self):
        process = self.waiting_agent()
        _, _, init = self.runners()
        for number in (signal.SIGABRT, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(init, number)
        self.release()
        run = self.finish(process)
        self.assertEqual((run.code, run.out), (0, 'end\n'))

    def test_agent_that_ignores_signals_dies_at_the_interrupt(self):
        process = self.started_agent('trap "" INT TERM HUP QUIT; while :; do sleep 1; done; : "$0"')
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(process).code, 130)
        self.assertTrue(self.gone())

    @only_in('landlock')  # Elsewhere nothing of the sandbox's can be connected to from outside.
    def test_run_ends_while_its_output_is_held_elsewhere(self):
        self.feature('python3', os.path.exists(PYTHON), 'it sends descriptors')
        process = self.start([PYTHON, '-c', GIVE_AWAY])
        place = os.open(process.stdout.readline().decode().strip(), os.O_PATH)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.settimeout(RUN_SECONDS)
            listener.bind(f'/proc/self/fd/{place}/new')
            os.chmod(f'/proc/self/fd/{place}/new', 0o777)
            listener.listen()
            os.rename('new', 'held', src_dir_fd=place, dst_dir_fd=place)
            os.close(place)
            connection, _ = listener.accept()
        with connection:
            _, held, _, _ = socket.recv_fds(connection, 1, 2)
        run = self.finish(process)
        self.assertEqual((run.code, run.out.splitlines()[-1]), (0, 'given'), run.err)
        for descriptor in held:  # The control: these were the run's.
            with self.assertRaises(BrokenPipeError):
                os.write(descriptor, b'late')
            os.close(descriptor)

    def test_killed_while_starting_leaves_nothing(self):
        for delay in (0.002, 0.01, 0.03, 0.06, 0.1, 0.2):
            process = self.start(['sh', '-c', 'sleep 100', self.marker])
            try:
                process.communicate(timeout=delay)
            except subprocess.TimeoutExpired:
                process.kill()
            process.communicate()
            self.assertTrue(self.gone(), f'after {delay} s: {processes(self.marker)}')
        self.sweep()

    def test_failed_start_leaves_nothing(self):
        self.run_agent('no-such-program', code=66)
        self.assertTrue(self.gone())

    def test_agent_cannot_signal_the_runner(self):
        run = self.shell('kill -9 -1 2>/dev/null; kill -9 1 2>/dev/null; echo alive')
        self.assertIn('alive', run.out)

    def test_no_core_goes_to_a_program_of_the_host(self):
        crash = 'python3 -c "import resource as r; r.setrlimit(r.RLIMIT_CORE, (0, 0)); print(*r.getrlimit(r.RLIMIT_CORE))"; ' \
                'ulimit -c 0; sh -c \'kill -SEGV $$\'; true'
        before = read(CORES) if os.path.exists(CORES) else None
        self.assertIn('1 1\n', self.shell(crash).out)
        if before is not None:  # A machine of tests/kernels: it gives cores to a program that notes them.
            self.assertEqual(read(CORES), before)
            self.assertIn('0 0\n', self.outside(crash))
            self.assertTrue(wait_until(lambda: read(CORES) != before, GONE_SECONDS))

    # A root whose container gives it groups, or who was added to some.
    @only_as('root')
    def test_groups_of_the_runner_are_not_the_agents(self):
        group = 23458
        take = f'python3 -c "import os; open(\\"f\\", \\"w\\"); os.chown(\\"f\\", -1, {group})" 2>&1 | tail -n 1'
        self.assertRegex(self.shell(take, extra_groups=[group]).out, 'Operation not permitted|Invalid argument')
        os.chmod(self.checkout, 0o777)
        self.assertEqual(self.outside(take, user=USER, group=USER, extra_groups=[group]), '')

    @only_in('namespaces')
    def test_agent_sees_the_sandbox_alone(self):
        run = self.shell('ls /proc | grep -c "^[0-9]*$"')
        self.assertLess(int(run.out), 8)
        self.assertGreater(int(self.outside('ls /proc | grep -c "^[0-9]*$"')), 8)

    @only_in('namespaces')
    def test_many_short_processes_leave_no_zombies(self):
        self.shell('for i in $(seq 100); do (setsid true &) ; done;'
                   'while grep -qsE "^(State:.Z|Name:.(true|setsid)$)" /proc/[0-9]*/status; do sleep 0.1; done')

    def test_two_runs_at_once_on_one_checkout(self):
        first = self.start(['sh', '-c', 'echo one > f; sleep 0.5; cat f'])
        second = self.start(['sh', '-c', 'echo two > f; sleep 0.5; cat f'])
        self.assertEqual(self.finish(first).out, 'one\n')
        self.assertEqual(self.finish(second).out, 'two\n')
        self.assertFalse(os.path.exists(self.checkout + '/f'))
