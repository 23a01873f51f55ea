# SPDX-License-Identifier: Apache-2.0
"""A registry of the tests' own: the distribution API with referrers, token authentication, and
whatever a test wants to go wrong."""
import base64
import hashlib
import http.server
import json
import re
import socket
import ssl
import threading
import urllib.parse

INDEX = 'application/vnd.oci.image.index.v1+json'
MANIFEST = 'application/vnd.oci.image.manifest.v1+json'
CONFIG = 'application/vnd.oci.image.config.v1+json'
LAYER = 'application/vnd.oci.image.layer.v1.tar'
BUNDLE = 'application/vnd.dev.sigstore.bundle.v0.3+json'
EMPTY = 'application/vnd.oci.empty.v1+json'


def digest_of(data):
    return 'sha256:' + hashlib.sha256(data).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_POST(self):
        self.form = self.rfile.read(int(self.headers.get('content-length', 0))).decode()
        self.do_GET()

    def do_GET(self):
        registry = self.server.registry
        with registry.lock:
            registry.requests.append((self.command, self.path, dict(self.headers.items())))
        try:
            for pattern, fault in list(registry.faults):
                if re.search(pattern, self.path) and fault(self) is not False:
                    return
            registry.answer(self)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def reply(self, status, body=b'', headers=(), length=None):
        """`headers` may name one several times. `length`: another Content-Length than the truth."""
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in dict(headers).items() if isinstance(headers, dict) else headers:
            self.send_header(name, value)
        self.send_header('content-length', str(len(body) if length is None else length))
        if length is not None:
            self.send_header('connection', 'close')
            self.close_connection = True
        self.end_headers()
        self.wfile.write(body)

    def chunks(self, status, pieces, headers=()):
        """A chunked body of what `pieces` yields, for as long as somebody reads."""
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header('transfer-encoding', 'chunked')
        self.end_headers()
        for piece in pieces:
            self.wfile.write(b'%x\r\n%s\r\n' % (len(piece), piece))
        self.wfile.write(b'0\r\n\r\n')


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_port = True  # For close().

    def handle_error(self, *_):
        """A client that went away."""


class Registry:
    """Runs until `close`. `auth`: None, 'basic' or 'bearer', for `user` and `password`."""

    def __init__(self, auth=None, user='robot', password='hunter2', tls=None, referrers=True):
        self.auth, self.user, self.password, self.referrers_api = auth, user, password, referrers
        self.blobs, self.manifests = {}, {}  # digest -> bytes; (repository, reference) -> (type, bytes)
        self.referrers = {}                  # digest -> descriptors
        self.requests, self.faults, self.lock = [], [], threading.Lock()
        self.tokens, self.page_size, self.realm, self.anonymous = set(), None, None, False
        self.server = Server(('127.0.0.1', 0), Handler)
        self.server.registry = self
        self.scheme = 'http'
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
            self.scheme = 'https'
        self.host = '127.0.0.1:%d' % self.server.server_address[1]
        self.url = f'{self.scheme}://{self.host}'
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self):
        """Nothing answers there any more, and no other service gets the port."""
        self.kept = socket.socket()
        self.kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self.kept.bind(self.server.server_address)
        self.server.shutdown()
        self.server.server_close()

    # What is in it.

    def add_blob(self, data):
        self.blobs[digest_of(data)] = data
        return {'mediaType': LAYER, 'digest': digest_of(data), 'size': len(data)}

    def add_manifest(self, repository, manifest, *tags, media_type=MANIFEST):
        data = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
        for reference in (digest_of(data), *tags):
            self.manifests[repository, reference] = (media_type, data)
        return {'mediaType': media_type, 'digest': digest_of(data), 'size': len(data)}

    def add_image(self, repository, tag, layers=(b'layer',), **more):
        config = {'os': 'linux', 'architecture': 'amd64', 'config': {'Cmd': ['/bin/sh']},
                  'rootfs': {'type': 'layers', 'diff_ids': [digest_of(layer) for layer in layers]}}
        manifest = {'schemaVersion': 2, 'mediaType': MANIFEST,
                    'config': self.add_blob(json.dumps(config).encode()) | {'mediaType': CONFIG},
                    'layers': [self.add_blob(layer) for layer in layers]} | more
        return self.add_manifest(repository, manifest, tag)

    def add_signature(self, repository, subject, bundle, listed=None, artifact_type=BUNDLE):
        """A bundle about `subject`, as cosign 3 stores it; `listed` replaces what the list says."""
        layer = self.add_blob(bundle) | {'mediaType': BUNDLE}
        config = self.add_blob(b'{}') | {'mediaType': EMPTY}
        descriptor = self.add_manifest(repository, {
            'schemaVersion': 2, 'mediaType': MANIFEST, 'artifactType': artifact_type,
            'config': config, 'layers': [layer], 'subject': subject})
        descriptor = descriptor | ({'artifactType': artifact_type} if listed is None else listed)
        self.referrers.setdefault(subject['digest'], []).append(descriptor)
        return descriptor

    def fault(self, pattern, function, times=None):
        """`function(handler)` answers what matches; `times`: so often, then no longer."""
        left = [times]

        def limited(handler):
            with self.lock:
                if left[0] == 0:
                    return False
                if left[0] is not None:
                    left[0] -= 1
            return function(handler)
        self.faults.append((pattern, limited))

    def asked(self, pattern):
        with self.lock:
            return [request for request in self.requests if re.search(pattern, request[1])]

    # What it answers.

    def challenge(self):
        if self.auth == 'basic':
            return 'Basic realm="tests"'
        realm = self.realm or self.url + '/token'
        return f'Bearer realm="{realm}",service="tests, \\"quoted\\"",scope="repository:demo:pull"'

    def answer(self, handler):
        path, _, query = handler.path.partition('?')
        if path == '/token':
            return self.answer_token(handler, urllib.parse.parse_qs(query))
        if self.auth and not self.allowed(handler.headers.get('authorization', '')):
            return handler.reply(401, {'errors': [{'code': 'UNAUTHORIZED', 'message': 'who are you'}]},
                                 [('www-authenticate', 'Negotiate'),
                                  ('www-authenticate', self.challenge())])
        match = re.fullmatch(r'/v2/(.+)/(manifests|blobs|referrers)/([^/]+)', path)
        if not match:
            return handler.reply(404)
        repository, kind, reference = match.groups()
        if kind == 'blobs':
            return self.answer_blob(handler, reference)
        if kind == 'referrers':
            return self.answer_referrers(handler, repository, reference, query)
        if (repository, reference) not in self.manifests:
            return handler.reply(404, {'errors': [{'code': 'MANIFEST_UNKNOWN', 'message': 'manifest unknown'}]})
        media_type, data = self.manifests[repository, reference]
        return handler.reply(200, data, {'content-type': media_type,
                                         'docker-content-digest': digest_of(data)})

    def basic(self):
        return 'Basic ' + base64.b64encode(f'{self.user}:{self.password}'.encode()).decode()

    def allowed(self, authorization):
        if self.auth == 'basic':
            return authorization == self.basic()
        return authorization.removeprefix('Bearer ') in self.tokens

    def answer_token(self, handler, query):
        form = urllib.parse.parse_qs(getattr(handler, 'form', ''))
        known = handler.headers.get('authorization', '') == self.basic()
        known |= form.get('refresh_token') == [self.password]
        if not known and not self.anonymous:
            return handler.reply(401, {'details': 'incorrect username or password'})
        if 'repository:demo:pull' not in ' '.join((query | form).get('scope', [])):
            return handler.reply(400)
        token = f'token-{len(self.requests)}'
        self.tokens.add(token)
        return handler.reply(200, {'access_token' if form else 'token': token, 'expires_in': 60})

    def answer_blob(self, handler, digest):
        if digest not in self.blobs:
            return handler.reply(404, {'errors': [{'code': 'BLOB_UNKNOWN', 'message': 'blob unknown'}]})
        data = self.blobs[digest]
        wanted = re.fullmatch(r'bytes=(\d+)-', handler.headers.get('range', ''))
        if not wanted:
            return handler.reply(200, data)
        start = int(wanted.group(1))
        return handler.reply(206, data[start:], {'content-range': f'bytes {start}-{len(data) - 1}/{len(data)}'})

    def answer_referrers(self, handler, repository, digest, query):
        if not self.referrers_api:
            return handler.reply(404, b'404 page not found\n', {'content-type': 'text/plain'})
        listed = self.referrers.get(digest, [])
        start = int(urllib.parse.parse_qs(query).get('last', ['0'])[0])
        end = len(listed) if self.page_size is None else start + self.page_size
        headers = {'content-type': INDEX}
        if end < len(listed):
            headers['link'] = f'</v2/{repository}/referrers/{digest}?last={end}>; rel="next"'
        return handler.reply(200, {'schemaVersion': 2, 'mediaType': INDEX,
                                   'manifests': listed[start:end]}, headers)
