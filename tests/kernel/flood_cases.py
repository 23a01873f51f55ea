# SPDX-License-Identifier: Apache-2.0
"""What an agent makes the gateway and the supervisor do counts against its own limits."""
import os
import subprocess

from harness import ROOT, RUN_SECONDS, Case, only_in, write

PYTHON = '/usr/bin/python3'
POLICY = '''version: 1
network_policies:
  flooded:
    endpoints: [{{host: host.openshell.internal, port: {port}, protocol: rest, access: full}}]
    binaries: [{{path: "/**"}}]
'''
# Takes connections and says nothing: the handshakes are with the gateway.
UPSTREAM = '''import asyncio
async def hold(reader, writer):
    await reader.read()
    writer.close()
async def main():
    server = await asyncio.start_server(hold, '127.0.0.1', 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
'''
# HELD: connections that stay, each with a finished handshake and half a request. After them SECONDS of further ones.
FLOOD = '''import socket, ssl, sys, time
held, seconds, port = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
name = 'host.openshell.internal'
def connect():
    raw = socket.create_connection(('10.200.0.1', 3128))
    raw.sendall(f'CONNECT {name}:{port} HTTP/1.1\\r\\nHost: {name}:{port}\\r\\n\\r\\n'.encode())
    assert b' 200 ' in raw.recv(4096)
    return context.wrap_socket(raw, server_hostname=name)
kept = [connect() for _ in range(held)]
for connection in kept:
    connection.send(b'GET / HTTP/1.1\\r\\nX: ' + b'x' * 14000)
end = time.monotonic() + seconds
count = 0
while time.monotonic() < end:
    connect().close()
    count += 1
print(f'held={len(kept)}\\nmore={count}', flush=True)
'''


class Floods(Case):
    def setUp(self):
        super().setUp()
        self.feature('python', os.path.exists(PYTHON), 'nothing to speak TLS with')
        self.upstream = subprocess.Popen([PYTHON, '-c', UPSTREAM], stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.upstream.communicate)
        self.addCleanup(self.upstream.kill)
        self.port = self.upstream.stdout.readline().strip()
        write(self.checkout + '/flood.py', FLOOD)

    def flood(self, held, seconds, options, code):
        policy = self.policy(POLICY.format(port=self.port))
        return self.run_agent(PYTHON, 'flood.py', str(held), str(seconds), self.port, code=code,
                              options=['--policy', policy, *options])

    def spent(self, run):
        return [limit for limit in run.record['limits'] if limit['name'] == 'runner-cpu'][0]

    def test_handshakes_without_end_end_the_run(self):
        run = self.flood(0, RUN_SECONDS - 5, ['--runner-cpu', '1s'], 125)
        self.assertEqual(run.outcome['limit'], 'runner-cpu')
        self.assertTrue(self.spent(run)['fired'])
        run = self.flood(0, 3, [], 0)  # The control.
        self.assertFalse(self.spent(run)['fired'])
        self.assertGreater(self.spent(run)['used'], 0)
        self.assertGreater(int(run.values()['more']), 0)

    @only_in('namespaces')  # Where the kernel has no tcp_diag, 900 connections read the host's table 900 times.
    def test_connections_count_as_the_memory_of_the_run(self):
        limit = ['--memory', '64MiB']
        self.assertEqual(self.flood(900, 50, limit, 125).outcome['limit'], 'memory')
        self.assertEqual(self.flood(900, 2, [], 0).values()['held'], '900')
        self.assertEqual(self.flood(20, 2, limit, 0).values()['held'], '20')

    def test_gateway_keeps_to_the_processors_of_the_run(self):
        process = self.waiting_agent(options=['--cpus', '1'])
        supervisor = self.supervisors[-1]
        with open(f'/proc/{supervisor}/task/{supervisor}/children') as file:
            children = file.read().split()
        allowed = []
        for pid in children:
            with open(f'/proc/{pid}/status') as file:
                allowed += [line.split()[1] for line in file if line.startswith('Cpus_allowed_list')]
            with open(f'/proc/{pid}/cgroup') as file:
                own = 'agentic-ci-' in file.read()
            self.assertEqual(own, ROOT)
        self.release()
        self.finish(process)
        if not ROOT and os.cpu_count() > 1:
            self.assertEqual(len(set(allowed)), 1)
            self.assertNotIn('-', allowed[0])
