# SPDX-License-Identifier: Apache-2.0
"""Random orders of requests, ends and kills. AGENTIC_CI_SEED=N plays the game of that seed alone."""
import os
import random
import signal

from client import Fault
from harness import BUSY_SECONDS, processes, wait_until
from serve_cases import Served

GAMES = 40
TURNS = 12


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
