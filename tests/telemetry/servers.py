# SPDX-License-Identifier: Apache-2.0
"""Servers on loopback that telemetry is sent to: HTTP with any answer, syslog over TCP and TLS, and none at all."""
import gzip
import http.server
import socket
import ssl
import subprocess
import threading


def make_authority(directory):
    """A certificate authority, a certificate for 127.0.0.1, and one for a client; PEM files by name."""
    def openssl(*words):
        subprocess.run(['openssl', *words], cwd=directory, check=True, capture_output=True)
    openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', 'ca.key', '-out', 'ca.pem',
            '-days', '30', '-subj', '/CN=tests')
    for name in ('server', 'client'):
        (directory / f'{name}.ext').write_text('subjectAltName=IP:127.0.0.1\n')
        openssl('req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', f'{name}.key', '-out',
                f'{name}.csr', '-subj', f'/CN={name}')
        openssl('x509', '-req', '-in', f'{name}.csr', '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-out', f'{name}.pem',
                '-days', '30', '-extfile', f'{name}.ext')


def server_context(directory, clients=False):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / 'server.pem', directory / 'server.key')
    if clients:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(directory / 'ca.pem')
    return context


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers['content-length']))
        if self.headers.get('content-encoding') == 'gzip':
            body = gzip.decompress(body)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append((self.path, headers, body))
        status, answer, more = self.server.answer(len(self.server.requests))
        self.send_response(status)
        for name, value in more.items():
            self.send_header(name, value)
        self.send_header('content-length', str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A client that goes away, or does not trust the certificate, is none of the server's errors."""


class Collector:
    """An HTTP server that keeps what it is sent. `answer` maps a request's number, from 1, to (status, body, headers)."""

    def __init__(self, answer=lambda number: (200, b'', {}), context=None):
        self.server = _Server(('127.0.0.1', 0), _Handler)
        self.server.requests, self.server.answer = [], answer
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.url = f'http{"s" if context else ""}://127.0.0.1:{self.port}'
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def requests(self):
        return self.server.requests

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Listener:
    """A TCP server that keeps the bytes of each connection until its end, or never accepts one."""

    def __init__(self, context=None, accepts=True):
        self.socket = socket.create_server(('127.0.0.1', 0))
        self.port = self.socket.getsockname()[1]
        self.context, self.received, self.ended = context, [], threading.Event()
        if accepts:
            threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                connection, _ = self.socket.accept()
                if self.context:
                    connection = self.context.wrap_socket(connection, server_side=True, suppress_ragged_eofs=False)
                data = b''
                while piece := connection.recv(65536):
                    data += piece
            except ssl.SSLError:
                continue
            except OSError:
                return
            self.received.append(data)
            self.ended.set()

    def close(self):
        self.socket.close()


def syslog_messages(data):
    """The messages of a connection, by octet counting: each after its length and a blank."""
    messages = []
    while data:
        length, _, data = data.partition(b' ')
        message, data = data[:int(length)], data[int(length):]
        if len(message) != int(length):
            raise ValueError('a message is cut')
        messages.append(message.decode())
    return messages
