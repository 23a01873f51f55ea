# SPDX-License-Identifier: Apache-2.0
"""An HTTPS server on loopback, with a certificate authority of its own: a page, and git repositories."""
import http.server
import os
import pathlib
import ssl
import subprocess
import threading

NAME = 'host.openshell.internal'


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def _answer(self, status, body, headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header('content-length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _body(self):
        if self.headers.get('transfer-encoding') != 'chunked':
            return self.rfile.read(int(self.headers.get('content-length', 0)))
        body = b''
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _git(self, body):
        """git-http-backend(1), by the rules of RFC 3875."""
        path, _, query = self.path.partition('?')
        environment = {
            'PATH': os.environ['PATH'], 'GIT_PROJECT_ROOT': str(self.server.repositories), 'GIT_HTTP_EXPORT_ALL': '1',
            'REQUEST_METHOD': self.command, 'PATH_INFO': path, 'QUERY_STRING': query, 'CONTENT_LENGTH': str(len(body)),
            'CONTENT_TYPE': self.headers.get('content-type', ''), 'REMOTE_ADDR': '127.0.0.1',
            'HTTP_CONTENT_ENCODING': self.headers.get('content-encoding', ''),
            'GIT_PROTOCOL': self.headers.get('git-protocol', ''), 'GIT_CONFIG_COUNT': '1',
            'GIT_CONFIG_KEY_0': 'safe.directory', 'GIT_CONFIG_VALUE_0': '*'}
        output = subprocess.run(['git', 'http-backend'], input=body, env=environment, capture_output=True, check=True)
        head, _, rest = output.stdout.partition(b'\r\n\r\n')
        headers = [line.split(': ', 1) for line in head.decode().split('\r\n')]
        status = int(next((value for name, value in headers if name == 'Status'), '200').split()[0])
        self._answer(status, rest, [header for header in headers if header[0] != 'Status'])

    def do_GET(self):
        body = self._body()
        self.server.requests.append(f'{self.command} {self.path}')
        if self.path.startswith('/page'):
            self._answer(200, b'a page\n')
        elif '.git/' in self.path:
            self._git(body)
        else:
            self._answer(404, b'')

    do_POST = do_GET


class Upstream(http.server.ThreadingHTTPServer):
    """`requests` has what arrived: "METHOD PATH"."""
    daemon_threads = True

    def __init__(self, directory):
        super().__init__(('127.0.0.1', 0), Handler)
        self.requests = []
        self.repositories = pathlib.Path(directory) / 'repositories'
        self.ca_file = pathlib.Path(directory) / 'ca.pem'
        self._make_certificates(pathlib.Path(directory))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pathlib.Path(directory) / 'leaf.pem', pathlib.Path(directory) / 'leaf.key')
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.port = self.server_address[1]
        self.url = f'https://{NAME}:{self.port}'
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # A client that goes away is no news here.

    def _make_certificates(self, directory):
        def openssl(*arguments):
            subprocess.run(['openssl', *arguments], cwd=directory, check=True, capture_output=True)

        key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
        openssl('req', '-x509', *key, '-keyout', 'ca.key', '-out', 'ca.pem', '-subj', '/CN=test', '-days', '2',
                '-addext', 'basicConstraints=critical,CA:TRUE', '-addext', 'keyUsage=critical,keyCertSign')
        openssl('req', *key, '-keyout', 'leaf.key', '-out', 'leaf.csr', '-subj', '/CN=leaf',
                '-addext', f'subjectAltName=DNS:{NAME}')
        openssl('x509', '-req', '-in', 'leaf.csr', '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2',
                '-copy_extensions', 'copy', '-out', 'leaf.pem')
