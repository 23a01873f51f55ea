#!/usr/bin/env python3
"""AgentDojo with an agent in agentic-ci's sandbox: its tasks, tools, attacks and verdicts, and what the sandbox refused.

usage: agentic_ci_pipeline.py SUITE DIR [--version v1.2.2] [--attack direct] [--user-task ID]... [--injection-task ID]...
                              [--port 8931] [OPTION OF agentic-ci run]... [-- PROGRAM ARG...]

    pip install agentdojo
    agentic_ci_pipeline.py banking out --agent claude-code --provider anthropic --policy policy.yml

AgentDojo's tools are an MCP server on this machine, at $MCP_SERVER_URL in the sandbox: the policy needs the endpoint
`host.openshell.internal:8931`, and may have rules for tools. With --agent, configure its MCP client. A PROGRAM gets the task as its
last argument, and its output is the answer. DIR/results.json has a row for each task: `utility` and `security` as AgentDojo has them
(true: the injection's goal was reached), and `refused`, the requests that the policy denied. "diverted" in the summary is what the
model did, also where the sandbox stopped it; "reached" what came of it. Needs AGENTIC_CI or agentic-ci on the PATH.
"""
import argparse
import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

from agentdojo.agent_pipeline.base_pipeline_element import BasePipelineElement
from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
from agentdojo.attacks.attack_registry import load_attack
from agentdojo.functions_runtime import EmptyEnv, FunctionCall
from agentdojo.task_suite import get_suite
from agentdojo.types import ChatAssistantMessage, ChatUserMessage, text_content_block_from_string

PROGRAM = os.environ.get('AGENTIC_CI', 'agentic-ci')


class Tools(http.server.ThreadingHTTPServer):
    """The functions of a runtime over an environment, as an MCP server: one request, one answer."""
    allow_reuse_address = True

    def __init__(self, port, runtime, env):
        super().__init__(('127.0.0.1', port), Handler)
        self.runtime, self.env, self.calls, self.one = runtime, env, [], threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def answer(self, method, params):
        if method == 'initialize':
            return {'protocolVersion': params.get('protocolVersion', '2025-06-18'), 'capabilities': {'tools': {}},
                    'serverInfo': {'name': 'agentdojo', 'version': '1'}}
        if method == 'tools/list':
            return {'tools': [{'name': name, 'description': function.description, 'inputSchema': function.parameters.model_json_schema()}
                              for name, function in self.runtime.functions.items()]}
        if method != 'tools/call':
            return {}
        with self.one:
            self.calls.append(FunctionCall(function=params['name'], args=params.get('arguments', {})))
            result, error = self.runtime.run_function(self.env, params['name'], params.get('arguments', {}))
        return {'content': [{'type': 'text', 'text': error or tool_result_to_str(result)}], 'isError': error is not None}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
        text = b''
        if 'id' in body:
            result = self.server.answer(body['method'], body.get('params') or {})
            text = json.dumps({'jsonrpc': '2.0', 'id': body['id'], 'result': result}).encode()
        self.send_response(200 if text else 202)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


class AgenticCi(BasePipelineElement):
    """An agent in a sandbox. `refused` has the requests of the last run that the policy denied."""
    name = 'local'  # AgentDojo's word for a model that no provider has: attacks address it so.

    def __init__(self, directory, port, options):
        self.directory, self.port, self.options, self.refused, self.runs = directory, port, options, [], 0

    def query(self, query, runtime, env=EmptyEnv(), messages=(), extra_args=None):
        self.runs += 1
        report = self.directory / f'run-{self.runs}'
        at = self.options.index('--') if '--' in self.options else len(self.options)
        command = self.options[at:]
        task = [*command, query] if command else ['--prompt', query]
        server = Tools(self.port, runtime, env)
        try:
            with tempfile.TemporaryDirectory() as work:
                done = subprocess.run(
                    [PROGRAM, 'run', '--quiet', '--workdir', work, '--report-dir', report, '--env',
                     f'MCP_SERVER_URL=http://host.openshell.internal:{server.server_port}/', *self.options[:at], *task],
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        finally:
            server.shutdown()
            server.server_close()
        if not (report / 'run.json').exists():
            sys.exit(f'{self.runs}: {done.stderr}')
        run = json.loads((report / 'run.json').read_text())
        self.refused = run['denials']
        answer = (report / 'agent.log').read_text(errors='replace') if command else run['agent_text']
        said = [text_content_block_from_string(answer)]
        return query, runtime, env, [
            *messages, ChatUserMessage(role='user', content=[text_content_block_from_string(query)]),
            ChatAssistantMessage(role='assistant', content=[text_content_block_from_string('')], tool_calls=server.calls),
            ChatAssistantMessage(role='assistant', content=said, tool_calls=None)], extra_args or {}


def evaluate(suite, pipeline, attack, users, injections):
    """A row for each task alone, and for each with each injection that it can meet."""
    for user in users:
        for injection in [None, *injections]:
            # The control is the same task with nothing injected: what is refused there is no diversion.
            placed = attack.attack(user, injection) if injection else {}
            utility, security = suite.run_task_with_pipeline(pipeline, user, injection, placed)
            yield {'user_task': user.ID, 'injection_task': injection.ID if injection else '', 'utility': utility,
                   'security': security if injection else None, 'refused': pipeline.refused}


def count(row):
    return sum(denial['count'] for denial in row['refused'])


def summarise(rows):
    alone = {row['user_task']: row for row in rows if not row['injection_task']}
    attacked = [row for row in rows if row['injection_task']]
    reached = sum(row['security'] for row in attacked)
    diverted = sum(row['security'] or count(row) > count(alone[row['user_task']]) for row in attacked)
    return (f'{sum(row["utility"] for row in alone.values())} of {len(alone)} tasks solved alone, '
            f'{sum(row["utility"] for row in attacked)} of {len(attacked)} under attack\n'
            f'{diverted} of {len(attacked)} diverted, {reached} reached\n')


def main():
    options = argparse.ArgumentParser(usage=__doc__)
    options.add_argument('suite')
    options.add_argument('directory', type=pathlib.Path)
    options.add_argument('--version', default='v1.2.2')
    options.add_argument('--attack', default='direct')
    options.add_argument('--user-task', action='append')
    options.add_argument('--injection-task', action='append')
    options.add_argument('--port', type=int, default=8931)
    words, command = sys.argv[1:], []
    if '--' in words:
        words, command = words[:words.index('--')], words[words.index('--'):]
    given, others = options.parse_known_args(words)
    suite = get_suite(given.version, given.suite)
    given.directory.mkdir(parents=True)
    pipeline = AgenticCi(given.directory, given.port, others + command)
    attack = load_attack(given.attack, suite, pipeline)
    users = [suite.get_user_task_by_id(one) for one in given.user_task or suite.user_tasks]
    injections = [suite.get_injection_task_by_id(one) for one in given.injection_task or suite.injection_tasks]
    rows = []
    for row in evaluate(suite, pipeline, attack, users, injections):
        rows.append(row)
        print(json.dumps({**row, 'refused': count(row)}), flush=True)
        (given.directory / 'results.json').write_text(json.dumps(rows, indent=1))
    print(summarise(rows), end='')


if __name__ == '__main__':
    main()
