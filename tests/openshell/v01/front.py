# SPDX-License-Identifier: Apache-2.0
"""The listener of the gateway, in front of grpc's own servers, which are Unix sockets.

OpenShell asks for a client certificate and does without one; Python's grpc requires one or asks for none. So TLS ends here, and
a connection goes on to the server for what its certificate says: none, a user's, an operator's. Tests also cut connections here.
"""
import os
import pathlib
import select
import socket
import ssl
import threading
from datetime import datetime, timedelta, timezone

BYTES = 1 << 16


def make_certificates(directory, hosts=('localhost', '127.0.0.1', '::1'), clients=None):
    """`ca.crt`, `server.crt`, `server.key`, and `NAME.crt`, `NAME.key` for each client, {name: organizational unit}."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
    import ipaddress
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    now = datetime.now(timezone.utc)

    def name(common, unit=''):
        parts = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
        return x509.Name(parts + ([x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, unit)] if unit else []))

    def issue(subject, key, issuer, issuer_key, extensions):
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - timedelta(days=1))
        builder = builder.not_valid_after(now + timedelta(days=30))
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical)
        return builder.sign(issuer_key, hashes.SHA256())

    def write(stem, certificate, key=None):
        (directory / f'{stem}.crt').write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        if key:
            path = directory / f'{stem}.key'
            path.touch(0o600)
            path.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                               serialization.NoEncryption()))

    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca = name('gateway of the tests')
    write('ca', issue(ca, ca_key, ca, ca_key, [(x509.BasicConstraints(ca=True, path_length=0), True)]))

    def alternative(host):
        try:
            return x509.IPAddress(ipaddress.ip_address(host))
        except ValueError:
            return x509.DNSName(host)

    key = ec.generate_private_key(ec.SECP256R1())
    write('server', issue(name('gateway'), key, ca, ca_key,
                          [(x509.SubjectAlternativeName([alternative(host) for host in hosts]), False)]), key)
    for client, unit in (clients if clients is not None else {'user': '', 'operator': 'operator'}).items():
        key = ec.generate_private_key(ec.SECP256R1())
        use = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
        write(client, issue(name(client, unit), key, ca, ca_key, [(use, False)]), key)


class Front:
    """Listens at `address`; `backends(certificate)` gives the Unix socket for a connection with this certificate or None."""

    def __init__(self, address, tls, backends):
        self.backends, self.lock, self.open, self.refusing = backends, threading.Lock(), set(), False
        self.context = None
        if tls:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(f'{tls}/server.crt', f'{tls}/server.key')
            self.context.load_verify_locations(f'{tls}/ca.crt')
            self.context.verify_mode = ssl.CERT_OPTIONAL
            self.context.set_alpn_protocols(['h2'])
        family = socket.AF_INET6 if ':' in address[0] else socket.AF_INET
        self.listener = socket.create_server(address, family=family, backlog=128)
        self.address = self.listener.getsockname()[:2]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, refuse=False):
        """Ends all connections at once. `refuse`: and takes no new ones."""
        with self.lock:
            self.refusing = refuse
            for end in list(self.open):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut(refuse=True)

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        certificate, backend = None, None
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.refusing:
                return
            if self.context:
                connection.settimeout(20)
                connection = self.context.wrap_socket(connection, server_side=True)
                certificate = connection.getpeercert() or None
            backend = socket.socket(socket.AF_UNIX)
            backend.connect(self.backends(certificate))
            with self.lock:
                self.open |= {connection, backend}
            relay(connection, backend)
        except (OSError, ValueError):
            pass  # A client that is not one, or has gone: it knows.
        finally:
            with self.lock:
                self.open -= {connection, backend}
            connection.close()
            if backend:
                backend.close()


def relay(one, other):
    """Bytes in both directions, each end closed for writing when the other has no more, until both have ended."""
    for end in (one, other):
        end.setblocking(False)
    waiting = {one: bytearray(), other: bytearray()}  # What is still to be written there.
    peer, ended, shut = {one: other, other: one}, set(), set()
    while True:
        for end in (one, other):
            if peer[end] in ended and not waiting[end] and end not in shut:
                shut.add(end)
                if isinstance(end, ssl.SSLSocket):
                    return  # TLS has no half-close that both sides keep.
                end.shutdown(socket.SHUT_WR)
        if len(shut) == 2:
            return
        pending = [end for end in (one, other) if isinstance(end, ssl.SSLSocket) and end.pending()]
        reading = [end for end in (one, other) if end not in ended and len(waiting[peer[end]]) < 16 * BYTES]
        writing = [end for end in (one, other) if waiting[end]]
        readable, writable, _ = select.select(reading, writing, [], 0 if pending else 60)
        for end in set(readable) | (set(pending) & set(reading)):
            try:
                data = end.recv(BYTES)
            except (ssl.SSLWantReadError, BlockingIOError):
                continue
            if not data:
                ended.add(end)
            waiting[peer[end]] += data
        for end in writable:
            try:
                del waiting[end][:end.send(bytes(waiting[end][:BYTES]))]
            except (ssl.SSLWantWriteError, ssl.SSLWantReadError, BlockingIOError):
                continue


def unit_of(certificate):
    return dict(pair for part in certificate['subject'] for pair in part).get('organizationalUnitName', '')


def common_name_of(certificate):
    return dict(pair for part in certificate['subject'] for pair in part).get('commonName', '')


def socket_path(directory, name):
    return os.path.join(directory, f'{name}.sock')
