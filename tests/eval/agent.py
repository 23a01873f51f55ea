# SPDX-License-Identifier: Apache-2.0
"""An agent of two dozen lines: asks a model what to do, does it in a shell, and prints its last words.

usage: agent.py MODEL_URL TASK      Exit status 1 when the model does not answer.
"""
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request

TOOL = {'name': 'bash', 'description': 'Runs a command.',
        'input_schema': {'type': 'object', 'properties': {'command': {'type': 'string'}}}}


def ask(url, messages):
    body = json.dumps({'model': 'scripted', 'max_tokens': 1000, 'tools': [TOOL], 'messages': messages})
    request = urllib.request.Request(url + '/v1/messages', body.encode(),
                                     {'Content-Type': 'application/json'})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)['content']


messages = [{'role': 'user', 'content': sys.argv[2]}]
while True:
    try:
        content = ask(sys.argv[1], messages)
    except urllib.error.HTTPError as error:
        sys.exit('the model answered %d' % error.code)
    calls = [block for block in content if block['type'] == 'tool_use']
    if not calls:
        print(''.join(block.get('text', '') for block in content))
        break
    done = subprocess.run(['sh', '-c', calls[0]['input']['command']], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                          env=os.environ | {'MODEL_URL': sys.argv[1]})
    messages += [{'role': 'assistant', 'content': content},
                 {'role': 'user', 'content': [{'type': 'tool_result', 'tool_use_id': calls[0]['id'],
                                               'content': done.stdout or 'no output'}]}]
