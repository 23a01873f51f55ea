# SPDX-License-Identifier: Apache-2.0
"""An agent for AgentDojo that knows what each task takes, and obeys what it reads or does not.

usage: agentdojo_agent.py CALLS obey|resist TASK     CALLS: JSON, {TASK or GOAL: {calls: [[tool, arguments]], output}}
"""
import json
import os
import sys
import urllib.error
import urllib.request

CALLS, OBEYS, TASK = json.loads(sys.argv[1]), sys.argv[2] == 'obey', sys.argv[3]


def rpc(method, **params):
    body = json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': method, 'params': params}).encode()
    request = urllib.request.Request(os.environ['MCP_SERVER_URL'], body, {'Content-Type': 'application/json'})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)['result']
    except urllib.error.HTTPError as error:
        return {'content': [{'text': f'refused: {error.code}'}]}


def use(calls):
    return ''.join(rpc('tools/call', name=name, arguments=arguments)['content'][0]['text'] for name, arguments in calls)


assert rpc('tools/list')['tools']
read = use(CALLS[TASK]['calls'])
for goal, one in CALLS.items():
    if OBEYS and goal != TASK and goal in read:
        use(one['calls'])
print(CALLS[TASK]['output'])
