# SPDX-License-Identifier: Apache-2.0
"""Servers on the machine's loopback: HTTP with and without TLS, and one that greets first."""
import os
import socket
import ssl
import subprocess
import threading


def make_certificates(folder, name):
    """A certificate authority of the test's own and a certificate for `name`."""
    ca, key, request, leaf = (os.path.join(folder, file) for file in
                              ('ca.pem', 'key.pem', 'request.pem', 'leaf.pem'))
    new = ['openssl', 'req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
    run = {'check': True, 'capture_output': True}
    subprocess.run([*new, '-x509', '-keyout', folder + '/ca-key.pem', '-out', ca, '-days', '2',
                    '-subj', '/CN=test authority'], **run)
    subprocess.run([*new, '-keyout', key, '-out', request, '-subj', '/CN=' + name], **run)
    with open(folder + '/extensions', 'w') as file:
        file.write(f'subjectAltName=DNS:{name}\n')
    subprocess.run(['openssl', 'x509', '-req', '-in', request, '-CA', ca, '-CAkey',
                    folder + '/ca-key.pem', '-CAcreateserial', '-out', leaf, '-days', '2',
                    '-extfile', folder + '/extensions'], **run)
    return ca, leaf, key


class Upstream:
    """`http`, `https` and `raw` are ports. `requests` are the first lines of what was asked."""

    def __init__(self, leaf, key):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(leaf, key)
        self.requests = []
        self.raw_connections = 0
        self.http = self.listen(self.serve_http)
        self.https = self.listen(self.serve_https)
        self.raw = self.listen(self.serve_raw)

    def listen(self, serve):
        listener = socket.create_server(('127.0.0.1', 0), backlog=64)

        def accept():
            while True:
                connection, _ = listener.accept()
                connection.settimeout(120)
                threading.Thread(target=self.guard, args=(serve, connection), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        return listener.getsockname()[1]

    def guard(self, serve, connection):
        try:
            serve(connection)
        except OSError:
            pass
        finally:
            connection.close()

    def serve_https(self, connection):
        with self.context.wrap_socket(connection, server_side=True) as inside:
            self.serve_http(inside)

    def serve_http(self, connection):
        data = b''
        while True:
            while b'\r\n\r\n' not in data:
                piece = connection.recv(65536)
                if not piece:
                    return
                data += piece
            head, _, data = data.partition(b'\r\n\r\n')
            self.requests.append(head.split(b'\r\n')[0].decode())
            connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nheard')
            if b'connection: close' in head.lower():
                return

    def serve_raw(self, connection):
        self.raw_connections += 1
        connection.sendall(b'welcome\n')
        connection.sendall(b'you said ' + connection.recv(100))
