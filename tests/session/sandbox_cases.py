# SPDX-License-Identifier: Apache-2.0
"""The sandbox around a session: what it keeps out, how it ends, and what it leaves."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import stat
import subprocess
import time

from harness import (BIN, BUSY_SECONDS, CANARY, GIT, Case, inode_of, message_kind, never_root, only_root, processes, processes_in, read,
                     wait_until)

SERVER = 'python3 -m http.server 8765 --bind 127.0.0.1 -d dir >/dev/null 2>&1 & sleep 0.1'
FETCH = ('python3 -c "import urllib.request as r\nr.install_opener(r.build_opener(r.ProxyHandler({})))\n'
         'print(r.urlopen(\'http://127.0.0.1:8765/c.txt\').read().decode(), end=\'\')"')


class Isolation(Case):
    def test_the_host_is_not_there(self):
        secret = os.path.join(self.base, 'secret')
        with open(secret, 'w') as file:
            file.write(CANARY)
        self.create()
        escapes = (f'cat {secret}', f'cat ../secret; cat {"../" * 20}{secret}',
                   f'ln -s {self.base} l; cat l/secret; ln -s l k; cat k/secret', f'cd /; cd {self.base}; cat secret',
                   f'cat /proc/1/root{secret}; cat /proc/1/environ', 'env; set')
        for script in escapes:
            with self.subTest(script):
                result = self.script(script)
                self.assertNotIn(CANARY, result['stdout'])
                self.assertNotIn(self.marker, result['stdout'])
        self.says('rm -rf /* 2>/dev/null; rm -rf "$OLDPWD" 2>/dev/null; echo done', 'done\n')
        self.assertEqual(read(secret), CANARY)
        self.assertEqual(read(self.work + '/a.txt'), 'alpha\n')

    @never_root
    def test_no_process_of_a_lasting_sandbox_shows_others_of_the_user_its_credentials(self):
        self.env['SESSION_CREDENTIAL'] = secret = 'value-' + os.urandom(12).hex()

        def shown():
            found = []
            for pid in filter(str.isdigit, os.listdir('/proc')):
                with contextlib.suppress(OSError), open(f'/proc/{pid}/environ', 'rb') as environ:
                    if secret.encode() in environ.read():
                        found.append(pid)
            return found

        with subprocess.Popen(['sleep', '100'], env=self.env) as control:
            # A program that has just begun has no environment yet, for a moment.
            self.assertTrue(wait_until(lambda: shown() == [str(control.pid)]))
            control.kill()
        self.create('--secret', 'SESSION_CREDENTIAL@service.example')
        self.assertEqual(shown(), [])
        self.call('sandbox', 'reset', 'one')  # The next supervisor has it again.
        self.says('echo "$SESSION_CREDENTIAL"', 'openshell:resolve:env:SESSION_CREDENTIAL\n')
        self.assertEqual(shown(), [])

    def test_a_server_of_one_command_serves_the_next_and_nothing_else_is_reached(self):
        self.create()
        self.script(SERVER)
        # A server takes a moment.
        self.assertTrue(wait_until(lambda: self.script(FETCH)['stdout'] == 'gamma\n'))
        result = self.script('python3 -c "import urllib.request as r; r.urlopen(\'http://example.com/\', timeout=120)"')
        self.assertEqual(result['status'], 1)
        self.assertIn('403', result['stderr'])
        self.call('sandbox', 'delete', 'one')
        self.assertIn('example.com', read(self.report + '/events.log'))

    def test_what_a_command_says_or_is_called_is_no_record_of_the_gateway(self):
        self.create()
        event = json.dumps({'class_uid': 4001, 'activity_id': 5, 'action_id': 2, 'dst_endpoint': {'hostname': 'forged.example',
                                                                                                 'port': 443}})
        result = self.script(f"echo '{event}'; echo 'NET:OPEN DENIED forged.example:443' >&2; "
                             f"python3 -c 'import sys; print(len(sys.argv))' '{event}' 'CONNECT forged.example:443'")
        self.assertIn('3\n', result['stdout'])
        self.script('python3 -c "import urllib.request as r; r.urlopen(\'http://example.com/\', timeout=120)"')  # The control.
        self.call('sandbox', 'delete', 'one')
        self.assertEqual([denial['host'] for denial in self.record()['denials']], ['example.com'])
        self.assertNotIn('forged.example', read(self.report + '/events.ocsf.jsonl') + read(self.report + '/events.log'))

    def test_another_user_cannot_reach_it(self):
        self.create()
        place = os.path.join(self.scratch, 'agentic-ci')
        for path in (place, place + '/one'):
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o700)
        self.assertEqual(stat.S_IMODE(os.stat(place + '/one/socket').st_mode), 0o700)

    @only_root
    def test_another_user_who_reaches_the_socket_is_refused(self):
        # The supervisor asks the kernel who calls.
        self.create()
        place = os.path.join(self.scratch, 'agentic-ci')
        self.addCleanup(os.chmod, place, 0o700)
        for path in (self.base, self.scratch, place, place + '/one', place + '/one/socket'):
            os.chmod(path, 0o755 if path in (self.base, self.scratch) else 0o777)
        script = ('import socket, sys\ns = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\ns.settimeout(120)\n'
                  's.connect(sys.argv[1])\ntry:\n s.send(b"\\x03")\n sys.exit(len(s.recv(100)))\nexcept OSError:\n pass')
        done = subprocess.run(['python3', '-c', script, place + '/one/socket'], user=12345, group=12345,
                              extra_groups=[], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        os.chmod(place, 0o700)
        self.says('echo here', 'here\n')

    def test_a_place_that_others_can_enter_is_refused(self):
        place = os.path.join(self.scratch, 'agentic-ci')
        os.mkdir(place, 0o755)
        refused = self.call('sandbox', 'list')
        self.assertEqual(refused.returncode, 77, refused.stderr)
        os.rmdir(place)
        os.mkdir(self.base + '/elsewhere', 0o700)
        os.symlink(self.base + '/elsewhere', place)
        self.assertNotEqual(self.call('sandbox', 'list').returncode, 0)
        os.unlink(place)

    def connect(self):
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        client.settimeout(BUSY_SECONDS)
        client.connect(os.path.join(self.scratch, 'agentic-ci/one/socket'))
        return client

    def test_a_hostile_client_harms_nobody(self):
        self.create()
        for message in (b'\xff', b'', b'\x01', b'\x01' + b'\xff' * 60, b'\x00' + b'\xff' * 4, b'x' * 100_000,
                        b'\x0a' * 9, os.urandom(64)):
            with self.subTest(message[:9]):
                with self.connect() as client:
                    client.send(message)
                    if message:
                        self.assertEqual(client.recv(9), b'')  # The connection is closed.
        # Its script grows without end.
        with self.connect() as client, self.assertRaises(OSError):
            for _ in range(1000):
                client.send(message_kind('kScript') + (32000).to_bytes(4, 'little') + b'x' * 32000)
        # It asks for much and reads nothing; its time limit still holds.
        with self.connect() as client:
            script = b'yes'
            client.send(message_kind('kScript') + len(script).to_bytes(4, 'little') + script)
            client.send(message_kind('kExec') + (1000).to_bytes(8, 'little') + b'\x01')
            self.says('echo next', 'next\n')
        idle = [self.connect() for _ in range(50)]
        idle[0].close()
        for client in idle:
            client.close()
        self.says('echo last', 'last\n')


class Life(Case):
    def test_reset_keeps_what_the_sandbox_was_created_from(self):
        self.create('--env', 'GIVEN=1')
        self.script('echo x >a.txt; rm b.txt; touch /tmp/t ~/h; x=1; ' + self.nap(1007) + ' & sleep 1008 & cd dir')
        self.assertEqual(self.call('sandbox', 'reset', 'one').returncode, 0)
        self.says('cat a.txt b.txt; ls ~; ls /tmp/t; echo "$x$GIVEN"; basename "$PWD"; ps -e -o args= | grep -c "slee[p]"',
                  'alpha\nbeta\n1\nwork\n0\n')
        self.assertFalse(self.napping(1007))

    def test_a_full_disk_is_for_programs_to_see_and_leaves_room_for_the_shells(self):
        self.create('--memory', '64MiB')
        for _ in range(3):
            result = self.script('x=1; head -c 200M /dev/zero >/tmp/full')
            self.assertEqual((result['reason'], result['status']), ('exit', 1), result)
            self.assertIn('No space left on device', result['stderr'])
            self.says('echo $x; [ $(wc -c </tmp/full) -gt 45000000 ]; echo $?', '1\n0\n')
            self.script('rm /tmp/full; for i in $(seq 20000); do : >/tmp/$i || break; done')
            self.says('[ $(ls /tmp | wc -l) -gt 10000 ]; echo $?', '0\n')
            self.assertEqual(self.call('sandbox', 'reset', 'one').returncode, 0)
            self.says('ls /tmp/1; echo gone', 'gone\n')
        self.call('sandbox', 'delete', 'one')
        record = self.record()
        disk = [(one['name'], one['limit']) for one in record['limits'] if one['fired']]
        self.assertEqual((record['outcome']['kind'], disk), ('success', [('disk', 48 << 20)]))

    def test_what_others_changed_before_a_command_is_what_it_found(self):
        self.create()
        given, gone = pathlib.Path(self.work, 'a.txt'), pathlib.Path(self.work, 'b.txt')
        given.write_text('edited\n')
        gone.write_text('edited, too\n')
        self.script('echo mine >>a.txt; rm b.txt')
        diff = self.call('sandbox', 'diff', 'one')
        if self.TIER == 'namespaces':
            self.assertIn(' edited\n+mine\n', diff.stdout)
            self.assertIn('-edited, too\n', diff.stdout)
            self.assertEqual(diff.stderr, '')
        else:  # A copy, in which they are not seen.
            self.assertNotIn('edited', diff.stdout)
            self.assertIn('not all changes are in this patch', diff.stderr)
        given.write_text('edited again\n')
        for script in ('echo more >>a.txt', 'sed -i s/mine/ours/ a.txt', 'rm a.txt; echo anew >a.txt', 'rm a.txt'):
            self.script(script)  # It does not see that edit: the file is the sandbox's own by now.
            diff = self.call('sandbox', 'diff', 'one')
            self.assertNotIn('a.txt', diff.stdout)
            self.assertIn('not all changes are in this patch', diff.stderr)

    def test_clients_are_told_why_the_sandbox_ended(self):
        self.create('--pids', '40')
        done = self.call('sandbox', 'exec', 'one', '--', 'sh', '-c', '(while :; do sleep 1011 & done); exec sleep 1011')
        self.assertEqual(done.returncode, 74, done.stderr)
        self.assertIn('the sandbox ended: the agent reached the limit of processes and threads; see ' + self.report, done.stderr)

    def test_delete_writes_the_report_and_applies_the_changes(self):
        self.create()
        self.script('echo new >new.txt; echo seen')
        done = self.call('sandbox', 'delete', 'one', '--apply', '--json')
        self.assertEqual(done.returncode, 0, done.stderr)
        record = json.loads(done.stdout)
        self.assertEqual(record, self.record())
        self.assertEqual(record['outcome']['kind'], 'success')
        self.assertIn('+++ b/new.txt', read(self.report + '/changes.patch'))
        self.assertEqual(read(self.work + '/new.txt'), 'new\n')
        self.assertIn('seen', read(self.report + '/agent.log'))
        again = self.call('sandbox', 'delete', 'one')
        self.assertEqual(again.returncode, 66, again.stderr)

    def test_gates_judge_what_a_session_changed(self):
        self.create('--apply')
        self.script('mkdir -p .github/workflows; echo "on: push" >.github/workflows/x.yml')
        self.assertEqual(self.call('sandbox', 'delete', 'one').returncode, 77)
        self.assertFalse(os.path.exists(self.work + '/.github'))

    def test_who_ends_it_reads_what_was_refused(self):
        self.create()
        self.script('curl -s -m 20 http://refused.invalid/; mkdir .github; echo x >.github/x')
        done = self.call('sandbox', 'delete', 'one')
        self.assertEqual(done.returncode, 77, done.stderr)
        for text in ('host=refused.invalid', 'to_allow=refused.invalid:80:read-only', 'a gate refused where=.github/x',
                     'run did not succeed why=a gate refused the changes', 'sandbox deleted'):
            self.assertIn(text, done.stderr)
        self.create()
        self.script('echo x >x.txt')
        done = self.call('sandbox', 'delete', 'one')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn('warn', done.stderr)
        self.create()
        shutil.rmtree(self.report)
        done = self.call('sandbox', 'delete', 'one')
        self.assertEqual(done.returncode, 66, done.stderr)
        self.assertIn(f'error: writing the report to {self.report}: writing changes.patch: openat', done.stderr)

    def test_steps_of_a_job_share_one_sandbox(self):
        setup = self.call('setup', '--workdir', self.work, '--report-dir', self.report, '--isolation', self.TIER)
        self.assertEqual(setup.returncode, 0, setup.stderr)
        name = setup.stdout.strip()
        self.assertRegex(name, '^setup-[0-9a-f]{12}$')
        self.assertEqual(self.call('setup', '--workdir', self.work).returncode, 64)
        step = self.call('exec', '--workdir', self.work, '--', 'sh', '-c', 'echo made >made.txt')
        self.assertEqual(step.returncode, 0, step.stderr)
        for arguments, status, output in ((['--', 'cat', 'made.txt'], 0, 'made\n'),
                                          (['--prompt', "it's\nhere", '--', 'cat'], 0, "it's\nhere\n"),
                                          (['--', 'sh', '-c', 'exit 5'], 5, ''),
                                          (['--', 'sh', '-c', 'exit 99'], 63, ''),
                                          (['--timeout', '1s', '--', 'sleep', '9'], 124, '')):
            with self.subTest(arguments):
                run = self.call('run', '--sandbox', name, *arguments)
                self.assertEqual(run.returncode, status, run.stderr)
                if status != 124:  # There the shell has a word to say.
                    self.assertEqual(run.stdout, output)
        allowed = 'to_allow=refused.invalid:80:read-only'
        for step in (['exec', '--workdir', self.work], ['run', '--sandbox', name]):
            with self.subTest(step):
                self.assertIn(allowed, self.call(*step, '--', 'curl', '-s', '-m', '20', 'http://refused.invalid/').stderr)
                self.assertNotIn('refused', self.call(*step, '--', 'true').stderr)
        for option in ('--memory=1GiB', '--apply', '--workdir=.', '--json'):
            self.assertEqual(self.call('run', '--sandbox', name, option, '--', 'true').returncode, 64)
        deeper = os.path.join(self.work, 'dir/sub')
        step = subprocess.run([BIN, 'exec', '--', 'cat', 'made.txt'], cwd=deeper, env=self.env, capture_output=True, text=True)
        self.assertEqual((step.returncode, step.stdout), (0, 'made\n'), step.stderr)
        self.assertEqual(self.call('exec', '--workdir', self.base, '--', 'true').returncode, 66)  # Above it.
        stop = self.call('stop', '--workdir', deeper, '--apply')
        self.assertEqual(stop.returncode, 0, stop.stderr)
        self.assertIn(allowed, stop.stderr)
        self.assertEqual(read(self.work + '/made.txt'), 'made\n')
        self.assertEqual(self.call('stop', '--workdir', self.work).returncode, 66)

    def test_a_prompt_file_is_the_trusted_commit_s_or_no_link(self):
        tasks = [pathlib.Path(self.work, name, 'task.md') for name in ('.agentic-ci', 'prompts')]
        for task in tasks:
            task.parent.mkdir()
            task.write_text('committed')
        os.symlink('/proc/self/environ', self.work + '/prompts/link.md')
        for arguments in (['add', '-A'], ['commit', '-qm', 'prompts']):
            subprocess.run([*GIT, *arguments], cwd=self.work, env=self.env, check=True, capture_output=True)
        for task in tasks:
            task.write_text('changed')
        self.create()
        for name, status, output in (('.agentic-ci/task.md', 0, 'committed'), ('prompts/task.md', 0, 'changed'),
                                     ('prompts/link.md', 65, ''), ('.agentic-ci/absent.md', 66, '')):
            with self.subTest(name):
                run = self.call('run', '--sandbox', 'one', '--prompt-file', f'{self.work}/{name}', '--', 'cat')
                self.assertEqual((run.returncode, run.stdout.strip()), (status, output), run.stderr)
        self.assertEqual(self.call('sandbox', 'delete', 'one').returncode, 0)
        self.create('--policy-ref', 'worktree')
        run = self.call('run', '--sandbox', 'one', '--prompt-file', self.work + '/.agentic-ci/task.md', '--', 'cat')
        self.assertEqual((run.returncode, run.stdout.strip()), (0, 'changed'), run.stderr)

    def test_an_agent_in_it_asks_the_model_that_the_sandbox_was_made_for(self):
        words = '${key_name} ${base_url} ${model} ${key}'
        models = [{'provider': name, 'keys': [name.upper() + '_API_KEY'], 'base_url': f'https://api.{name}.com',
                   'base_url_from': name.upper() + '_BASE_URL', 'model': name + '-1'} for name in ('anthropic', 'openai')]
        house = {'program': 'sh', 'stream': 'plain', 'prompt': 'stdin', 'arguments': ['-c', 'cat ~/.house; echo "$1 $MODEL_KEY"', 'house', words],
                 'files': {'.house': '${key}\n'}, 'environment': {'MODEL_KEY': '${key}'}, 'models': models}
        config = pathlib.Path(self.work, '.agentic-ci/config.yml')
        config.parent.mkdir(exist_ok=True)
        config.write_text(json.dumps({'agents': {'house': house}}))
        for arguments in (['add', '-A'], ['commit', '-qm', 'agent']):
            subprocess.run([*GIT, *arguments], cwd=self.work, env=self.env, check=True, capture_output=True)
        self.env |= {'OPENAI_API_KEY': 'the-key', 'OPENAI_BASE_URL': 'https://models.example.com/v1', 'ANTHROPIC_API_KEY': 'another'}
        stands = 'openshell:resolve:env:OPENAI_API_KEY'
        for made_with, address in ((['--provider', 'openai'], 'https://models.example.com/v1'),
                                   (['--secret', 'OPENAI_API_KEY@api.openai.com'], 'https://api.openai.com')):
            with self.subTest(made_with):
                self.create(*made_with)
                run = self.call('run', '--sandbox', 'one', '--agent', 'house', '--prompt', 'go')
                self.assertEqual((run.returncode, run.stdout), (0, f'{stands}\nOPENAI_API_KEY {address} openai-1 {stands} {stands}\n'), run.stderr)
                self.assertEqual(self.call('sandbox', 'delete', 'one').returncode, 0)

    def test_its_time_to_live_ends_it_with_a_report(self):
        self.create('--ttl', '2s')
        self.script('echo x >x.txt')
        waiting = self.start('sleep 60')
        self.assertEqual(waiting.wait(60), 74)
        waiting.communicate()
        self.assertTrue(wait_until(lambda: not self.names()))
        self.assertEqual(self.record()['outcome']['kind'], 'timed-out')
        self.assertIn('x.txt', read(self.report + '/changes.patch'))

    def test_names_and_report_directories_are_one_sandboxs(self):
        self.create()
        for options, status in ((['--name', 'one'], 64), (['--name', '../x'], 64), (['--name', ''], 64),
                                (['--report-dir', self.report], 64), (['--ttl', '0s'], 64),
                                (['--workdir', '/nonexistent'], 66), (['--policy', '/nonexistent'], 66)):
            with self.subTest(options):
                given = {'--workdir': self.work, '--name': 'two', '--report-dir': self.base + '/other'}
                given.update({options[0]: options[1]})
                done = self.call('sandbox', 'create', *[word for pair in given.items() for word in pair])
                self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(self.names(), ['one'])

    def test_a_name_is_free_once_its_sandbox_is_said_to_have_failed(self):
        for _ in range(20):
            done = self.call('sandbox', 'create', '--name', 'one', '--workdir', self.work, '--policy', '/nonexistent',
                             '--report-dir', self.report)
            self.assertEqual(done.returncode, 66, done.stderr)
            self.assertEqual(self.names(), [])


class Kills(Case):
    def child(self, pid, name=None):
        for child in read(f'/proc/{pid}/task/{pid}/children').split():
            if name is None or read(f'/proc/{child}/comm').strip() == name:
                return int(child)
        self.fail(f'{pid} has no such child')

    def victims(self):
        keeper = self.facts()['pid']
        supervisor = self.child(keeper)
        children = read(f'/proc/{supervisor}/task/{supervisor}/children').split()
        gateway = self.child(supervisor, 'gateway')
        init = next(int(pid) for pid in children if int(pid) != gateway)
        return {'keeper': keeper, 'supervisor': supervisor, 'gateway': gateway, 'init': init,
                'shell keeper': self.child(init)}

    def test_whatever_is_killed_nothing_is_left_after_the_next_command(self):
        groups = []
        for victim in ('keeper', 'supervisor', 'gateway', 'init', 'shell keeper'):
            for number in (signal.SIGKILL, signal.SIGTERM):
                with self.subTest(victim=victim, signal=number):
                    self.create()
                    self.script(self.nap(1010) + ' &')
                    client = self.start(self.nap(1011))
                    self.assertTrue(wait_until(lambda: self.facts().get('busy')))
                    victims = self.victims()
                    pid = victims[victim]
                    groups += [(group, os.stat(group).st_ino) for group in self.cgroups()
                               if group.endswith(f'-{victims["supervisor"]}')]
                    os.kill(pid, number)
                    if victim in ('init', 'gateway') and number == signal.SIGTERM:
                        time.sleep(0.2)  # These do not listen to it, and may go on.
                        if self.names():
                            self.call('sandbox', 'delete', 'one')
                    self.assertTrue(wait_until(lambda: not self.names(), BUSY_SECONDS), self.names())
                    self.assertNotEqual(client.wait(BUSY_SECONDS), 0)
                    client.communicate()
                    self.assertTrue(wait_until(lambda: not processes(self.marker), BUSY_SECONDS))
                    self.assertTrue(wait_until(lambda: not self.napping(1010, 1011), BUSY_SECONDS))
                    if victim == 'keeper':  # A CI system that ends a job asks first, and then kills.
                        self.assertEqual(self.record()['outcome']['kind'], 'terminated')
        # Directories and cgroups of what was killed go with the next sandbox; a group that is in use does not.
        self.assertTrue(groups or not os.access('/sys/fs/cgroup', os.W_OK))
        # A later group may have the name of an earlier one, and not its inode.
        left = lambda: [group for group, inode in groups if inode_of(group) == inode]
        self.assertTrue(wait_until(lambda: not any(map(processes_in, left())), BUSY_SECONDS), left())
        self.create()
        self.call('sandbox', 'delete', 'one')
        self.assertEqual(left(), [])

    def test_a_session_goes_on_when_its_shell_is_killed(self):
        self.create()
        self.script('x=1')
        shell = self.child(self.victims()['shell keeper'])
        os.kill(shell, signal.SIGKILL)
        self.says('echo $x', '1\n')

    def test_a_creation_that_is_cancelled_ends_though_it_is_not_ready(self):
        reads, writes = os.pipe()  # Its policy, which does not come.
        process = subprocess.Popen([BIN, 'sandbox', 'create', '--name', 'one', '--workdir', self.work, '--report-dir',
                                    self.report, '--isolation', self.TIER, '--policy', f'/dev/fd/{reads}'],
                                   cwd=self.base, env=self.env, pass_fds=(reads,), stderr=subprocess.DEVNULL)
        os.close(reads)
        self.assertTrue(wait_until(lambda: self.names() == ['one'], BUSY_SECONDS))
        process.send_signal(signal.SIGINT)
        process.wait()
        gone = wait_until(lambda: self.names() == [] and not processes(self.marker), BUSY_SECONDS)
        os.close(writes)
        self.assertTrue(gone)
        self.create()

    def test_clients_that_come_while_a_sandbox_ends_are_told(self):
        self.create()
        supervisor = self.victims()['supervisor']
        os.kill(supervisor, signal.SIGSTOP)
        clients = [subprocess.Popen([BIN, 'sandbox', *words], cwd=self.base, env=self.env, text=True,
                                    stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
                   for words in (['delete', 'one'], ['delete', 'one'], ['exec', 'one', '--', 'sleep', '9'])]
        for client in clients:
            self.assertTrue(wait_until(lambda pid=client.pid: self.awaits_an_answer(pid), BUSY_SECONDS))
        os.kill(supervisor, signal.SIGCONT)
        told = [(client.communicate()[1], client.returncode) for client in clients]
        self.assertEqual([status for _, status in told], [0, 0, 74], told)
        self.assertIn('error: the sandbox ended', told[2][0])

    def awaits_an_answer(self, pid):
        """A client sleeps with its connection open only once it has sent what it wants."""
        try:
            connected = any(os.readlink(link).startswith('socket:') for link in pathlib.Path(f'/proc/{pid}/fd').iterdir())
        except FileNotFoundError:
            return False
        return connected and read(f'/proc/{pid}/stat').rsplit(')', 1)[1].split()[0] == 'S'

    def test_a_creation_that_is_killed_leaves_nothing(self):
        for delay in (0, 0.005, 0.01, 0.02, 0.04, 0.08):
            with self.subTest(delay=delay):
                process = subprocess.Popen([BIN, 'sandbox', 'create', '--name', 'one', '--workdir', self.work,
                                            '--report-dir', self.report, '--isolation', self.TIER],
                                           cwd=self.base, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                time.sleep(delay)
                process.kill()
                process.communicate()
                # If it was made by then, printed or not, it is a sandbox as any other.
                wait_until(lambda: not processes(self.marker) or self.call('sandbox', 'delete', 'one').returncode == 0,
                           BUSY_SECONDS)
                self.assertTrue(wait_until(lambda: not processes(self.marker), BUSY_SECONDS))
                self.assertEqual(self.names(), [])
