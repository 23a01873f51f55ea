# SPDX-License-Identifier: Apache-2.0
"""What Harbor's environment of agentic-ci refuses when it is constructed. usage: refusals.py AGENTIC-CI"""
import sys

from environment import allowlist, construct

BIN = sys.argv[1]
GOOD = [
    {}, {'network': allowlist()}, {'network': allowlist('example.com', '*.example.com', '192.0.2.1', '2001:db8::1')},
    {'dockerfile': 'FROM a\nENV A=b\nCOPY --chown=root file /app/\nUSER root\n', 'files': {'file': ''}},
    {'dockerfile': None, 'config': {'docker_image': 'a'}, 'image': 'oci:/nonexistent'},
]
BAD = [
    # Another network than the task asks for.
    ({'network': allowlist('192.0.2.0/24')}, 'CIDR'), ({'network': allowlist('2001:db8::/32')}, 'CIDR'),
    ({'network': allowlist('*.com')}, 'top-level'), ({'network': allowlist('127.0.0.1')}, '127.0.0.1'),
    ({'network': allowlist('169.254.169.254')}, '169.254.169.254'), ({'network': allowlist('::1')}, '::1'),
    ({'network': allowlist('localhost')}, 'this machine'), ({'network': allowlist('host.docker.internal')}, 'this machine'),
    ({'network': allowlist('*.openshell.internal')}, 'this machine'),
    ({'phases': [allowlist('192.0.2.0/24')]}, 'CIDR'), ({'phases': [allowlist('*.com')]}, 'top-level'),
    ({'ports': [0]}, 'port'),
    # Other files or users.
    ({'dockerfile': None, 'config': {'docker_image': 'a'}}, '--ek image'),
    ({'dockerfile': None}, 'no environment definition'),
    ({'dockerfile': 'FROM a\nFROM b\n'}, 'single-stage'), ({'dockerfile': 'FROM a\nCOPY --from=b /c /d\n'}, 'multi-stage'),
    ({'dockerfile': 'FROM a\nCOPY absent /app/\n'}, 'absent'), ({'dockerfile': 'FROM a\nCOPY ../x /app/\n'}, '../x'),
    ({'dockerfile': 'FROM a\nRUN --mount=type=cache,target=/x true\n'}, 'RUN flags'),
    ({'dockerfile': 'FROM a\nUSER someone\n'}, 'someone'), ({'dockerfile': 'FROM a\nUSER someone\nRUN id\nUSER root\n'}, 'someone'),
    ({'dockerfile': 'FROM a\nCOPY --chown=someone f /app/\n', 'files': {'f': ''}}, 'someone'),
    ({'dockerfile': 'FROM a\nENTRYPOINT ["server"]\n'}, 'ENTRYPOINT'),
    ({'files': {'docker-compose.yaml': 'services: {}\n'}}, 'docker-compose.yaml'),
    ({'mounts': [{'type': 'bind', 'source': '/etc', 'target': '/mnt'}]}, 'mounts'),
    ({'config': {'os': 'windows'}}, 'indows'), ({'config': {'gpus': 1}}, 'GPU'), ({'unknown': 1}, 'unknown'),
]
for given in GOOD:
    construct(BIN, **given)
for given, word in BAD:
    try:
        construct(BIN, **given)
    except (ValueError, RuntimeError, FileNotFoundError) as error:
        assert word in str(error), (given, error)
    else:
        raise AssertionError(f'{given} was taken')
print('done')
