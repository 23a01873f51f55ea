#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `policy export --to openshell` prints is a policy that OpenShell's own gateway accepts, and by which its engine judges as by the
file it came from.

usage: export_test.py BINARY TESTBED CACHE [SEED]
"""
import concurrent.futures
import json
import pathlib
import random
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))
from differential_test import SEED, ask, harness, question  # noqa: E402
from generate import generated_file, requests  # noqa: E402

POLICIES = 60
REQUESTS = 20  # Of each.
# OpenShell refuses it as it is written.
ANY_OPERATION = '''version: 1
network_policies:
  g:
    endpoints:
      - {host: graph.example.com, port: 443, protocol: graphql, rules: [{allow: {operation_type: "*"}}]}
    binaries: [{path: /**}]
'''


def export(binary, path):
    """The text, or nothing where agentic-ci does not accept the file."""
    done = subprocess.run([binary, 'policy', 'export', '--to', 'openshell', '--openshell', '0.0', '--policy', path], capture_output=True, text=True, timeout=600)
    assert done.returncode in (0, 65), done
    return done.stdout if done.returncode == 0 else ''


def repository_policies():
    """Every policy that this repository has for its users: of either form."""
    paths = [*(ROOT / 'policies' / name for name in ('claude-code.yml', 'read-only-github.yml')), *ROOT.glob('examples/policies/*.yml'), *ROOT.glob('examples/*/.agentic-ci/openshell-policy.yml')]
    assert len(paths) > 8, paths
    return paths


def main():
    binary, testbed, cache = sys.argv[1:4]
    program = harness(testbed, cache)
    dice = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else SEED)
    failures, passed = [], 0
    with tempfile.TemporaryDirectory(prefix='export-') as name:
        path = pathlib.Path(name, 'policy.yml')

        def exported(text):
            path.write_text(text)
            return export(binary, path)

        def loads(text):
            return ask(program, [{'op': 'check', 'policy': text}])[0]

        for file in repository_policies():
            answer = loads(export(binary, file))
            passed += answer['loads']
            if not answer['loads']:
                failures.append(f'{file.relative_to(ROOT)}: {answer}')
        assert not loads(ANY_OPERATION)['loads'] and loads(exported(ANY_OPERATION))['loads']
        pairs = []
        for file in (generated_file(dice) for _ in range(POLICIES)):
            text = exported(file.policy)
            answer = loads(text) if text else None
            if answer and not answer['loads']:
                failures.append(f'not accepted: {answer}\n{file.policy}')
            elif answer:
                passed += 1
                if loads(file.policy)['loads']:
                    pairs.append((file, text, requests(dice, file)[:REQUESTS]))

    def judge(pair):
        file, text, asked = pair
        return [ask(program, [question(one, request) for request in asked]) for one in (file.policy, text)]

    compared = 0
    # The harness waits a while for an answer to what is malformed: that costs time and no processor.
    with concurrent.futures.ThreadPoolExecutor(POLICIES) as pool:
        for (_, _, asked), (before, after) in zip(pairs, pool.map(judge, pairs)):
            for request, then, now in zip(asked, before, after):
                compared += 1
                passed += then['verdict'] == now['verdict']
                if then['verdict'] != now['verdict']:
                    failures.append(f'{then["verdict"]}, exported {now["verdict"]}: {request}')
    for failure in failures[:20]:
        print(failure)
    assert compared > 100, compared
    print(json.dumps({'policies': POLICIES, 'requests': compared}))
    print(f'{passed} passed, {len(failures)} failed')
    sys.exit(1 if failures else 0)


if __name__ == '__main__':
    main()
