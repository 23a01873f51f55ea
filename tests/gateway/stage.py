# SPDX-License-Identifier: Apache-2.0
"""The namespaces, the servers and the gateway of these tests, and their clients."""
import base64
import json
import os
import select
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROXY = ("10.200.0.1", 3128)
CURL = os.path.realpath(shutil.which("curl") or "/usr/bin/curl")
PYTHON = os.path.realpath("/proc/self/exe")
TOKEN = "tok-5ecret/+value"
NAMES = ["api", "audit", "l4", "skip", "plain", "untrusted", "other", "sealed", "slash", "socket", "of.another"]

POLICY = """
version: 1
network_policies:
  api:
    endpoints:
      - host: api.example.test
        ports: [443, 9443, 9444, 9445]
        protocol: rest
        enforcement: enforce
        rules:
          - allow: {{method: GET, path: "/**"}}
          - allow: {{method: POST, path: "/post/**"}}
          - allow: {{method: POST, path: "/size"}}
          - allow: {{method: POST, path: "/early"}}
          - allow: {{method: GET, path: "/query", query: {{tag: "ok*"}}}}
        deny_rules:
          - {{method: GET, path: "/secret/**"}}
      - {{host: dns.example.test, port: 443, protocol: rest, enforcement: enforce, access: read-only}}
      - {{host: audit.example.test, port: 443, protocol: rest, enforcement: audit, access: read-only}}
      - {{host: untrusted.example.test, ports: [8443, 8444, 8445, 8446], protocol: rest, enforcement: enforce, access: full}}
      - {{host: of.another.example.test, port: 443, protocol: rest, enforcement: enforce, access: full}}
      - {{host: 169.254.169.254, port: 80, access: full}}
      - {{host: plain.example.test, port: 80, protocol: rest, enforcement: enforce, access: read-write}}
      - {{host: plain.example.test, port: 80, path: /ws, protocol: websocket, enforcement: enforce, access: full}}
      - {{host: slash.example.test, port: 443, protocol: rest, enforcement: enforce, access: full,
         allow_encoded_slash: true}}
      - {{host: socket.example.test, port: 443, protocol: websocket, enforcement: enforce, access: full}}
      - {{host: host.openshell.internal, port: 18080, protocol: rest, enforcement: enforce, access: full}}
      - {{host: here.example.test, port: 18080, protocol: rest, enforcement: enforce, access: full}}
      - {{host: 10.77.0.1, port: 18080, protocol: rest, enforcement: enforce, access: full}}
      - {{host: "*.wild.example.test", ports: [443, 18080], protocol: rest, enforcement: enforce, access: full}}
      - {{host: rebound.example.test, port: 443, protocol: rest, enforcement: enforce, access: full}}
      - {{host: nowhere.example.test, port: 443, protocol: rest, enforcement: enforce, access: full}}
    binaries: [{{path: {curl}}}, {{path: {python}}}, {{path: {folder}/replaced}}]
  raw:
    endpoints:
      - {{host: l4.example.test, ports: [443, 9000, 9001]}}
      - {{host: skip.example.test, port: 443, tls: skip}}
      - {{host: sealed.example.test, port: 443, tls: skip}}
      - {{host: api.example.test, port: 9000, protocol: rest, enforcement: enforce, access: full}}
    binaries: [{{path: {curl}}}, {{path: {python}}}]
  others:
    endpoints:
      - {{host: other.example.test, port: 443, protocol: rest, enforcement: enforce, access: full}}
    binaries: [{{path: /usr/bin/nothing-of-that-name}}]
"""


def run(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


# --- The stage -------------------------------------------------------------------------------------


def enter_namespaces():
    """Starts this script again inside namespaces of its own. Of processes, too: the gateway looks for the owner of a
    connection among all that there are, and a busy machine has many."""
    if os.environ.get("GATEWAY_TEST_INSIDE") == "1":
        return
    flags = ["--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
    if os.geteuid() != 0:
        flags += ["--user", "--map-root-user"]
    os.environ["GATEWAY_TEST_INSIDE"] = "1"
    if subprocess.run(["unshare", *flags, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        print("# SKIP userns: this machine gives no network namespace")
        sys.exit(77)
    os.execvp("unshare", ["unshare", *flags, PYTHON, os.path.abspath(sys.argv[0]), *sys.argv[1:]])


def make_certificates(folder):
    def openssl(*arguments):
        run("openssl", *arguments, cwd=folder)

    for authority in ("trusted", "strange"):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                "-subj", "/CN=" + authority, "-keyout", authority + ".key", "-out", authority + ".pem")
    with open(folder + "/names", "w") as out:
        out.write("subjectAltName=DNS:*.example.test,DNS:*.wild.example.test\n")
    for name, authority in (("server", "trusted"), ("stranger", "strange")):
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=" + name,
                "-keyout", name + ".key", "-out", name + ".csr")
        openssl("x509", "-req", "-in", name + ".csr", "-CA", authority + ".pem", "-CAkey", authority + ".key",
                "-CAcreateserial", "-days", "2", "-extfile", "names", "-out", name + ".pem")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "trusted.pem", "-CAkey", "trusted.key", "-CAcreateserial",
            "-days", "-1", "-extfile", "names", "-out", "expired.pem")
    openssl("req", "-new", "-key", "server.key", "-subj", "/CN=untrusted.example.test", "-out", "common.csr")
    for name, extension in (("common", "basicConstraints=CA:FALSE"), ("addressed", "subjectAltName=IP:10.77.0.2")):
        with open(folder + "/extension", "w") as out:
            out.write(extension + "\n")
        openssl("x509", "-req", "-in", "common.csr", "-CA", "trusted.pem", "-CAkey", "trusted.key",
                "-CAcreateserial", "-days", "2", "-extfile", "extension", "-out", name + ".pem")


class Stage:
    """The namespaces, the servers and the gateway; one for all tests."""

    def __init__(self, driver):
        self.folder = tempfile.mkdtemp(prefix="gateway-test-")
        self.children = []
        run("mount", "--make-rprivate", "/")
        run("ip", "link", "set", "lo", "up")
        run("ip", "address", "add", "10.200.0.1/32", "dev", "lo")
        run("ip", "address", "add", "93.184.216.77/32", "dev", "lo")  # A public address of this machine.
        holder = self.start(["unshare", "--net", "sleep", "1000"])
        self.await_namespace(holder.pid)
        run("ip", "link", "add", "near", "type", "veth", "peer", "name", "far", "netns", str(holder.pid))
        run("ip", "address", "add", "10.77.0.1/24", "dev", "near")
        run("ip", "link", "set", "near", "up")
        enter = ["nsenter", "--target", str(holder.pid), "--net"]
        run(*enter, "ip", "address", "add", "10.77.0.2/24", "dev", "far")
        run(*enter, "ip", "link", "set", "far", "up")
        run(*enter, "ip", "link", "set", "lo", "up")
        make_certificates(self.folder)
        self.cover("/etc/hosts", "127.0.0.1 localhost\n" +
                   "".join("10.77.0.2 %s.example.test\n" % name for name in NAMES))
        self.cover("/etc/resolv.conf", "nameserver 10.77.0.2\n")
        servers = self.start(enter + [PYTHON, HERE + "/upstream.py", self.folder])
        self.expect_ready(servers)
        threading.Thread(target=self.serve_loopback, daemon=True).start()
        with open(self.folder + "/policy.yaml", "w") as out:
            out.write(POLICY.format(curl=CURL, python=PYTHON, folder=self.folder))
        self.gateway = self.start([driver, self.folder + "/policy.yaml", self.folder + "/trusted.pem", self.folder,
                                   PROXY[0], str(PROXY[1]), str(os.getpid()), "API_TOKEN@api.example.test=" + TOKEN,
                                   "LOCAL@host.openshell.internal=local-secret",
                                   "PLAIN@plain.example.test=never-in-clear", "BAD@api.example.test=a\r\nX: y",
                                   "SEALED@sealed.example.test=unused"])
        self.expect_ready(self.gateway)

    def start(self, command):
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.children.append(child)
        return child

    def expect_ready(self, child):
        line = child.stdout.readline()
        if line != b"ready\n":
            raise SystemExit("a program of the test does not start: %r" % line)

    def await_namespace(self, pid):
        ours = os.readlink("/proc/self/ns/net")
        for _ in range(6000):
            if os.readlink("/proc/%d/ns/net" % pid) != ours:
                return
            time.sleep(0.02)
        raise SystemExit("no second network namespace")

    def cover(self, path, text):
        own = self.folder + "/" + os.path.basename(path)
        with open(own, "w") as out:
            out.write(text)
        run("mount", "--bind", own, os.path.realpath(path))

    def serve_loopback(self):
        """A server of this machine, as a local model is one."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("0.0.0.0", 18080))
        listener.listen(16)
        while True:
            connection, _ = listener.accept()
            data = b""
            while b"\r\n\r\n" not in data:
                more = connection.recv(65536)
                if not more:
                    break
                data += more
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
            connection.close()

    def events(self):
        with open(self.folder + "/events.jsonl") as lines:
            return [json.loads(line) for line in lines]

    def log(self):
        time.sleep(0.05)  # Its lines follow what they tell of, when the gateway next waits.
        with open(self.folder + "/events.log") as text:
            return text.read()

    def expect_log(self, text):
        """The log tells of it, sooner or later."""
        for _ in range(600):
            if text in self.log():
                return
        contains(self.log(), text)

    def close(self):
        for child in reversed(self.children):
            child.stdin.close()
            if child.poll() is None:
                child.terminate()
        for child in self.children:
            child.wait()
        for path in ("/etc/hosts", "/etc/resolv.conf"):
            subprocess.run(["umount", os.path.realpath(path)], stderr=subprocess.DEVNULL)
        shutil.rmtree(self.folder)


STAGE = None


def stage():
    return STAGE


def open_stage(driver):
    global STAGE
    STAGE = Stage(driver)
    return STAGE


# --- Clients ---------------------------------------------------------------------------------------


class Answer:
    def __init__(self, code, status, headers, body):
        self.code, self.status, self.headers, self.body = code, status, headers, body

    def json(self):
        return json.loads(self.body)


def curl(url, *options, ca=None, timeout=120):
    """Runs curl over HTTP/1 through the proxy: its exit code, the last status, the heads and the body."""
    heads = stage().folder + "/heads"
    body = stage().folder + "/body"
    for path in (heads, body):
        open(path, "wb").close()
    command = [CURL, "-sS", "--http1.1", "-m", str(timeout), "-x", "http://%s:%d" % PROXY, "--cacert",
               ca or stage().folder + "/ca.pem", "-D", heads, "-o", body, "-w", "%{http_code} %{http_connect}",
               *options, url]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    numbers = done.stdout.decode().split()
    status = int(numbers[0]) or int(numbers[1])
    with open(heads, "rb") as one, open(body, "rb") as two:
        return Answer(done.returncode, status, one.read().decode(), two.read())


def read_all(connection):
    data = b""
    try:
        while True:
            more = connection.recv(65536)
            if not more:
                break
            data += more
    except (ConnectionResetError, ssl.SSLError):
        pass
    return data


def connect_proxy():
    connection = socket.create_connection(PROXY, timeout=120)
    return connection


def unanswered(connections):
    """Whether none of them has been answered, or closed, by now."""
    return not select.select(connections, [], [], 0)[0]


def proxy_bytes(data):
    """Sends bytes to the proxy, as they are, and gives all that comes back."""
    with connect_proxy() as connection:
        connection.sendall(data)
        return read_all(connection)


def tunnel(target):
    """A CONNECT: the socket behind it and the head of the answer."""
    connection = connect_proxy()
    connection.sendall(b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (target.encode(), target.encode()))
    head = b""
    while b"\r\n\r\n" not in head:
        more = connection.recv(1)
        if not more:
            break
        head += more
    return connection, head


def tls_tunnel(host, port=443):
    connection, head = tunnel("%s:%d" % (host, port))
    assert b" 200 " in head, head
    context = ssl.create_default_context(cafile=stage().folder + "/ca.pem")
    return context.wrap_socket(connection, server_hostname=host)


def in_tunnel(data, host="api.example.test", port=443):
    """Sends bytes inside an inspected tunnel and gives all that comes back."""
    with tls_tunnel(host, port) as connection:
        connection.sendall(data)
        return read_all(connection)


def read_response(connection):
    """One response with a Content-Length."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(1)
        assert more, data
        data += more
    length = int([l for l in data.lower().split(b"\r\n") if l.startswith(b"content-length:")][0].split(b":")[1])
    body = b""
    while len(body) < length:
        body += connection.recv(length - len(body))
    return data, body


def request(path, *fields, method="GET", host="api.example.test", body=b""):
    lines = ["%s %s HTTP/1.1" % (method, path), "Host: " + host, *fields]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def equal(got, expected):
    assert got == expected, "got %r, expected %r" % (got, expected)


def contains(text, part):
    assert part in text, "%r is not in %r" % (part, text)


def lacks(text, part):
    assert part not in text, "%r is in %r" % (part, text)


def gateway_pid():
    children = open("/proc/%d/task/%d/children" % (stage().gateway.pid, stage().gateway.pid)).read().split()
    return int(children[0])
