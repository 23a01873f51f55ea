# SPDX-License-Identifier: Apache-2.0
"""What `agentic-ci mcp` gives an agent, and what it keeps from it."""
import json
import os
import pathlib
import queue
import shutil
import subprocess
import threading
import unittest

from harness import BIN, BUSY_SECONDS, processes, read, wait_until
from serve_cases import HERE, Served

MODERN = {'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {}}
MODULES = os.environ.get('SERVE_TEST_MODULES', '')


class Speaker:
    """A client of MCP, line by line."""

    def __init__(self, *options, modern=False, **popen):
        self.process = subprocess.Popen([BIN, 'mcp', *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, **popen)
        self.lines, self.last, self.modern = queue.Queue(), 0, modern
        self.reader = threading.Thread(target=lambda: [self.lines.put(json.loads(line)) for line in self.process.stdout])
        self.reader.start()
        if not modern:
            self.ask('initialize', protocolVersion='2025-11-25', capabilities={}, clientInfo={'name': 't', 'version': '1'})

    def send(self, method, params, **members):
        message = {'jsonrpc': '2.0', 'method': method, 'params': params, **members}
        self.process.stdin.write(json.dumps(message).encode() + b'\n')
        self.process.stdin.flush()

    def start(self, method, **params):
        self.last += 1
        if self.modern:
            params['_meta'] = {**MODERN, **params.get('_meta', {})}
        self.send(method, params, id=self.last)
        return self.last

    def ask(self, method, **params):
        number = self.start(method, **params)
        answer = self.lines.get(timeout=BUSY_SECONDS)
        if answer.get('id') != number:
            raise AssertionError(answer)
        return answer

    def call(self, name, **arguments):
        """What the tool tells, or the text of its error."""
        result = self.ask('tools/call', name=name, arguments=arguments)['result']
        return result['content'][0]['text'] if result['isError'] else result['structuredContent']

    def close(self):
        self.process.stdin.close()
        status = self.process.wait(60)
        self.reader.join(10)
        self.process.stdout.close()
        return status


class Models(Served):
    def speak(self, *options, **more):
        speaker = Speaker('--isolation', self.TIER, *options, env=self.env, cwd=self.work, **more)
        self.clients.append(speaker)
        return speaker

    def test_a_model_works_in_a_sandbox_and_the_checkout_stays(self):
        for modern in (False, True):
            with self.subTest(modern):
                speaker = self.speak(modern=modern)
                first = speaker.call('run_command', command='echo changed > a.txt; rm b.txt; cd dir')
                self.assertTrue(first['directory'].endswith('/dir'))
                self.assertEqual({one['path'] for one in first['changes']}, {'a.txt', 'b.txt'})
                self.assertEqual(speaker.call('run_command', command='pwd', stdin='')['directory'], first['directory'])
                self.assertIn('+changed', speaker.call('diff')['patch'])
                self.assertEqual((read(self.work + '/a.txt'), read(self.work + '/b.txt')), ('alpha\n', 'beta\n'))
                answer = speaker.ask('tools/list')['result']
                self.assertEqual('resultType' in answer, modern)
                self.assertEqual(speaker.close(), 0)
                self.assertEqual(self.names(), [])
        speaker = self.speak('--apply')
        speaker.call('run_command', command='echo applied > a.txt')
        self.assertEqual(speaker.close(), 0)
        self.assertEqual(read(self.work + '/a.txt'), 'applied\n')

    def test_policy_limits_and_sandbox_are_the_users(self):
        self.create(name='other')
        speaker = self.speak('--timeout', '2s')
        self.assertEqual(speaker.call('run_command', command='sleep 1000', timeout=900)['reason'], 'timeout')
        self.assertEqual(speaker.call('run_command', command='sleep 1000', timeout=1)['reason'], 'timeout')
        for arguments in ({'policy': 'x'}, {'memory': '8GiB'}, {'env': {'A': 'b'}}):
            self.assertIn('there is no member', speaker.call('run_command', command='true', **arguments))
        self.assertIn("'other' has ended", speaker.call('run_command', command='true', sandbox='other'))
        refused = speaker.call('run_command', command='curl -s -m 5 http://refused.invalid/')['refused']
        self.assertEqual([one['host'] for one in refused], ['refused.invalid'])
        self.assertEqual(self.call('sandbox', 'delete', 'other').returncode, 0)

    def test_a_sandbox_of_the_users_is_used_and_left(self):
        self.create(name='kept')
        for expected in ('', 'here\n'):
            speaker = self.speak('--sandbox', 'kept')
            self.assertEqual(speaker.call('run_command', command='cat note', sandbox='kept')['output'].replace(
                'cat: note: No such file or directory\n', ''), expected)
            speaker.call('write_file', path='note', text='here\n')
            self.assertEqual(speaker.close(), 0)
        self.assertEqual(self.names(), ['kept'])
        self.assertEqual(self.call('mcp', '--sandbox', 'none').returncode, 66)

    def test_a_handle_of_an_earlier_server_is_told_as_ended(self):
        first = self.speak()
        handle = first.call('run_command', command='true')['sandbox']
        first.close()
        second = self.speak()
        self.assertIn('has ended', second.call('run_command', command='true', sandbox=handle))
        now = second.call('run_command', command='true')['sandbox']
        self.assertNotEqual(now, handle)
        self.assertEqual(self.call('sandbox', 'delete', now).returncode, 0)
        self.assertTrue(wait_until(lambda: 'has ended' in second.call('diff', sandbox=now)))
        self.assertNotEqual(second.call('diff')['sandbox'], now)

    def test_what_is_cancelled_is_not_answered(self):
        for modern in (False, True):
            speaker = self.speak(modern=modern)
            speaker.call('run_command', command='true')
            number = speaker.start('tools/call', name='run_command', arguments={'command': self.nap(1000)})
            self.assertTrue(wait_until(lambda: self.napping(1000)))
            speaker.send('notifications/cancelled', {'requestId': number, 'reason': 'x'})
            self.assertTrue(wait_until(lambda: not self.napping(1000)))
            self.assertEqual(speaker.call('run_command', command='echo next')['output'], 'next\n')

    def test_long_output_keeps_its_beginning_and_its_end(self):
        speaker = self.speak()
        told = speaker.call('run_command', command='echo begins; head -c 300000 /dev/zero | tr "\\0" ä; echo ends')
        self.assertTrue(told['output'].startswith('begins\n') and told['output'].endswith('ends\n'))
        self.assertLess(len(told['output']), 30000)
        self.assertGreater(told['omitted_bytes'], 270000)
        speaker.call('write_file', path='long', text='0123456789' * 10000)
        first = speaker.call('read_file', path='long')
        second = speaker.call('read_file', path='long', offset=len(first['text']))
        self.assertEqual(first['omitted_bytes'], 100000 - len(first['text']))
        self.assertEqual((first['text'] + second['text'])[:40000], ('0123456789' * 4000))
        speaker.call('write_file', path='bytes', base64='AP8=', executable=True)
        self.assertEqual(speaker.call('read_file', path='bytes')['base64'], 'AP8=')

    def test_progress_is_told_to_those_who_ask(self):
        speaker = self.speak()
        speaker.call('run_command', command='true')
        number = speaker.start('tools/call', name='run_command', arguments={'command': 'sleep 11'}, _meta={'progressToken': 'p'})
        note = speaker.lines.get(timeout=BUSY_SECONDS)
        self.assertEqual((note['method'], note['params']), ('notifications/progress', {'progressToken': 'p', 'progress': 1}))
        self.assertEqual(speaker.lines.get(timeout=BUSY_SECONDS)['id'], number)

    def test_revisions_are_told_apart(self):
        speaker = self.speak(modern=True)
        found = speaker.ask('server/discover')['result']
        self.assertEqual((found['supportedVersions'][0], found['resultType']), ('2026-07-28', 'complete'))
        self.assertEqual(speaker.ask('ping')['error']['code'], -32601)
        meta = {'io.modelcontextprotocol/protocolVersion': '2031-01-01'}
        error = speaker.ask('tools/list', _meta=meta)['error']
        self.assertEqual((error['code'], error['data']['requested']), (-32022, '2031-01-01'))
        speaker.modern = False
        self.assertEqual(speaker.ask('tools/list')['error']['code'], -32602)
        self.assertEqual(speaker.ask('server/discover')['error']['code'], -32602)
        opened = speaker.ask('initialize', protocolVersion='2024-11-05', capabilities={}, clientInfo={})['result']
        self.assertEqual(opened['protocolVersion'], '2024-11-05')
        self.assertEqual(speaker.ask('ping')['result'], {})
        self.assertEqual(speaker.ask('initialize', protocolVersion='9')['result']['protocolVersion'], '2025-11-25')

    def test_a_sandbox_that_cannot_be_created_is_a_tools_error(self):
        speaker = self.speak('--policy', '/nonexistent')
        for _ in range(2):
            self.assertIn('/nonexistent', speaker.call('run_command', command='true'))
        self.assertEqual(self.call('mcp', '--timeout', 'x').returncode, 64)

    @unittest.skipUnless(MODULES, 'npm: the public clients cannot be had')
    def test_the_public_clients_of_both_eras_work(self):
        node = shutil.which('node')
        for version in ('1', 'legacy', 'auto', '2026-07-28'):
            with self.subTest(version):
                done = subprocess.run([node, HERE + '/mcp_client.mjs', MODULES, version, BIN], env=self.env, cwd=self.work,
                                      capture_output=True, text=True, timeout=BUSY_SECONDS)
                self.assertEqual((done.returncode, done.stdout), (0, 'done\n'), done.stderr)
        self.assertFalse(processes(self.marker))
        self.assertTrue(pathlib.Path(self.work, 'a.txt').exists())
