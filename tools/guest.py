# SPDX-License-Identifier: Apache-2.0
"""Suites of another architecture's build, run in a machine that QEMU emulates (machine.py)."""
import json
import os
import re
import subprocess
import tempfile

import machine
from suites import ROOT, Done, count_cases, skip_reasons

SECONDS_MAX = 5400
MARK = '\x1e'  # Before each line of results, which may be beside the kernel's own.
# Runs the suites of suites.json, two at once: the machine has two processors.
SCRIPT = '''#!/usr/bin/python3
import concurrent.futures, json, os, subprocess, time
def run(suite):
    start, code, output = time.monotonic(), 1, b''
    os.makedirs(suite['directory'], exist_ok=True)
    try:
        done = subprocess.run(suite['command'], cwd=suite['directory'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=1800, env=os.environ | suite['environment'] | {'TMPDIR': '/var/tmp'})
        code, output = done.returncode, done.stdout
    except subprocess.TimeoutExpired as error:
        output = (error.stdout or b'') + b'\\nno end in half an hour'
    except OSError as error:
        output = str(error).encode()
    return json.dumps({'name': suite['name'], 'code': code, 'seconds': time.monotonic() - start,
                       'output': output.decode(errors='replace')})
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    for done in concurrent.futures.as_completed([pool.submit(run, suite) for suite in json.load(open('/root/suites.json'))]):
        print('\\x1e' + done.result(), flush=True)
'''


def described(build, pattern):
    """What ctest knows about the suites of `build` that match: name, command, environment, directory."""
    listed = subprocess.run(['ctest', '--test-dir', build, '--show-only=json-v1', '-R', pattern], capture_output=True, check=True)
    suites = []
    for test in json.loads(listed.stdout)['tests']:
        properties = {entry['name']: entry['value'] for entry in test.get('properties', [])}
        # Python is the guest's own.
        command = [re.sub(r'^/.*/python3$', '/usr/bin/python3', word) for word in test['command']]
        environment = dict(entry.split('=', 1) for entry in properties.get('ENVIRONMENT', []))
        suites.append({'name': test['name'], 'command': command, 'environment': environment,
                       'directory': properties['WORKING_DIRECTORY'], 'skip': properties.get('SKIP_RETURN_CODE')})
    return suites


def programs(build, strip, scratch):
    """(stripped copy, path) of each program of `build`."""
    for directory, _, names in os.walk(build):
        for path in (os.path.join(directory, name) for name in names):
            with open(path, 'rb') as file:
                is_program = os.access(path, os.X_OK) and file.read(4) == b'\x7fELF'
            if is_program:
                copy = os.path.join(scratch, os.path.relpath(path, build).replace('/', '-'))
                subprocess.run([strip, '-o', copy, path], check=True)
                yield copy, path


def run_suites(build, pattern, architecture, strip, machines):
    """Runs what matches in one machine; a Done for each suite, and the console if the machine did not finish."""
    suites = described(build, pattern)
    files = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard'], cwd=ROOT, capture_output=True, text=True, check=True)
    with tempfile.TemporaryDirectory(dir='/var/tmp') as scratch:
        wanted = os.path.join(scratch, 'suites.json')
        with open(wanted, 'w', encoding='utf-8') as file:
            json.dump(suites, file)
        brought = [(f'{ROOT}/{name}', f'{ROOT}/{name}') for name in files.stdout.splitlines() if os.path.isfile(f'{ROOT}/{name}')]
        brought += [*programs(build, strip, scratch), (wanted, '/root/suites.json')]
        _, output = machine.boot(*machine.fetch(machines, architecture), architecture, SCRIPT, brought, seconds=SECONDS_MAX)
    results = {}
    for line in output.split('\n'):  # Not splitlines(): the mark is one of its line ends.
        if line.startswith(MARK):
            result = json.loads(line[1:])
            results[result['name']] = result
    for suite in suites:
        result = results.get(suite['name'])
        if result is None:
            yield Done(suite['name'], 0, f'{output[-3000:]}\nthe machine ended first', 0, 1)
            continue
        if result['code'] == suite['skip'] and suite['skip'] is not None:
            yield Done(suite['name'], result['seconds'], result['output'], 0, 0, ', '.join(skip_reasons(result['output'])[:1]))
            continue
        passed, failed, skipped = count_cases(result['output'], result['code'] == 0)
        why = ', '.join(skip_reasons(result['output'])[:3])
        yield Done(suite['name'], result['seconds'], result['output'], passed, failed, f'{skipped} cases: {why}' if skipped else None)
