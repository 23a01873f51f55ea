# SPDX-License-Identifier: Apache-2.0
"""Each network mode of Harbor, tried from inside, beside another machine that answers to everything.

usage: network.py AGENTIC-CI   In namespaces of its own, with the capabilities to make another machine there.
"""
import asyncio
import ctypes
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

from environment import PLACE, allowlist, construct
from harbor.models.task.config import NetworkPolicy

HERE = pathlib.Path(__file__).resolve().parent
HOSTS = {'allowed': '93.184.216.2', 'other': '93.184.216.3', 'sub.wild': '93.184.216.5', 'a.b.wild': '93.184.216.5',
         'wild': '93.184.216.5', 'private': '10.77.0.2'}
FAR = {*HOSTS.values(), '93.184.216.4'}
FAR6 = {'2606:2800:220:1::2', '2606:2800:220:1::4'}
PUBLIC, NONE = NetworkPolicy(), NetworkPolicy(network_mode='no-network')
SOME = allowlist('allowed.example.test', '*.wild.example.test', '93.184.216.4', '2606:2800:220:1::4')
# An address of IPv6 is reached by the proxy alone.
ALLOWED = {'web 2606:2800:220:1::4', *(f'{how} {host}' for how in ('web', 'tcp') for host in (
    'allowed.example.test', 'sub.wild.example.test', 'a.b.wild.example.test', '93.184.216.4'))}
OPEN = ALLOWED | {'web 2606:2800:220:1::2', *(f'{how} {host}' for how in ('web', 'tcp') for host in (
    'other.example.test', 'wild.example.test', '93.184.216.2'))}
# A connection that was opened before, and is used when the file /tmp/go is there.
LATER = r'''
import os, socket, time
own = socket.create_connection(('allowed.example.test', 80), 60)
request = b'GET / HTTP/1.1\r\nHost: allowed.example.test\r\n'
own.sendall(request)
open('/tmp/open', 'w').close()
while not os.path.exists('/tmp/go'):
    time.sleep(0.05)
try:
    own.sendall(b'\r\n')
    got = own.recv(9999)
except OSError as error:
    got = str(error).encode()
open('/tmp/got.part', 'wb').write(got)
os.rename('/tmp/got.part', '/tmp/got')
'''
CASES = (('no-network', NONE, set()), ('an empty list', allowlist(), set()), ('a list', SOME, ALLOWED), ('public', PUBLIC, OPEN))


def run(*command):
    subprocess.run(command, check=True)


def stage():
    """The file in which the other machine writes down what reaches it."""
    run('mount', '--make-rprivate', '/')
    run('ip', 'link', 'set', 'lo', 'up')
    holder = subprocess.Popen(['unshare', '--net', 'sleep', '1000'])
    while os.readlink(f'/proc/{holder.pid}/ns/net') == os.readlink('/proc/self/ns/net'):
        pass
    run('ip', 'link', 'add', 'near', 'type', 'veth', 'peer', 'name', 'far', 'netns', str(holder.pid))
    enter = ['nsenter', '--target', str(holder.pid), '--net']
    for before, device, own in ([], 'near', ['93.184.216.1', '10.77.0.1', '2606:2800:220:1::1']), (enter, 'far', [*FAR, *FAR6]):
        for address in own:
            run(*before, 'ip', 'address', 'add', address + ('/64' if ':' in address else '/24'), 'dev', device,
                *(['nodad'] if ':' in address else []))
        run(*before, 'ip', 'link', 'set', device, 'up')
    (PLACE / 'hosts').write_text('127.0.0.1 localhost\n' + ''.join(f'{at} {name}.example.test\n' for name, at in HOSTS.items()))
    (PLACE / 'resolv.conf').write_text('nameserver 93.184.216.2\n')
    for name in ('hosts', 'resolv.conf'):
        run('mount', '--bind', PLACE / name, '/etc/' + name)
    log = PLACE / 'log'
    far = subprocess.Popen([*enter, '/usr/bin/python3', HERE / 'far.py', log], stdout=subprocess.PIPE)
    assert far.stdout.readline() == b'ready\n'
    return log, (far, holder)


async def probe(environment, what, expected, log):
    before = len(log.read_text().splitlines())
    done = await environment.exec('/usr/bin/python3 /tests/probe.py')
    reached = set(json.loads(done.stdout))
    assert reached == expected, (what, sorted(reached ^ expected), done.stderr)
    arrived = set(log.read_text().splitlines()[before:])
    wrong = {line for line in arrived if line.startswith('udp 9999') or line.startswith('tcp') and (
        not expected or not line.endswith(' 80') or '10.77' in line)}
    assert not wrong, (what, wrong)
    assert bool(expected) == any(line.startswith('tcp') for line in arrived), (what, arrived)


async def main(program, log):
    for what, policy, expected in CASES:
        environment = construct(program, network=policy)
        await environment.start(False)
        try:
            await environment.upload_file(HERE / 'probe.py', '/tests/probe.py')
            await probe(environment, what, expected, log)
        finally:
            await environment.stop(True)
    # One environment, from phase to phase.
    environment = construct(program, network=PUBLIC, phases=[policy for _, policy, _ in CASES])
    await environment.start(False)
    try:
        await environment.upload_file(HERE / 'probe.py', '/tests/probe.py')
        (PLACE / 'later.py').write_text(LATER)
        await environment.upload_file(PLACE / 'later.py', '/tests/later.py')
        for what, policy, expected in CASES[1:] + CASES[:1]:
            await environment.set_network_policy(policy)
            await probe(environment, 'then ' + what, expected, log)
        for policy, expected in ((PUBLIC, True), (NONE, False)):
            await environment.set_network_policy(PUBLIC)
            await environment.exec('/usr/bin/python3 /tests/later.py >/dev/null 2>&1 & while ! [ -e /tmp/open ]; do sleep 0.05; done',
                                   timeout_sec=120)
            await environment.set_network_policy(policy)
            done = await environment.exec('touch /tmp/go; while ! [ -e /tmp/got ]; do sleep 0.05; done; cat /tmp/got; rm /tmp/g* /tmp/open',
                                          timeout_sec=120)
            assert (done.stdout[-3:] == 'far') == expected, (expected, done)
    finally:
        await environment.stop(True)


log, others = stage()
try:
    # The control: all that is refused below can be reached from here.
    control = json.loads(subprocess.run(['/usr/bin/python3', HERE / 'probe.py'], stdout=subprocess.PIPE, check=True,
                                        env={**os.environ, 'PROBE_UDP_SECONDS': '60'}).stdout)
    assert len(control) == 37 and OPEN < set(control) and 'raw' in control and 'udp 93.184.216.2 53' in control, control
    if os.geteuid() != 0:  # What is started from here on is an ordinary user's.
        assert ctypes.CDLL(None).prctl(47, 4, 0, 0, 0) == 0  # PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL
    asyncio.run(main(sys.argv[1], log))
finally:
    for other in others:
        other.send_signal(signal.SIGKILL)
        other.wait()
print('done')
