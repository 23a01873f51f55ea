# SPDX-License-Identifier: Apache-2.0
"""The way out of a workload: a proxy that asks the policy, ends TLS, puts credentials in place, and writes OpenShell's records.

The real supervisor catches connections itself; this one is a proxy at 127.0.0.1:3128 of the workload, and a server of names that
gives placeholder addresses. Records have the forms that were seen of 0.1.2.
"""
import base64
import ipaddress
import json
import pathlib
import re
import socket
import ssl
import struct
import subprocess
import threading
import urllib.parse

import policy as rules
from front import relay

HEAD_BYTES_MAX, BODY_BYTES_MAX, TIMEOUT_S = 1 << 16, 1 << 26, 120
PLACEHOLDER = re.compile(r'openshell:resolve:env:([A-Za-z_][A-Za-z0-9_]*)')
HOP_BY_HOP = ('connection', 'proxy-connection', 'proxy-authorization', 'keep-alive', 'transfer-encoding', 'te', 'trailer')


class Authority:
    """A certificate authority of the gateway's own, trusted by workloads, with a certificate for each host that is asked for."""

    def __init__(self, directory):
        self.directory, self.lock, self.contexts = pathlib.Path(directory), threading.Lock(), {}
        self.directory.mkdir(parents=True)
        self._openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', 'ca.key', '-out', 'ca.crt',
                      '-days', '30', '-subj', '/CN=OpenShell of the tests', '-addext', 'keyUsage=critical,keyCertSign')
        self._openssl('ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', 'host.key')
        self.certificate = (self.directory / 'ca.crt').read_text()

    def _openssl(self, *words):
        subprocess.run(['openssl', *words], cwd=self.directory, check=True, capture_output=True)

    def context(self, host):
        with self.lock:
            if host not in self.contexts:
                try:
                    kind = f'IP:{ipaddress.ip_address(host)}'
                except ValueError:
                    kind = f'DNS:{host}'
                name = str(len(self.contexts))
                (self.directory / f'{name}.ext').write_text(f'subjectAltName={kind}\n')
                self._openssl('req', '-new', '-key', 'host.key', '-out', f'{name}.csr', '-subj', '/CN=host')
                self._openssl('x509', '-req', '-in', f'{name}.csr', '-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '30',
                              '-extfile', f'{name}.ext', '-out', f'{name}.crt')
                self.contexts[host] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                self.contexts[host].load_cert_chain(self.directory / f'{name}.crt', self.directory / 'host.key')
            return self.contexts[host]


class Denied(Exception):
    """`error`: the name in the answer's JSON."""

    def __init__(self, error, message):
        super().__init__(message)
        self.error, self.message = error, message


class Request:
    """A request of HTTP/1.1: `target` is what its first line has."""

    def __init__(self, head, body):
        lines = head.decode('latin-1').split('\r\n')
        self.method, self.target, _ = lines[0].split(' ', 2)
        self.headers = [tuple(part.strip() for part in line.split(':', 1)) for line in lines[1:] if ':' in line]
        self.body = body

    def header(self, name):
        return next((value for key, value in self.headers if key.lower() == name), '')

    def render(self, host, connection):
        kept = [(key, value) for key, value in self.headers if key.lower() not in (*HOP_BY_HOP, 'content-length', 'host', 'expect')]
        if self.body or self.method in ('POST', 'PUT', 'PATCH'):
            kept.append(('Content-Length', str(len(self.body))))
        lines = [f'{self.method} {self.target} HTTP/1.1', f'Host: {host}', *(f'{key}: {value}' for key, value in kept), f'Connection: {connection}']
        return '\r\n'.join(lines).encode('latin-1') + b'\r\n\r\n' + self.body


def read_request(stream):
    """The next request; None at the end of the stream."""
    head = b''
    while not head.endswith(b'\r\n\r\n'):
        line = stream.readline(HEAD_BYTES_MAX)
        if not line or len(head) > HEAD_BYTES_MAX:
            return None
        head += line
    request = Request(head[:-4], b'')
    if request.header('expect').lower() == '100-continue':
        stream.continue_()
    if request.header('transfer-encoding').lower() == 'chunked':
        while size := int(stream.readline(64).split(b';')[0], 16):
            request.body += stream.read(size)
            stream.readline(8)
        while stream.readline(HEAD_BYTES_MAX).strip():
            pass
    elif length := int(request.header('content-length') or 0):
        request.body = stream.read(min(length, BODY_BYTES_MAX))
    return request


class Stream:
    """Lines and bytes of a connection, with what was read too far kept."""

    def __init__(self, connection):
        self.connection = connection
        self.file = connection.makefile('rb')
        self.readline, self.read = self.file.readline, self.file.read

    def continue_(self):
        self.connection.sendall(b'HTTP/1.1 100 Continue\r\n\r\n')


class Egress:
    """`sandbox`: gives the loaded policy, credentials and takes records (see sandboxes.Sandbox). `places`: {name: (address, port or None)}
    of the tests' own servers, taken for public addresses. `trusted`: a file of authorities of such servers, or None."""

    def __init__(self, sandbox, workload, authority, places, trusted, release):
        self.sandbox, self.workload, self.authority, self.places, self.release = sandbox, workload, authority, places, release
        self.client = ssl.create_default_context(cafile=trusted)
        self.addresses = {}
        for serve in (self._accept, self._answer_names):
            threading.Thread(target=serve, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, place = self.workload.proxy.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection, place[1]), daemon=True).start()

    def _answer_names(self):
        """An address record with a placeholder for every name; nothing else is known."""
        while True:
            try:
                data, sender = self.workload.names.recvfrom(4096)
            except OSError:
                return
            if not data:
                return  # The workload has ended.
            end, labels = 12, []
            while end < len(data) and data[end]:
                labels.append(data[end + 1:end + 1 + data[end]].decode('latin-1'))
                end += 1 + data[end]
            name, kind = '.'.join(labels).lower(), data[end + 1:end + 3]
            if kind == b'\0\1' and not rules.names_host(self.sandbox.loaded(), name):
                self.sandbox.record(f'NET:REFUSE [MED] DENIED {name} [reason:policy_dns_ineligible]')
            answer = b''
            if kind == b'\0\1':
                number = self.addresses.setdefault(name, len(self.addresses) + 1)
                answer = b'\xc0\x0c\0\1\0\1' + struct.pack('>IH', 30, 4) + bytes([198, 18, number >> 8, number & 255])
            head = data[:2] + b'\x81\x80\0\1' + struct.pack('>H', bool(answer)) + b'\0\0\0\0'
            self.workload.names.sendto(head + data[12:end + 5] + answer, sender)

    def _program(self, port):
        """The path of the program whose connection to the proxy has this port; '-' if it has gone."""
        first = self.workload.first_pid()
        try:
            lines = pathlib.Path(f'/proc/{first}/net/tcp').read_text().splitlines()[1:]
            inode = next(words[9] for words in map(str.split, lines)
                         if words[1].endswith(f':{port:04X}') and not words[1].endswith(f':{3128:04X}'))
            space = pathlib.Path(f'/proc/{first}/ns/net').readlink()
        except (OSError, StopIteration):
            return '-'
        for process in pathlib.Path('/proc').glob('[0-9]*'):
            try:
                if (process / 'ns/net').readlink() == space and any(
                        str(one.readlink()) == f'socket:[{inode}]' for one in (process / 'fd').iterdir()):
                    return str((process / 'exe').readlink())
            except OSError:
                continue
        return '-'

    def _serve(self, connection, port):
        with connection:
            try:
                connection.settimeout(TIMEOUT_S)
                stream = Stream(connection)
                request = read_request(stream)
                if request is None:
                    return
                program = self._program(port)
                if request.method == 'CONNECT':
                    host, _, number = request.target.rpartition(':')
                    self._tunnel(connection, host.strip('[]'), int(number), program)
                else:
                    url = urllib.parse.urlsplit(request.target)
                    request.target = urllib.parse.urlunsplit(('', '', url.path or '/', url.query, ''))
                    if url.hostname == 'policy.local':
                        self._answer(connection, *self.sandbox.policy_local(request.method, url.path, request.body))
                        return
                    found = self._connection(url.hostname, url.port or 80, program, (request.method, url.path or '/'))
                    self._forward(connection, request, 'http', url.hostname, url.port or 80, found)
            except Denied as denied:
                self._answer(connection, 403, {'error': denied.error, 'detail': denied.message})
            except (OSError, ValueError):
                pass  # The client or the server has gone.

    def _answer(self, connection, status, body):
        text = json.dumps(body).encode()
        connection.sendall(b'HTTP/1.1 %d .\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s'
                           % (status, len(text), text))

    def _connection(self, host, port, program, request=None):
        """The endpoints by which `program` may connect there, [(name, endpoint)], and where that is; else refuses, with a record."""
        policy = self.sandbox.loaded()
        allowed = [(name, endpoint) for name, rule, endpoint in rules.endpoints_for(policy, host, port) if rules.binary_matches(rule, program)]
        reason = 'transparent_tcp_policy_denied'
        if allowed:
            place, address = self._place(host, port)
            if not place:
                self.sandbox.record(f'NET:OPEN [MED] DENIED {program}(0) -> {host}:{port} [policy:{allowed[0][0]} engine:ssrf] '
                                    f'[reason:DNS resolution failed for {host}]')
                raise Denied('dns_failed', f'{host} has no address')
            reasons = [rules.address_reason(endpoint, host, address, self.release) for _, endpoint in allowed]
            if not all(reasons):
                return allowed, place
            reason = reasons[0]
        elif not is_address(host) and not rules.names_host(policy, host):
            reason = ''
        if not reason:
            self.sandbox.record(f'NET:REFUSE [MED] DENIED {host} [reason:policy_dns_ineligible]')
        else:
            self.sandbox.record(f'NET:OPEN [MED] DENIED {program}(0) -> {host}:{port} [reason:{reason}]')
        self.sandbox.refused(host, port, program, request)
        raise Denied('policy_denied', f'{host}:{port} is not allowed')

    def _place(self, host, port):
        """((address, port) to connect to, the address to judge; None: it counts as public)."""
        if host in self.places:
            address, other = self.places[host]
            return (address, other or port), None
        if host == rules.ON_MACHINE:
            return ('127.0.0.1', port), '127.0.0.1'
        try:
            address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4][0]
        except OSError:
            return None, None
        return (address, port), address

    def _tunnel(self, connection, host, port, program):
        allowed, place = self._connection(host, port, program)
        inspected = [one for one in allowed if one[1].protocol in rules.INSPECTED]
        name = (inspected or allowed)[0][0]
        self.sandbox.record(f'NET:OPEN [INFO] ALLOWED {program}(0) -> {host}:{port} [policy:{name} engine:opa]')
        connection.sendall(b'HTTP/1.1 200 OK\r\n\r\n')
        first = connection.recv(1, socket.MSG_PEEK)
        if not inspected or any(endpoint.tls for _, endpoint in allowed):
            with socket.create_connection(place, TIMEOUT_S) as upstream:
                relay(connection, upstream)
            return
        scheme = 'http'
        if first == b'\x16':
            scheme, connection = 'https', self.authority.context(host).wrap_socket(connection, server_side=True)
        with connection:
            request = read_request(Stream(connection))
            if request:
                try:
                    self._forward(connection, request, scheme, host, port, (inspected, place))
                except Denied as denied:
                    self._answer(connection, 403, {'error': denied.error, 'detail': denied.message})

    def _forward(self, connection, request, scheme, host, port, found):
        allowed, place = found
        url = urllib.parse.urlsplit(request.target)
        query = urllib.parse.parse_qsl(url.query, keep_blank_values=True)
        shown = f'{request.method} http://{host}:{port}{url.path}'  # As it was seen: this scheme with any port.
        inspected = [one for one in allowed if one[1].protocol in rules.INSPECTED]
        passing = [one for one in inspected if rules.request_allowed(one[1], request.method, url.path, query)]
        audited = next((one for one in inspected if one[1].enforcement != rules.pb.NETWORK_ENFORCEMENT_MODE_ENFORCE), None)
        name, endpoint = (passing or [audited or (inspected or allowed)[0]])[0]
        upgrade = request.header('upgrade') and endpoint.protocol == 'rest' and rules.at_least(self.release, '0.1.8')
        if upgrade or (inspected and not passing and not audited):
            self.sandbox.record(f'HTTP:{request.method} [MED] DENIED {shown} [policy:{name} engine:l7]')
            self.sandbox.refused(host, port, None, (request.method, url.path))
            raise Denied('unsupported_l7_protocol' if upgrade else 'policy_denied', f'{request.method} {url.path}')
        self._place_credentials(request, host, port, name, endpoint)
        if inspected:
            self.sandbox.record(f'HTTP:{request.method} [INFO] ALLOWED {shown} [policy:{name} engine:l7]')
        upstream = socket.create_connection(place, TIMEOUT_S)
        try:
            if scheme == 'https':
                upstream = self.client.wrap_socket(upstream, server_hostname=host)
            upgrades = request.header('upgrade')
            upstream.sendall(request.render(host if port in (80, 443) else f'{host}:{port}', 'Upgrade' if upgrades else 'close'))
            if upgrades:
                relay(connection, upstream)
                return
            while data := upstream.recv(1 << 16):
                connection.sendall(data)
            if isinstance(connection, ssl.SSLSocket):
                connection.settimeout(1)
                connection.unwrap()  # So that the client knows that this is the end.
        finally:
            upstream.close()

    def _place_credentials(self, request, host, port, name, endpoint):
        """Puts values in place of placeholders, where the profile's placement has them."""
        def value_of(place, detail=''):
            def give(match):
                return self.sandbox.credential(match[1], (host, port), name, endpoint, place, detail) or match[0]
            return give

        self._refuse_elsewhere(request, host, port, name, endpoint)
        headers = []
        for key, value in request.headers:
            if key.lower() == 'authorization' and value[:6].lower() == 'basic ':
                try:
                    plain = base64.b64decode(value[6:], validate=True).decode()
                    value = value[:6] + base64.b64encode(PLACEHOLDER.sub(value_of('authorization'), plain).encode()).decode()
                except ValueError:
                    pass
            elif key.lower() == 'authorization':
                value = PLACEHOLDER.sub(value_of('authorization'), value)
            else:
                value = PLACEHOLDER.sub(value_of('header', key.lower()), value)
            headers.append((key, value))
        request.headers = headers
        path, mark, query = request.target.partition('?')
        parts = []
        for part in query.split('&'):
            key, equals, value = part.partition('=')
            plain = urllib.parse.unquote(value)
            placed = PLACEHOLDER.sub(value_of('query', key), plain)
            parts.append(key + equals + (value if placed == plain else urllib.parse.quote(placed, safe='')))
        query = '&'.join(parts)
        request.target = PLACEHOLDER.sub(value_of('path', path), path) + mark + query
        if endpoint.request_body_credential_rewrite:
            request.body = PLACEHOLDER.sub(value_of('body'), request.body.decode('latin-1')).encode('latin-1')

    def _refuse_elsewhere(self, request, host, port, name, endpoint):
        """A placeholder of a credential that is bound to other endpoints does not leave."""
        text = '\n'.join([request.target, *(f'{key}: {value}' for key, value in request.headers)])
        for match in PLACEHOLDER.finditer(urllib.parse.unquote(text)):
            if self.sandbox.bound_elsewhere(match[1], (host, port), name, endpoint):
                raise Denied('credential_endpoint_mismatch', f'{match[1]} is not for {host}:{port}')


def is_address(text):
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
