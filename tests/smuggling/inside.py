# SPDX-License-Identifier: Apache-2.0
"""Runs inside the sandbox: sends every mutation through a tunnel of its own, and says how many it sent."""
import concurrent.futures
import socket
import sys

from mutations import mutations

PORT = int(sys.argv[1])
AUTHORITY = b'host.openshell.internal:%d' % PORT
PATIENCE_S = 0.4


def tunnel():
    connection = socket.create_connection(('10.200.0.1', 3128), timeout=120)
    connection.sendall(b'CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n' % (AUTHORITY, AUTHORITY))
    head = b''
    while not head.endswith(b'\r\n\r\n'):
        head += connection.recv(1)
    assert head.startswith(b'HTTP/1.1 200'), head
    return connection


def send(case):
    number, raw = case
    with tunnel() as connection:
        try:
            connection.sendall(raw)
            connection.settimeout(PATIENCE_S)
            while connection.recv(65536):
                pass
        except OSError:
            pass
    return number


def control(number):
    """Two well-formed requests on one connection: both arrive."""
    with tunnel() as connection:
        for method, rest in ((b'GET', b'\r\n'), (b'POST', b'Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\n\r\n')):
            connection.sendall(b'%s /ok/control%d HTTP/1.1\r\nHost: %s\r\n%s' % (method, number, AUTHORITY, rest))
            answer = b''
            while b'\r\n\r\n' not in answer:
                answer += connection.recv(4096)
            assert answer.startswith(b'HTTP/1.1 200'), answer


with concurrent.futures.ThreadPoolExecutor(24) as pool:
    print('sent', len(list(pool.map(send, mutations(AUTHORITY)))))
for index in range(3):
    control(index)
print('controls 3')
