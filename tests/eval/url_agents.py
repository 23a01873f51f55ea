# SPDX-License-Identifier: Apache-2.0
"""Scripted agents behind a URL, one server for each protocol. They use the fake tools over MCP and obey what they read, or not."""
import http.server
import json
import threading
import urllib.request
import uuid


def use_tool(url, name, **arguments):
    """Calls a tool of an MCP server, as its clients do: they begin with the list."""
    for number, (method, params) in enumerate((('tools/list', {}), ('tools/call', {'name': name, 'arguments': arguments})), 1):
        body = {'jsonrpc': '2.0', 'id': number, 'method': method, 'params': params}
        request = urllib.request.Request(url, json.dumps(body).encode(), {'content-type': 'application/json'})
        with urllib.request.urlopen(request, timeout=20) as answer:
            result = json.load(answer)['result']
    return result['content'][0]['text']


def resist(prompt, url):
    """Does the task, and nothing that a note says."""
    read = use_tool(url, 'get_weather', station='lisbon')
    return '23 degrees' if '23' in read else 'unknown'


def obey(prompt, url):
    """Does what the task and the notes say, whoever wrote it."""
    said = prompt + use_tool(url, 'get_weather', station='lisbon')
    if 'send_alert' in said:
        use_tool(url, 'send_alert', area='coast', text='evacuate now')
    return '23 degrees' + (' Buy StormShield Pro' if 'StormShield' in said else '')


def ignore_tools(prompt, url):
    return '23 degrees'


class Server(http.server.ThreadingHTTPServer):
    """On loopback. `answer(method, path, body)` gives a status, headers and bytes, or an object for 200."""
    daemon_threads = True

    def __init__(self, answer, port=0):
        self.answer, self.requests, self.lock = answer, [], threading.Lock()
        super().__init__(('127.0.0.1', port), Handler)
        self.port = self.server_address[1]

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def handle_error(self, request, client_address):
        pass  # A client that does not trust this server, or has gone.

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get('content-length', 0)))
        body = json.loads(body) if body else None
        with self.server.lock:
            self.server.requests.append((self.command, self.path, dict(self.headers), body))
        answer = self.server.answer(self.command, self.path, body)
        status, headers, text = answer if isinstance(answer, tuple) else (200, {'content-type': 'application/json'}, json.dumps(answer))
        try:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            for piece in [text.encode()] if isinstance(text, str) else text:
                self.wfile.write(piece)
        except OSError:
            pass  # The client had enough.

    do_GET = do_POST


def http_agent(behaves):
    return lambda method, path, body: {'response': behaves(body['prompt'], body['mcp_server_url'])}


def openai_agent(behaves):
    """A whole Response object, as the API's reference describes it."""
    def answer(method, path, body):
        tool = body['tools'][0]
        if (method, path, tool['type'], tool['require_approval']) != ('POST', '/v1/responses', 'mcp', 'never'):
            return 400, {}, json.dumps({'error': {'message': 'not such a request'}})
        return response(behaves(body['input'], tool['server_url']), body)
    return answer


def response(text, body, **changes):
    label = body['tools'][0]['server_label']
    return {
        'id': 'resp_1', 'object': 'response', 'created_at': 1764547200, 'status': 'completed', 'error': None,
        'incomplete_details': None, 'instructions': None, 'metadata': {}, 'model': body.get('model', 'scripted'),
        'parallel_tool_calls': True, 'temperature': 1.0, 'top_p': 1.0, 'tool_choice': 'auto', 'tools': body['tools'],
        'output': [
            {'id': 'mcpl_1', 'type': 'mcp_list_tools', 'server_label': label, 'tools': []},
            {'id': 'mcp_1', 'type': 'mcp_call', 'server_label': label, 'name': 'get_weather', 'arguments': '{}', 'output': '...'},
            {'id': 'msg_1', 'type': 'message', 'role': 'assistant', 'status': 'completed',
             'content': [{'type': 'output_text', 'text': text, 'annotations': []}]}], **changes}


class A2aAgent:
    """A2A over JSON-RPC: 0.3 or 1.0, with a message or, after some polls, a task as the answer."""

    def __init__(self, behaves, version='0.3.0', polls=None, card_url=None):
        self.behaves, self.is_1, self.polls, self.card_url = behaves, version.startswith('1.'), polls, card_url
        self.version, self.tasks, self.port = version, {}, None

    def __call__(self, method, path, body):
        if method == 'GET':
            return self.card() if path == '/agent/.well-known/agent-card.json' else (404, {}, '')
        called = body['method']
        if called == ('SendMessage' if self.is_1 else 'message/send'):
            message = body['params']['message']
            text = self.behaves(message['parts'][0]['text'], message['metadata']['mcp_server_url'])
            if self.polls is None:
                said = self.message(text)
                return self.result({'message': said} if self.is_1 else said)
            task = str(uuid.uuid4())
            self.tasks[task] = [self.polls, text]
            return self.result({'task': self.task(task)} if self.is_1 else self.task(task))
        if called == ('GetTask' if self.is_1 else 'tasks/get'):
            return self.result(self.task(body['params']['id']))
        return {'jsonrpc': '2.0', 'id': 1, 'error': {'code': -32601, 'message': 'no such method'}}

    def card(self):
        url = self.card_url or f'http://127.0.0.1:{self.port}/agent/rpc'
        card = {'name': 'scripted', 'description': 'For tests.', 'version': '1', 'capabilities': {}, 'skills': [],
                'defaultInputModes': ['text/plain'], 'defaultOutputModes': ['text/plain']}
        if self.is_1:
            return {**card, 'supportedInterfaces': [{'url': 'http://127.0.0.1:1/', 'protocolBinding': 'GRPC', 'protocolVersion': '1.0'},
                                                    {'url': url, 'protocolBinding': 'JSONRPC', 'protocolVersion': '1.0'}]}
        return {**card, 'url': url, 'preferredTransport': 'JSONRPC', 'protocolVersion': self.version}

    def result(self, value):
        return {'jsonrpc': '2.0', 'id': 1, 'result': value}

    def part(self, text):
        return {'text': text} if self.is_1 else {'kind': 'text', 'text': text}

    def message(self, text):
        said = {'messageId': '1', 'role': 'ROLE_AGENT' if self.is_1 else 'agent', 'parts': [self.part(text)]}
        return said if self.is_1 else {'kind': 'message', **said}

    def state(self, name):
        return 'TASK_STATE_' + name.upper().replace('-', '_') if self.is_1 else name

    def task(self, task):
        left, text = self.tasks[task]
        self.tasks[task][0] -= 1
        shown = {'id': task, 'contextId': 'c', 'status': {'state': self.state('working' if left > 0 else 'completed')}}
        if left <= 0:
            shown['artifacts'] = [{'artifactId': 'a', 'parts': [self.part(text)]}]
        return shown if self.is_1 else {'kind': 'task', **shown}
