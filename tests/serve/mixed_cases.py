# SPDX-License-Identifier: Apache-2.0
"""Random orders of requests, ends and kills. AGENTIC_CI_SEED=N plays the game of that seed alone."""
import os
import random
import signal
import subprocess

from client import Fault
from harness import BUSY_SECONDS, processes, wait_until
from serve_cases import Served

GAMES = 40
TURNS = 12
LONG_GAMES = 10  # Of so many steps,
STEPS = 1000     # most of which wait for nothing.


class Mixed(Served):
    def test_whatever_the_order_each_request_is_answered_and_nothing_is_left(self):
        chosen = os.environ.get('AGENTIC_CI_SEED')
        for seed in [int(chosen)] if chosen else range(GAMES):
            with self.subTest(seed):
                self.play(random.Random(seed))

    def test_a_kill_after_any_message_leaves_nothing(self):
        messages = [
            ('create', {'name': 'one', 'isolation': self.TIER}), ('create', {'name': 'two', 'isolation': self.TIER}),
            ('exec', {'sandbox': 'one', 'script': 'cat; sleep 5', 'stdin': {'text': 'x' * 100000, 'end': False}}),
            ('put', {'sandbox': 'two', 'target': 'big', 'text': 'x' * 1000000}),
            ('exec', {'sandbox': 'two', 'script': 'yes'}), ('get', {'sandbox': 'two', 'source': 'big'}),
            ('events', {'sandbox': 'one'}), ('diff', {'sandbox': 'one'}), ('reset', {'sandbox': 'two'}),
            ('delete', {'sandbox': 'one'}), ('list', {})]
        for last in range(len(messages)):
            with self.subTest(messages[last][0], last=last):
                client = self.connect()
                for method, params in messages[:last + 1]:
                    call = client.start(method, **params)
                    if method == 'create' and last > 1:
                        call.wait(BUSY_SECONDS)
                client.process.kill()
                client.close()
                self.assertTrue(wait_until(lambda: not processes(self.marker), BUSY_SECONDS), processes(self.marker))
                self.assertEqual(self.names(), [])

    def test_ten_thousand_steps_in_any_order(self):
        chosen = os.environ.get('AGENTIC_CI_SEED')
        for seed in [int(chosen)] if chosen else range(LONG_GAMES):
            with self.subTest(seed):
                LongGame(self, random.Random(seed)).play()
                self.assertTrue(wait_until(lambda: not processes(self.marker), BUSY_SECONDS), processes(self.marker))
                self.assertEqual(self.names(), [])

    def play(self, chance):
        client = self.connect()
        try:
            self.play_with(client, chance)
        finally:
            client.close()

    def play_with(self, client, chance):
        calls, names = [], []
        for _ in range(TURNS):
            calls.append(self.move(client, chance, names, calls))
        if chance.random() < 0.5:
            # The server answers all.
            for call in filter(None, calls):
                try:
                    call.wait(BUSY_SECONDS)
                except Fault as fault:
                    self.assertGreater(fault.code, 0, fault)
            self.assertEqual(client.run(names[0], 'echo $((6*7))')[1]['stdout'] if names else b'42\n', b'42\n')
            self.assertEqual(client.close(), 0)
        else:
            client.process.send_signal(chance.choice([signal.SIGKILL, signal.SIGTERM]))
        self.assertTrue(wait_until(lambda: not processes(self.marker), BUSY_SECONDS), processes(self.marker))
        self.assertEqual(self.names(), [])

    def move(self, client, chance, names, calls):
        what = chance.randrange(12)
        if not names or (what == 0 and len(names) < 2):
            name = f'box{len(calls)}'  # One that ends keeps its name until it has.
            names.append(name)
            call = client.start('create', name=name, isolation=self.TIER)
            if chance.random() < 0.7:
                call.wait(BUSY_SECONDS)
            elif len(names) > 1:
                call.cancel()
                names.pop()
            else:
                call.wait(BUSY_SECONDS)
            return call
        name = chance.choice(names)
        if what < 5:
            script = chance.choice(['echo a', 'sleep 0.05', 'cat', 'yes | head -c 300000', 'exit 3', 'kill -9 $$',
                                    'sleep 5 & echo b', 'exec true'])
            options = {'stdin': {'text': 'x' * chance.choice([1, 200000])}} if chance.random() < 0.4 else {}
            call = client.start('exec', sandbox=name, script=script, timeout='20s', **options)
            if chance.random() < 0.3:
                call.cancel()
            return call
        if what < 7 and calls:
            other = chance.choice(calls)
            if other is not None:
                other.cancel()
            return None
        if what == 7:
            return client.start('reset', sandbox=name)
        if what == 8:
            return client.start('put', sandbox=name, target='made', text='x' * 1000)
        if what == 9:
            return client.start('get', sandbox=name, source='a.txt')
        if what == 10:
            return client.start('diff', sandbox=name)
        return client.start('list')


class LongGame:
    """One client, two sandboxes, and requests that overlap: each is answered once, by what it asked for."""
    MOST = 100  # Requests that go on.

    def __init__(self, case, chance):
        self.case, self.chance = case, chance
        self.client = case.connect(stderr=subprocess.DEVNULL)  # Each `ack` without a window is a warning.
        self.names = [case.sandbox(self.client, name) for name in ('one', 'two')]
        self.going = []  # (call, check of its result and streams), the oldest first.
        self.fed = []    # [call, what it was given so far]: they wait for more.
        self.made = 0
        self.answered = 0

    def play(self):
        moves = [self.echo] * 30 + [self.large] * 4 + [self.feed] * 8 + [self.more] * 20 + [self.end] * 9
        moves += [self.cancel] * 12 + [self.ack] * 10 + [self.fails] * 5 + [self.list] * 1
        for step in range(STEPS):
            move = self.renew if step % 500 == 250 else self.chance.choice(moves)
            move()
            if len(self.going) > self.MOST:
                self.settle(self.MOST // 2)
        if self.chance.random() < 0.3:
            self.client.process.send_signal(self.chance.choice([signal.SIGKILL, signal.SIGTERM]))
        else:
            self.settle(0)
            self.case.assertGreater(self.answered, STEPS // 4)
            self.case.assertEqual(self.client.strays, 0)
            for name in self.names:
                self.case.assertEqual(self.client.run(name, 'echo $((6*7))')[1]['stdout'], b'42\n')
        self.client.close()

    def settle(self, rest):
        """Waits for all but so many of the oldest."""
        while self.fed:
            self.end()
        while len(self.going) > rest:
            call, check = self.going.pop(0)
            try:
                result, streams = call.wait(BUSY_SECONDS)
            except Fault as fault:
                # Cancelled while it waited, or of a sandbox that was deleted.
                self.case.assertIn(fault.code, (64, 66, 74), fault)
            else:
                check(result, streams)
            self.answered += 1

    def run(self, script, expected, **params):
        def check(result, streams):
            self.case.assertIn(result['reason'], ('exit', 'cancelled'), result)
            got, wanted = streams['stdout'], expected()
            if result['reason'] == 'exit':
                self.case.assertEqual((result['status'], got), (0, wanted))
            else:
                self.case.assertTrue(wanted.startswith(got), (wanted, got))
        call = self.client.start('exec', sandbox=self.chance.choice(self.names), script=script, **params)
        self.going.append((call, check))
        return call

    def echo(self):
        self.made += 1
        token = b'token-%d\n' % self.made
        self.run('echo ' + token.decode(), lambda: token, changes=self.chance.random() < 0.5)

    def large(self):
        size = self.chance.randrange(200000)
        call = self.run(f'head -c {size} /dev/zero', lambda: b'\0' * size, window=self.chance.randrange(100000))
        call.ack(size)

    def feed(self):
        given = [b'']
        call = self.run('cat', lambda: given[0], stdin={'end': False})
        self.fed.append((call, given))

    def more(self):
        if self.fed:
            call, given = self.chance.choice(self.fed)
            piece = b'%d ' % self.made * self.chance.choice([1, 1, 2000])
            given[0] += piece
            call.input(piece)

    def end(self):
        if self.fed:
            self.fed.pop(self.chance.randrange(len(self.fed)))[0].input(end=True)

    def cancel(self):
        if self.going:
            self.chance.choice(self.going)[0].cancel()

    def ack(self):
        if self.going:
            self.chance.choice(self.going)[0].ack(self.chance.choice([0, 1, 100000]))

    def fails(self):
        """A request that is refused at once, and what is about none."""
        self.client.notify('cancel', request=10 ** 9 + self.chance.randrange(10))
        call = self.client.start('exec', sandbox='none', script='true')
        self.going.append((call, lambda result, streams: self.case.fail(result)))

    def list(self):
        def check(result, streams):
            self.case.assertLessEqual({one['name'] for one in result['sandboxes']}, {'one', 'two'})
        self.going.append((self.client.start('list'), check))

    def renew(self):
        """Deletes a sandbox with all that waits for it, and makes it again."""
        name = self.chance.choice(self.names)
        self.client.call('delete', BUSY_SECONDS, sandbox=name)
        self.case.sandbox(self.client, name)
