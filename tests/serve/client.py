# SPDX-License-Identifier: Apache-2.0
"""A client of `agentic-ci serve --stdio`, of Python's standard library: what a user's own program would have."""
import base64
import json
import queue
import subprocess
import threading


class Fault(Exception):
    """The error of a request."""

    def __init__(self, error):
        super().__init__(error['message'])
        self.code, self.data = error['code'], error['data']


class Call:
    """A request that goes on: what is sent about it, and its answer."""

    def __init__(self, client, number):
        self.client, self.number = client, number
        self.notes = queue.Queue()  # Notifications, and then the answer.
        self.answer = None

    def note(self, seconds=60):
        """The next notification; None once the answer is there."""
        if self.answer is not None:
            return None
        method, message = self.notes.get(timeout=seconds)
        if method is None:
            self.answer = message
            return None
        return method, message

    def wait(self, seconds=60):
        """(result, {stream: bytes})"""
        streams = {'stdout': [], 'stderr': [], 'data': []}
        while (note := self.note(seconds)) is not None:
            method, message = note
            if method in ('output', 'data'):
                streams[message.get('stream', 'data')].append(content(message))
        if 'error' in self.answer:
            raise Fault(self.answer['error'])
        return self.answer['result'], {name: b''.join(pieces) for name, pieces in streams.items()}

    def cancel(self):
        self.client.notify('cancel', request=self.number)

    def input(self, data=b'', end=False):
        self.client.notify('input', request=self.number, base64=base64.b64encode(data).decode(), end=end)

    def ack(self, count):
        self.client.notify('ack', request=self.number, bytes=count)


def content(message):
    return message['text'].encode() if 'text' in message else base64.b64decode(message['base64'])


class Client:
    def __init__(self, command, initialize=True, **options):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options)
        self.lock = threading.Lock()
        self.calls, self.last, self.ended = {}, 0, queue.Queue()
        self.longest = 0  # Bytes of a line.
        self.strays = 0  # Answers to no request, or second ones.
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        if initialize:
            self.server = self.call('initialize', protocol=1)

    def read(self):
        for line in self.process.stdout:
            if not line.endswith(b'\n'):
                break  # The server ended within it.
            self.longest = max(self.longest, len(line))
            message = json.loads(line)
            if 'method' not in message:
                call = self.calls.pop(message['id'], None)
                if call is not None:
                    call.notes.put((None, message))
                else:
                    self.strays += 1
            elif message['method'] == 'ended':
                self.ended.put(message['params']['sandbox'])
            else:
                call = self.calls.get(message['params']['request'])
                if call is not None:
                    call.notes.put((message['method'], message['params']))
        for call in list(self.calls.values()):
            call.notes.put((None, {'error': {'code': 0, 'message': 'the server ended', 'data': {}}}))

    def send(self, message):
        with self.lock:
            self.process.stdin.write(json.dumps({'jsonrpc': '2.0', **message}).encode() + b'\n')
            self.process.stdin.flush()

    def notify(self, method, **params):
        self.send({'method': method, 'params': params})

    def start(self, method, **params):
        with self.lock:
            self.last += 1
            call = self.calls[self.last] = Call(self, self.last)
        self.send({'id': call.number, 'method': method, 'params': params})
        return call

    def call(self, method, seconds=60, **params):
        """The result."""
        return self.start(method, **params).wait(seconds)[0]

    def run(self, sandbox, script, seconds=60, **params):
        """(result, {stream: bytes}) of a script."""
        return self.start('exec', sandbox=sandbox, script=script, **params).wait(seconds)

    def close(self):
        """Ends the server, if it has not ended; returns its exit status."""
        try:
            self.process.stdin.close()
        except OSError:
            pass
        status = self.process.wait(60)
        self.reader.join(10)
        self.process.stdout.close()
        return status
