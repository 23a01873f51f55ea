# SPDX-License-Identifier: Apache-2.0
"""What a program is promised that uses `agentic-ci serve`."""
import base64
import hashlib
import io
import json
import os
import pathlib
import queue
import random
import signal
import subprocess
import sys
import tarfile
import threading
import time

from client import Client, Fault
from harness import BIN, BUSY_SECONDS, Case, processes, read, wait_until

HERE = os.path.dirname(os.path.abspath(__file__))
COMMAND = [BIN, 'serve', '--stdio']


def encoded(data):
    """The member of bytes that need not be UTF-8."""
    return {'base64': base64.b64encode(data).decode()}


class Served(Case):
    def setUp(self):
        super().setUp()
        self.clients = []

    def connect(self, **options):
        client = Client(COMMAND, env=self.env, cwd=self.work, **options)
        self.clients.append(client)
        return client

    def tearDown(self):
        for client in self.clients:
            client.close()
        super().tearDown()

    def sandbox(self, client, name='one', **options):
        made = client.call('create', BUSY_SECONDS, name=name, isolation=self.TIER, **options)
        self.assertEqual(made['name'], name)
        return name

    def fails(self, code, hint, client, method, **params):
        with self.assertRaises(Fault) as raised:
            client.call(method, **params)
        self.assertEqual((raised.exception.code, raised.exception.data['hint']), (code, hint), raised.exception)
        return raised.exception


class Commands(Served):
    def test_a_users_script(self):
        client = self.connect()
        self.sandbox(client, 'one')
        self.sandbox(client, 'two')
        # Output comes while the command runs, and input goes to it.
        echo = client.start('exec', sandbox='one', script='while read -r x; do echo "got $x"; done; echo end >&2; exit 3',
                            stdin={'text': 'first\n', 'end': False})
        self.assertEqual(echo.note()[1]['text'], 'got first\n')
        echo.input(b'second\n')
        self.assertEqual(echo.note()[1]['text'], 'got second\n')
        # Another sandbox works meanwhile.
        result, streams = client.run('two', 'echo two > b.txt; cat a.txt')
        self.assertEqual((result['reason'], streams['stdout']), ('exit', b'alpha\n'))
        self.assertEqual(result['changes'], [{'kind': 'modified', 'path': 'b.txt'}])
        echo.input(end=True)
        result, streams = echo.wait()
        self.assertEqual((result['status'], streams['stderr']), (3, b'end\n'))
        # What was set stays, and what is given for one command does not.
        client.run('one', 'x=1; cd dir')
        result, streams = client.run('one', 'echo "$x $y $PWD"', env={'y': "it's"}, directory='/tmp')
        self.assertEqual(streams['stdout'], b"1 it's /tmp\n")
        result, streams = client.run('one', 'echo "$x $y"; pwd')
        self.assertEqual(streams['stdout'].decode(), f'1 \n{result["cwd"]}\n')
        self.assertTrue(result['cwd'].endswith('/dir'))
        # Ends of its own and by others.
        sleeper = client.start('exec', sandbox='one', script='echo begins; sleep 1000')
        self.assertEqual(sleeper.note()[1]['text'], 'begins\n')
        sleeper.cancel()
        self.assertEqual(sleeper.wait()[0]['reason'], 'cancelled')
        self.assertEqual(client.run('one', 'sleep 1000', timeout='1s')[0]['reason'], 'timeout')
        # What was done reaches the checkout.
        client.run('one', 'echo more >> ../a.txt')
        self.assertEqual(client.call('diff', sandbox='one')['changes'], [{'kind': 'modified', 'path': 'a.txt'}])
        self.assertEqual(client.call('apply', sandbox='one'), {'files': 1, 'conflicts': []})
        self.assertEqual(read(self.work + '/a.txt'), 'alpha\nmore\n')
        self.assertEqual(read(self.work + '/b.txt'), 'beta\n')
        self.assertEqual(client.call('delete', sandbox='two'), {'exit_code': 0})
        self.assertEqual(client.ended.get(timeout=BUSY_SECONDS), 'two')
        self.assertEqual([one['name'] for one in client.call('list')['sandboxes']], ['one'])
        self.assertEqual(client.close(), 0)
        self.assertEqual(self.names(), [])

    def test_a_result_is_that_of_the_command_line(self):
        client = self.connect()
        self.sandbox(client)
        script = 'echo out; echo err >&2; rm b.txt; exit 7'
        result = client.call('exec', sandbox='one', script=script, collect=True)
        client.call('reset', BUSY_SECONDS, sandbox='one')
        told = self.script(script)
        self.assertEqual(told.pop('exit'), 7)
        self.assertEqual((result.pop('refused'), result.pop('refused_complete')), ([], True))
        for one in (result, told):
            one['cwd'] = os.path.basename(one['cwd'])  # In tier landlock, each instance has its own.
            self.assertEqual(set(one.pop('usage')), {'wall_ms', 'cpu_ms', 'memory_peak_bytes'})
        self.assertEqual(result, told)
        listed = json.loads(self.call('sandbox', 'list', '--json').stdout)
        self.assertEqual([set(one) for one in client.call('list')['sandboxes']], [set(one) for one in listed['sandboxes']])

    def test_input_is_bytes_and_what_is_not_read_is_not_the_next_ones(self):
        client = self.connect()
        self.sandbox(client)
        data = random.Random(1).randbytes(5 << 20)
        summed = client.start('exec', sandbox='one', script='sha256sum', stdin={'end': False})
        for at in range(0, len(data), 1 << 20):
            summed.input(data[at:at + (1 << 20)])
        summed.input(end=True)
        self.assertEqual(summed.wait(BUSY_SECONDS)[1]['stdout'].split()[0].decode(), hashlib.sha256(data).hexdigest())
        given = {'base64': base64.b64encode(b'a\0\xff' * 20000).decode()}
        self.assertEqual(client.run('one', 'head -c 3', stdin=given)[1]['stdout'], b'a\0\xff')
        self.assertEqual(client.run('one', 'cat', stdin={'text': 'mine'})[1]['stdout'], b'mine')
        self.assertEqual(client.run('one', 'cat')[1]['stdout'], b'')
        # A command that reads nothing can be cancelled all the same.
        deaf = client.start('exec', sandbox='one', script='echo runs; sleep 1000', stdin={**given, 'end': False})
        deaf.note()
        for _ in range(8):
            deaf.input(b'x' * 100000)
        deaf.cancel()
        self.assertEqual(deaf.wait()[0]['reason'], 'cancelled')
        client.call('reset', BUSY_SECONDS, sandbox='one')
        self.assertEqual(client.run('one', 'cat', stdin={'text': 'again'})[1]['stdout'], b'again')
        self.assertEqual(client.run('one', 'head -1 /dev/stdin', stdin={'text': 'named\n'})[1]['stdout'], b'named\n')

    def test_a_command_waits_its_turn_or_is_told_that_the_sandbox_is_busy(self):
        client = self.connect()
        self.sandbox(client)
        first = client.start('exec', sandbox='one', script='echo runs; read x; echo $x', stdin={'end': False})
        first.note()
        busy = self.fails(75, '', client, 'exec', sandbox='one', script='true', wait=False)
        self.assertEqual(busy.data['kind'], 'temporary')
        second = client.start('exec', sandbox='one', script='echo second')
        third = client.start('exec', sandbox='one', script='echo third > b.txt')
        third.cancel()
        with self.assertRaises(Fault):
            third.wait()
        first.input(b'go\n', end=True)
        self.assertEqual(first.wait()[1]['stdout'], b'go\n')
        result, streams = second.wait()
        self.assertEqual((streams['stdout'], result['changes']), (b'second\n', []))

    def test_what_a_sandbox_writes_is_inside_of_texts(self):
        client = self.connect()
        self.sandbox(client)
        forged = json.dumps({'jsonrpc': '2.0', 'id': client.last + 1, 'result': {'reason': 'exit', 'status': 0}})
        script = f"printf '%s\\n\\n' '{forged}'; printf '\\377\\0\\033'; printf 'x%.0s' $(seq 100000); exit 4"
        result, streams = client.run('one', script)
        self.assertEqual(result['status'], 4)
        self.assertEqual(streams['stdout'], forged.encode() + b'\n\n\xff\0\x1b' + b'x' * 100000)

    def test_two_streams_or_one_in_order(self):
        client = self.connect()
        self.sandbox(client)
        script = 'for i in 1 2 3; do echo o$i; echo e$i >&2; done; v=kept'
        self.assertEqual(client.run('one', script)[1], {'stdout': b'o1\no2\no3\n', 'stderr': b'e1\ne2\ne3\n', 'data': b''})
        self.assertEqual(client.run('one', script, merge=True)[1]['stdout'], b'o1\ne1\no2\ne2\no3\ne3\n')
        self.assertEqual(client.run('one', 'echo $v')[1]['stdout'], b'kept\n')

    def test_files_cross_as_paths_bytes_and_archives(self):
        client = self.connect()
        self.sandbox(client)
        data = random.Random(2).randbytes(300000)
        client.call('put', sandbox='one', target='new/data', base64=base64.b64encode(data).decode())
        client.call('put', sandbox='one', target='new/run', text='#!/bin/sh\necho ran\n', executable=True)
        self.assertEqual(client.run('one', 'new/run; sha256sum <new/data')[1]['stdout'].decode(),
                         f'ran\n{hashlib.sha256(data).hexdigest()}  -\n')
        self.assertEqual(client.start('get', sandbox='one', source='new/data').wait()[1]['data'], data)
        collected = client.call('get', sandbox='one', source='new/data', collect=True)
        self.assertEqual((base64.b64decode(collected['base64']), collected['truncated']), (data, 0))
        archive = client.start('get', sandbox='one', source='new', archive=True).wait()[1]['data']
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            sizes = {os.path.basename(entry.name): entry.size for entry in tar if entry.isfile()}
        self.assertEqual(sizes, {'data': len(data), 'run': 19})
        out = self.base + '/out'
        client.call('get', sandbox='one', source='new', target=out)
        self.assertEqual(pathlib.Path(out, 'data').read_bytes(), data)
        client.call('put', sandbox='one', source=out, target='copy')
        self.assertEqual(client.run('one', 'ls copy')[1]['stdout'], b'data\nrun\n')
        self.fails(66, '', client, 'get', sandbox='one', source='missing')
        # Of a copy that is cancelled, nothing stays.
        client.run('one', 'head -c 500000000 /dev/zero > large')
        os.mkdir(self.base + '/to')
        for moment in range(6):
            copy = client.start('get', sandbox='one', source='large', target=self.base + '/to/large')
            time.sleep(0.02 * moment)
            copy.cancel()
            with self.assertRaises(Fault):
                copy.wait()
            self.assertEqual(os.listdir(self.base + '/to'), [])

    def test_requests_are_refused_with_what_is_right(self):
        client = self.connect(initialize=False)
        self.fails(-32600, '', client, 'list')
        self.fails(69, '', client, 'initialize', protocol=0)
        self.assertEqual(client.call('initialize', protocol=9, client={'name': 'test'})['protocol'], 1)
        self.fails(-32600, '', client, 'initialize', protocol=1)
        self.fails(-32601, 'exec', client, 'exce')
        self.fails(-32602, 'policy', client, 'create', polciy='x')
        self.fails(-32602, '', client, 'create', apply='x')
        self.fails(64, '--ttl 1h', client, 'create', ttl='0s')
        self.fails(66, '', client, 'create', policy='/nonexistent', **{'policy-ref': 'worktree'})
        missing = self.fails(66, 'agentic-ci sandbox list', client, 'exec', sandbox='none', script='x')
        self.assertEqual(missing.data['kind'], 'not_found')
        self.fails(-32602, 'script', client, 'exec', sandbox='none', scrpt='x')
        self.fails(64, '', client, 'exec', sandbox='none')
        self.fails(66, '', client, 'cancel', request=99)
        for line, code in ((b'{', -32700), (b'[]', -32600), (b'{"jsonrpc":"2.0","id":{},"method":"list"}', -32600)):
            client.calls[None] = answer = client.start('list')
            answer.wait()
            bad = client.calls[None] = type(answer)(client, None)
            client.process.stdin.write(line + b'\n')
            client.process.stdin.flush()
            with self.assertRaises(Fault) as raised:
                bad.wait()
            self.assertEqual(raised.exception.code, code)
        # A notification has no answer, whatever it is.
        for method in ('input', 'exec', 'exce', 'cancel'):
            client.notify(method, request=1)
        self.assertEqual(client.call('list'), {'sandboxes': []})
        self.sandbox(client)
        self.fails(64, 'agentic-ci sandbox delete one', client, 'create', name='one')
        self.fails(64, '', client, 'policy', sandbox='one')


class Ends(Served):
    def begin(self, client):
        self.sandbox(client, 'one')
        self.sandbox(client, 'two')
        client.start('exec', sandbox='one', script=self.nap(1000) + ' & ' + self.nap(1001)).notes
        client.start('exec', sandbox='two', script=self.nap(1002))
        client.start('create', name='three', isolation=self.TIER)
        self.assertTrue(wait_until(lambda: len(self.napping(1000, 1001, 1002)) >= 3))
        self.own = {str(pid) for pid in processes(self.marker)}

    def nothing_is_left(self):
        self.assertTrue(wait_until(lambda: not processes(self.marker), BUSY_SECONDS), processes(self.marker))
        self.assertEqual(self.names(), [])
        self.assertEqual([group for group in self.cgroups() if group.rsplit('-', 1)[1] in self.own], [])

    def test_nothing_is_left_when_the_server_is_killed(self):
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
            with self.subTest(number):
                client = self.connect()
                self.begin(client)
                client.process.send_signal(number)
                self.nothing_is_left()

    def test_nothing_is_left_when_standard_input_ends(self):
        client = self.connect()
        self.begin(client)
        self.assertEqual(client.close(), 0)
        self.assertEqual(os.listdir(self.scratch + '/agentic-ci'), ['.lock'])  # At once.
        self.nothing_is_left()

    def test_the_end_of_standard_input_is_seen_whatever_waits(self):
        pause = threading.Event()
        for what, params in (('output', {'script': 'yes'}),
                             ('input', {'script': self.nap(1004), 'stdin': {'text': 'x' * 1500000, 'end': False}})):
            with self.subTest(what):
                pause.clear()
                client = self.connect()
                self.begin(client)
                call = client.start('exec', sandbox=self.sandbox(client, 'four'), **params)
                if what == 'output':
                    call.notes.put = lambda item, put=call.notes.put: (pause.wait(), put(item))
                time.sleep(2)
                client.process.stdin.close()
                try:
                    self.assertEqual(client.process.wait(BUSY_SECONDS), 0)
                finally:
                    pause.set()
                self.nothing_is_left()

    def test_nothing_is_left_when_the_client_is_killed(self):
        script = (f'import sys; sys.path.insert(0, {HERE!r}); from client import Client; c = Client({COMMAND!r})\n'
                  f'c.call("create", name="one", isolation={self.TIER!r}); c.call("create", name="two", isolation={self.TIER!r})\n'
                  f'c.start("exec", sandbox="one", script={self.nap(1003)!r}); print("ready", flush=True)\n'
                  'import time; time.sleep(1000)')
        for held in (False, True):
            with self.subTest(held):
                # Another process may hold the server's standard input open: the client is its parent all the same.
                with subprocess.Popen([sys.executable, '-c', script], env=self.env, cwd=self.work, stdout=subprocess.PIPE) as own:
                    self.assertEqual(own.stdout.readline(), b'ready\n')
                    self.assertTrue(wait_until(lambda: self.napping(1003)))
                    self.own = {str(pid) for pid in processes(self.marker)}
                    server = next(pid for pid in processes('serve\x00--stdio') if os.path.exists(f'/proc/{pid}/fd/0'))
                    keep = os.open(f'/proc/{server}/fd/0', os.O_RDWR) if held else -1
                    own.kill()
                self.nothing_is_left()
                if held:
                    os.close(keep)

    def test_an_unread_client_stops_the_sandbox_and_takes_no_memory(self):
        client = self.connect()
        self.sandbox(client, output='1GiB')
        pause = threading.Event()
        call = client.start('exec', sandbox='one', script='yes | head -c 40000000; echo', changes=False)
        # The reader of this client is held up by a lock that each of its notifications needs.
        call.notes.put = lambda item, put=call.notes.put: (pause.wait(), put(item))
        time.sleep(2)
        self.assertTrue(processes('head\x00-c\x0040000000'))
        self.assertLess(self.resident(client), 64 << 10)
        pause.set()
        result, streams = call.wait(BUSY_SECONDS)
        self.assertEqual(streams['stdout'], b'y\n' * 20000000 + b'\n')
        self.assertEqual(result['status'], 0)

    def test_a_window_holds_one_command_and_no_other(self):
        client = self.connect()
        self.sandbox(client, 'one')
        self.sandbox(client, 'two')
        size = 8 << 20
        call = client.start('exec', sandbox='one', script=f'head -c {size} /dev/zero', window=100000)
        got = 0
        while got < 100000:
            got += len(call.note()[1]['text'])
        self.assertEqual(client.run('two', 'echo goes on')[1]['stdout'], b'goes on\n')
        with self.assertRaises(queue.Empty):
            while True:
                got += len(call.note(1)[1]['text'])
        self.assertLess(got, 100000 + (128 << 10) + 1)
        call.ack(size)
        self.assertEqual(got + len(call.wait()[1]['stdout']), size)
        held = client.start('exec', sandbox='one', script='yes', window=1)
        held.note()
        held.cancel()
        self.assertEqual(held.wait()[0]['reason'], 'cancelled')
        # The result needs no room of its own, and no number is too large.
        self.assertEqual(client.run('one', 'printf 12345', window=5)[1]['stdout'], b'12345')
        wide = client.start('exec', sandbox='one', script='read x; printf 12345', stdin={'end': False}, window=(1 << 63) - 1)
        wide.ack((1 << 63) - 1)
        wide.input(b'go\n', end=True)
        self.assertEqual(wide.wait()[1]['stdout'], b'12345')

    def test_a_used_up_window_holds_output_and_nothing_else(self):
        client = self.connect()
        self.sandbox(client, 'one')
        self.sandbox(client, 'two')
        # More input waits than is kept, until the time limit. No `ack` comes.
        deaf = client.start('exec', sandbox='one', script='head -c 1000000 /dev/zero', window=1000, timeout='2s',
                            stdin={'text': 'i' * 1500000, 'end': False})
        self.assertEqual(client.run('two', 'echo goes on', BUSY_SECONDS)[1]['stdout'], b'goes on\n')
        self.assertEqual(deaf.wait()[0]['reason'], 'timeout')
        # What the command takes of its input lets more of it be read.
        reader = client.start('exec', sandbox='one', script='yes | head -c 500000; wc -c', window=600000,
                              stdin={'text': 'i' * 1500000, 'end': False})
        reader.input(end=True)
        self.assertEqual(reader.wait()[1]['stdout'].split(b'\n')[-2], b'1500000')
        held = client.start('exec', sandbox='one', script='yes', window=1000)
        held.note()
        time.sleep(1)
        held.cancel()
        self.assertEqual(held.wait(BUSY_SECONDS)[0]['reason'], 'cancelled')
        left = client.start('exec', sandbox='one', script='yes', window=1000)
        left.note()
        client.call('delete', BUSY_SECONDS, sandbox='one')
        with self.assertRaises(Fault):
            left.wait()

    def test_as_many_requests_as_promised_go_on_at_once(self):
        client = self.connect()
        self.sandbox(client)
        first = client.start('exec', sandbox='one', script='echo runs; read x', stdin={'end': False})
        first.note()
        more = [client.start('exec', sandbox='one', script=f'echo {i}', changes=False) for i in range(200)]
        more.pop().cancel()
        began = time.monotonic()
        self.assertEqual(len(client.call('list')['sandboxes']), 1)
        self.assertLess(time.monotonic() - began, 10)
        first.input(end=True)
        self.assertEqual([call.wait(BUSY_SECONDS)[1]['stdout'] for call in more], [b'%d\n' % i for i in range(199)])

    def test_no_line_is_longer_than_it_may_be(self):
        client = self.connect()
        self.sandbox(client)
        script = 'head -c 4000000 /dev/zero | tr "\\0" "\\1"'
        result = client.call('exec', BUSY_SECONDS, sandbox='one', script=script, collect=True)
        self.assertEqual(len(result['stdout']) + result['truncated_stdout'], 4000000)
        self.assertLess(client.longest, 16 << 20)
        client.run('one', 'head -c 9000000 /dev/urandom | base64 > big; tr "\\0" "\\33" </dev/zero | head -c 3000000 > esc')
        result, streams = client.start('diff', sandbox='one').wait(BUSY_SECONDS)
        self.assertEqual({one['path'] for one in result['changes']}, {'big', 'esc'})
        self.assertNotIn('patch', result)
        self.assertIn(b'+++ b/big', streams['data'])
        self.assertGreater(len(streams['data']), 12000000)
        self.assertLess(client.longest, 16 << 20)

    def test_unread_diffs_take_no_memory(self):
        client = self.connect()
        self.sandbox(client)
        client.run('one', 'head -c 9000000 /dev/urandom | base64 > big')
        pause = threading.Event()
        first = client.start('diff', sandbox='one')
        first.notes.put = lambda item, put=first.notes.put: (pause.wait(), put(item))
        diffs = [first, *(client.start('diff', sandbox='one') for _ in range(5))]
        time.sleep(4)
        self.assertLess(self.resident(client), 64 << 10)
        pause.set()
        sizes = {len(diff.wait(BUSY_SECONDS)[1]['data']) for diff in diffs}
        self.assertEqual(len(sizes), 1)
        self.assertGreater(sizes.pop(), 12000000)

    def resident(self, client):
        """KiB of the server."""
        status = read(f'/proc/{client.process.pid}/status')
        return int(next(line for line in status.splitlines() if line.startswith('VmRSS')).split()[1])


class Snapshots(Served):
    def test_a_second_sandbox_begins_where_a_snapshot_was_taken(self):
        client = self.connect()
        self.sandbox(client)
        client.run('one', 'echo kept > new; cd dir; v=1; echo home > ~/file')
        layout = self.base + '/layout'
        taken = client.call('snapshot', sandbox='one', output=layout)
        client.run('one', 'rm ../new; echo later > ../a.txt')
        self.sandbox(client, 'two', snapshot='oci:' + layout)
        shown = 'pwd; echo $v; cat ~/file ../new ../a.txt'
        expected = f'{self.work}/dir\n1\nhome\nkept\nalpha\n'
        self.assertEqual(client.run('two', shown)[1]['stdout'].decode(), expected)
        restored = client.call('restore', sandbox='one', snapshot='oci:' + layout)
        self.assertEqual((restored['digest'], restored['cwd']), (taken['digest'], self.work + '/dir'))
        self.assertEqual(client.run('one', shown)[1]['stdout'].decode(), expected)
        client.call('reset', sandbox='one')
        self.assertEqual(client.run('one', 'ls')[1]['stdout'], b'a.txt\nb.txt\ndir\n')
        self.fails(66, '', client, 'create', name='three', isolation=self.TIER, snapshot='oci:' + self.base + '/none')
        self.assertTrue(wait_until(lambda: self.names() == ['one', 'two']))


class Requests(Served):
    def test_requests_are_told_as_they_are_judged_and_a_policy_is_read_again(self):
        policy = pathlib.Path(self.base, 'policy.yml')
        policy.write_text('defaults: none\n')
        client = self.connect()
        self.sandbox(client, policy=str(policy))
        events = client.start('events', sandbox='one')
        client.call('list')
        script = 'curl -s -m 5 -o /dev/null -w "%{http_code}" http://told.invalid/path'
        result, _ = client.run('one', script)
        self.assertEqual([(one['host'], one['port']) for one in result['refused']], [('told.invalid', 80)])
        allow = result['refused'][0]['allow']
        self.assertIn('told.invalid', allow)
        method, message = events.note()
        self.assertEqual(method, 'event')
        self.assertIn('told.invalid', json.dumps(message['event']))
        policy.write_text(f'defaults: none\nendpoints:\n  - "{allow}"\n')
        client.call('policy', sandbox='one')
        self.assertTrue(wait_until(lambda: client.run('one', script)[0]['refused'] == [], 20))
        events.cancel()
        self.assertEqual(events.wait()[0], {})
        client.call('delete', sandbox='one')

    def test_a_policy_is_not_read_again_before_the_sandbox_is_there(self):
        policy = pathlib.Path(self.base, 'policy.yml')
        policy.write_text('defaults: none\n')
        client = self.connect()
        for turn in range(5):
            making = client.start('create', name=f'made{turn}', isolation=self.TIER, policy=str(policy))
            time.sleep(0.03 * turn)
            try:
                client.call('policy', sandbox=f'made{turn}')
            except Fault as fault:
                self.assertEqual(fault.code, 75, fault)
            making.wait(BUSY_SECONDS)
            client.call('policy', sandbox=f'made{turn}')
            # A reset has another process read it.
            reset = client.start('reset', sandbox=f'made{turn}')
            for _ in range(20):
                client.call('policy', sandbox=f'made{turn}')
            reset.wait(BUSY_SECONDS)
            self.assertEqual(client.run(f'made{turn}', 'echo lives')[1]['stdout'], b'lives\n')
            client.call('delete', sandbox=f'made{turn}')

    def test_the_list_of_refused_requests_has_a_bound_and_says_so(self):
        client = self.connect()
        self.sandbox(client)
        ask = 'curl -s -m 5 -o /dev/null "http://told.invalid/%s"'
        result, _ = client.run('one', ask % 'one')
        self.assertEqual((len(result['refused']), result['refused_complete']), (1, True))
        result, _ = client.run('one', ask % '[1-4000]', BUSY_SECONDS)
        self.assertFalse(result['refused_complete'])
        self.assertGreater(len(result['refused']), 100)

    def test_the_example_of_the_reference_is_what_happens(self):
        client = subprocess.Popen(COMMAND, env=self.env, cwd=self.work, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        lines = [line.strip() for line in pathlib.Path(HERE, 'serve.md').read_text().splitlines()]
        told = [line for line in lines if line.startswith(('--> ', '<-- '))]
        self.assertGreater(len(told), 6)
        for line in told:
            message = json.loads(line[4:])
            if line.startswith('--> '):
                if message['method'] == 'create':
                    message['params']['isolation'] = self.TIER
                client.stdin.write(json.dumps(message).encode() + b'\n')
                client.stdin.flush()
            else:
                self.contains(json.loads(client.stdout.readline()), message)
        client.stdin.close()
        self.assertEqual(client.wait(60), 0)
        client.stdout.close()

    def contains(self, actual, expected):
        """Whether it is that, but for members that the page leaves out."""
        if not isinstance(expected, dict):
            return self.assertEqual(actual, expected)
        for key, value in expected.items():
            self.assertIn(key, actual)
            self.contains(actual[key], value)
        return None

    def test_the_schema_has_the_methods_that_there_are(self):
        client = self.connect()
        schema = json.loads(pathlib.Path(HERE, 'serve.schema.json').read_text())
        names = [one['properties']['method']['const'] for one in schema['oneOf']]
        self.assertEqual(names, client.server['methods'])
        create = schema['oneOf'][names.index('create')]['properties']['params']
        self.assertIn('policy', create['properties'])
        self.assertNotIn('pool', create['properties'])
        client.close()
