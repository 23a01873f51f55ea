# SPDX-License-Identifier: Apache-2.0
"""Services on this machine's loopback, over TLS: they keep what they were asked and answer with nothing
of it. One of them hands out tokens."""
import json
import os
import socket
import ssl
import subprocess
import threading

NAMES = ("host.openshell.internal", "host.docker.internal")


def make_certificates(folder):
    """A certificate authority of the test's own, and a certificate for NAMES."""
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=folder)

    new = ("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl(*new, "-x509", "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=test",
            "-addext", "keyUsage=critical,keyCertSign")
    openssl(*new, "-keyout", "leaf.key", "-out", "leaf.csr", "-subj", "/CN=leaf")
    with open(os.path.join(folder, "names"), "w") as out:
        out.write("authorityKeyIdentifier=keyid\nsubjectAltName=" + ",".join("DNS:" + name for name in NAMES) + "\n")
    openssl("x509", "-req", "-in", "leaf.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
            "-days", "2", "-extfile", "names", "-out", "leaf.pem")


class Asked:
    """One request as it arrived."""

    def __init__(self, head, body):
        lines = head.decode("latin-1").split("\r\n")
        self.method, self.target, _ = lines[0].split(" ")
        self.fields = [line.split(": ", 1) for line in lines[1:] if line]
        self.body = body

    def field(self, name):
        """Its values, in order."""
        return [value for key, value in self.fields if key.lower() == name.lower()]


def read_request(connection):
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return None
        data += more
    head, _, rest = data.partition(b"\r\n\r\n")
    lower = head.lower()

    def fill(size):
        nonlocal rest
        while len(rest) < size:
            more = connection.recv(65536)
            if not more:
                raise ConnectionError("cut")
            rest += more

    if b"transfer-encoding: chunked" in lower:
        body = b""
        while True:
            while b"\r\n" not in rest:
                fill(len(rest) + 1)
            size, _, rest = rest.partition(b"\r\n")
            size = int(size, 16)
            fill(size + 2)
            body, rest = body + rest[:size], rest[size + 2:]
            if size == 0:
                return Asked(head, body)
    length = [int(line.split(b":")[1]) for line in lower.split(b"\r\n") if line.startswith(b"content-length:")]
    fill(length[0] if length else 0)
    return Asked(head, rest[:length[0] if length else 0])


class Upstream:
    def __init__(self, folder):
        make_certificates(folder)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(folder + "/leaf.pem", folder + "/leaf.key")
        self.asked = {}  # By the case's name, which X-Case says.
        self.tokens = []  # What the token service was asked.
        self.token_lifetime = 3600
        self.refuse_tokens = False
        self.lock = threading.Lock()

    def listen(self, answer=None, extra=lambda: ""):
        """A port of its own. `answer`: gives (status, body) for an Asked; `extra`: further lines of the head."""
        listener = socket.create_server(("127.0.0.1", 0), backlog=64)

        def serve(connection):
            try:
                connection.settimeout(120)
                with self.context.wrap_socket(connection, server_side=True) as inside:
                    while True:
                        asked = read_request(inside)
                        if asked is None:
                            return
                        status, body = (answer or self.keep)(asked)
                        inside.sendall(b"HTTP/1.1 %d Answer\r\n%sContent-Length: %d\r\n\r\n%s" %
                                       (status, extra().encode(), len(body), body))
            except OSError:
                pass

        def accept():
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()
        threading.Thread(target=accept, daemon=True).start()
        return listener.getsockname()[1]

    def keep(self, asked):
        with self.lock:
            self.asked[(asked.field("x-case") or [asked.target])[0]] = asked
        return 200, b"fine"

    def echo(self, asked):
        """As a debugging service does: the request's head is the answer."""
        self.keep(asked)
        return 200, "".join("%s: %s\r\n" % (name, value) for name, value in asked.fields).encode()

    def grant(self, asked):
        """The token service: a source of subject tokens, an exchange, an account, and OAuth."""
        with self.lock:
            self.tokens.append(asked)
            count = len(self.tokens)
        if asked.target.startswith("/subject"):
            return 200, json.dumps({"value": "subject-jwt-5ecret"}).encode()
        if self.refuse_tokens:
            return 400, json.dumps({"error": "invalid_grant", "error_description": "no"}).encode()
        token = "granted-t0ken-%d" % count
        if asked.target.startswith("/account"):
            return 200, json.dumps({"accessToken": token, "expireTime": "2099-01-01T00:00:00Z"}).encode()
        return 200, json.dumps({"access_token": token, "expires_in": self.token_lifetime}).encode()
