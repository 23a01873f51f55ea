# SPDX-License-Identifier: Apache-2.0
"""What a client is told of a sandbox while it goes on, and policies that are replaced."""
import hashlib
import pathlib

from client import Fault
from harness import BUSY_SECONDS, wait_until
from serve_cases import Served

NONE = 'defaults: none\n'
ASK = 'curl -s -m 5 -o /dev/null -w "%{http_code}" http://told.invalid/path'


class Policies(Served):
    def allowed(self, client, sandbox='one'):
        result, _ = client.run(sandbox, ASK)
        return result['refused'] == []

    def begin(self, client):
        """A sandbox that may reach nothing, and the policy that lets it reach the one host."""
        policy = pathlib.Path(self.base, 'policy.yml')
        policy.write_text(NONE)
        self.sandbox(client, policy=str(policy))
        result, _ = client.run('one', ASK)
        return NONE + f'endpoints:\n  - "{result["refused"][0]["allow"]}"\n'

    def test_a_text_replaces_the_policy_and_one_that_is_not_understood_does_not(self):
        client = self.connect()
        opened = self.begin(client)
        replaced = client.call('policy', sandbox='one', text=opened)
        self.assertEqual(replaced, {'sha256': hashlib.sha256(opened.encode()).hexdigest()})
        self.assertTrue(wait_until(lambda: self.allowed(client), 20))
        for text, place in ((opened + '  - 7\n', 'policy:4:'), (opened + 'endpoint: x\n', 'policy:4:1:'), ('', ''),
                            (opened + 'filesystem_policy:\n  include_workdir: false\n', '')):
            with self.subTest(text), self.assertRaises(Fault) as raised:
                client.call('policy', sandbox='one', text=text)
            self.assertEqual(raised.exception.data['kind'], 'invalid')
            self.assertTrue(str(raised.exception).startswith(place), raised.exception)
        self.assertTrue(self.allowed(client))
        # What was replaced is not read again.
        client.call('policy', sandbox='one')
        # A fork has what is in force, and so has a sandbox that begins anew.
        if self.TIER == 'namespaces':
            client.call('fork', BUSY_SECONDS, sandbox='one', name='two')
            self.assertTrue(self.allowed(client, 'two'))
        client.call('reset', BUSY_SECONDS, sandbox='one')
        self.assertTrue(self.allowed(client))
        # Narrowed again, by the command line.
        narrow = pathlib.Path(self.base, 'narrow.yml')
        narrow.write_text(NONE + '# nothing\n')
        told = self.call('sandbox', 'policy', 'one', str(narrow))
        self.assertEqual((told.returncode, told.stdout), (0, hashlib.sha256(narrow.read_bytes()).hexdigest() + '\n'))
        self.assertTrue(wait_until(lambda: not self.allowed(client), 20))
        client.call('reset', BUSY_SECONDS, sandbox='one')
        self.assertFalse(self.allowed(client))
        narrow.write_text('defaults: none\nendpoints: [\n')
        told = self.call('sandbox', 'policy', 'one', str(narrow))
        self.assertEqual(told.returncode, 65)
        self.assertIn(str(narrow) + ':', told.stderr)
        opener = pathlib.Path(self.base, 'opened.yml')
        opener.write_text(opened)
        client.call('policy', sandbox='one', file=str(opener))
        self.assertTrue(wait_until(lambda: self.allowed(client), 20))
        self.fails(64, '', client, 'policy', sandbox='one', file=str(opener), text=opened)

    def test_a_policy_that_is_not_of_a_file_is_not_replaced(self):
        client = self.connect()
        self.sandbox(client)
        refused = client.run('one', ASK)[0]['refused']
        text = f'endpoints:\n  - "{refused[0]["allow"]}"\n'
        self.fails(64, 'agentic-ci sandbox create --policy FILE', client, 'policy', sandbox='one', text=text)
        self.assertFalse(self.allowed(client))
        self.fails(66, 'agentic-ci sandbox list', client, 'policy', sandbox='none', text=text)
        told = self.call('sandbox', 'policy', 'one', '/nonexistent')
        self.assertEqual(told.returncode, 66)


class Notices(Served):
    def test_files_are_told_as_they_change(self):
        client = self.connect()
        self.sandbox(client)
        client.run('one', 'echo before > early')
        silent = client.start('events', sandbox='one')
        events = client.start('events', sandbox='one', files=True)
        everything = client.start('events', sandbox='one', files=True, all=True)
        client.run('one', 'echo x > new; rm b.txt')
        self.assertEqual(self.gather(events, 2), {('created', 'new'), ('deleted', 'b.txt')})
        self.assertEqual(self.gather(everything, 3), {('created', 'early'), ('created', 'new'), ('deleted', 'b.txt')})
        # While a command runs.
        running = client.start('exec', sandbox='one', script='echo y > later; read x', stdin={'end': False})
        self.assertEqual(self.gather(events, 1), {('created', 'later')})
        running.input(end=True)
        running.wait()
        silent.cancel()
        self.assertEqual(silent.wait()[0], {})
        self.assertTrue(silent.notes.empty())
        client.call('reset', BUSY_SECONDS, sandbox='one')
        client.run('one', 'echo z > last')
        self.assertIn(('created', 'last'), self.gather(events, 1))
        client.call('delete', sandbox='one')
        for call in (events, everything):
            self.assertEqual(call.wait(BUSY_SECONDS)[0], {})

    def gather(self, call, count):
        found = set()
        while len(found) < count:
            method, message = call.note()
            self.assertEqual(method, 'changes')
            found |= {(one['kind'], one['path']) for one in message['changes']}
        return found

    def test_limits_are_told_once_when_nearly_full_and_once_when_full(self):
        client = self.connect()
        self.sandbox(client, disk='64MiB')
        events = client.start('events', sandbox='one', limits=True)
        client.run('one', 'head -c 40000000 /dev/zero > some')
        client.run('one', 'head -c 14500000 /dev/zero > more')
        method, message = events.note()
        limit = message['limit']
        self.assertEqual((method, limit['name'], limit['reached'], limit['unit']), ('limit', 'disk', False, 'bytes'))
        self.assertEqual(limit['most'], 64 << 20)
        self.assertGreater(limit['used'], 0.8 * limit['most'])
        client.run('one', 'head -c 40000000 /dev/zero > rest')
        method, message = events.note()
        self.assertEqual((message['limit']['name'], message['limit']['reached']), ('disk', True))
        client.run('one', 'rm some more rest; head -c 54500000 /dev/zero > again')
        events.cancel()
        self.assertEqual(events.wait(), ({}, {'stdout': b'', 'stderr': b'', 'data': b''}))

    def test_the_state_is_that_of_the_shell_and_of_the_limits(self):
        client = self.connect()
        self.sandbox(client, 'one', disk='64MiB')
        self.sandbox(client, 'two')
        client.run('one', "v=it\\'s; export e=1; list=(a 'b c'); f() { echo f; }; alias ll='ls -l'; cd dir")
        running = client.start('exec', sandbox='one', script='v=other; echo runs; read x', stdin={'end': False})
        running.note()
        state = client.call('state', sandbox='one')
        self.assertEqual((state['cwd'], state['busy'], state['commands']), (self.work + '/dir', True, 2))
        self.assertEqual({one['name']: one['most'] for one in state['limits']}['disk'], 64 << 20)
        self.assertGreater(state['seconds_left'], 0)
        shown = 'echo "$v" "${list[1]}"; f; pwd; env | grep ^e='
        self.assertEqual(client.run('two', state['script'] + '\n' + shown)[1]['stdout'].decode(),
                         f"it's b c\nf\n{self.work}/dir\ne=1\n")
        running.input(end=True)
        running.wait()
        client.run('one', 'exit 3')
        client.run('one', 'sleep 1000', timeout='1s')
        state = client.call('state', sandbox='one')
        self.assertIn('other', state['script'])
        self.assertEqual([(past['script'].split(';')[0], past['reason'], past['status']) for past in state['history']][1:3],
                         [('v=other', 'exit', 1), ('exit 3', 'exit', 3)])
        self.assertEqual(state['history'][3]['reason'], 'timeout')
        for number in range(50):
            client.run('one', f'echo {number} ' + 'x' * 5000, changes=False)
        history = client.call('state', sandbox='one')['history']
        self.assertEqual((len(history), history[0]['script'][:8], history[-1]['script'][:8]), (40, 'echo 10 ', 'echo 49 '))
        self.assertLessEqual(max(len(past['script']) for past in history), 1024)
