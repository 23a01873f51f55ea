#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gateway process with real clients (curl, raw sockets, Python's TLS) and real servers.

Usage: gateway_test.py GATEWAY_DRIVER [TEST_NAME...]

Everything happens in namespaces of the test's own: this script enters a network and a mount namespace
(with a user namespace when it is not root), where the proxy listens on 10.200.0.1:3128 as in a sandbox,
and starts the servers in a second network namespace behind a veth pair, 10.77.0.0/24.
"""
import base64
import json
import os
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
NAMES = ["api", "audit", "l4", "skip", "plain", "untrusted", "other", "sealed", "slash"]

POLICY = """
version: 1
network_policies:
  api:
    endpoints:
      - host: api.example.test
        ports: [443, 9443]
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
      - {{host: untrusted.example.test, port: 8443, protocol: rest, enforcement: enforce, access: full}}
      - {{host: plain.example.test, port: 80, protocol: rest, enforcement: enforce, access: read-write}}
      - {{host: slash.example.test, port: 443, protocol: rest, enforcement: enforce, access: full,
         allow_encoded_slash: true}}
      - {{host: host.openshell.internal, port: 18080, protocol: rest, enforcement: enforce, access: full}}
      - {{host: "*.wild.example.test", port: 443, protocol: rest, enforcement: enforce, access: full}}
      - {{host: rebound.example.test, port: 443, protocol: rest, enforcement: enforce, access: full}}
      - {{host: nowhere.example.test, port: 443, protocol: rest, enforcement: enforce, access: full}}
    binaries: [{{path: {curl}}}, {{path: {python}}}]
  raw:
    endpoints:
      - {{host: l4.example.test, ports: [443, 9000]}}
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
    """Starts this script again inside namespaces of its own."""
    if os.environ.get("GATEWAY_TEST_INSIDE") == "1":
        return
    flags = ["--net", "--mount"] if os.geteuid() == 0 else ["--user", "--map-root-user", "--net", "--mount"]
    os.environ["GATEWAY_TEST_INSIDE"] = "1"
    if subprocess.run(["unshare", *flags, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        print("SKIPPED: this machine gives no network namespace")
        sys.exit(77)
    os.execvp("unshare", ["unshare", *flags, PYTHON, os.path.abspath(__file__), *sys.argv[1:]])


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


class Stage:
    """The namespaces, the servers and the gateway; one for all tests."""

    def __init__(self, driver):
        self.folder = tempfile.mkdtemp(prefix="gateway-test-")
        self.children = []
        run("mount", "--make-rprivate", "/")
        run("ip", "link", "set", "lo", "up")
        run("ip", "address", "add", "10.200.0.1/32", "dev", "lo")
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
            out.write(POLICY.format(curl=CURL, python=PYTHON))
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
        for _ in range(200):
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
        listener.bind(("127.0.0.1", 18080))
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
        with open(self.folder + "/events.log") as text:
            return text.read()

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

# --- Clients ---------------------------------------------------------------------------------------


class Answer:
    def __init__(self, code, status, headers, body):
        self.code, self.status, self.headers, self.body = code, status, headers, body

    def json(self):
        return json.loads(self.body)


def curl(url, *options, ca=None, timeout=15):
    """Runs curl over HTTP/1 through the proxy: its exit code, the last status, the heads and the body."""
    heads = STAGE.folder + "/heads"
    body = STAGE.folder + "/body"
    for path in (heads, body):
        open(path, "wb").close()
    command = [CURL, "-sS", "--http1.1", "-m", str(timeout), "-x", "http://%s:%d" % PROXY, "--cacert",
               ca or STAGE.folder + "/ca.pem", "-D", heads, "-o", body, "-w", "%{http_code} %{http_connect}",
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
    connection = socket.create_connection(PROXY, timeout=10)
    return connection


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
    context = ssl.create_default_context(cafile=STAGE.folder + "/ca.pem")
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


# --- Connections -----------------------------------------------------------------------------------


def test_an_allowed_request_reaches_the_server_and_is_recorded():
    answer = curl("https://api.example.test/echo?x=1")
    equal((answer.code, answer.status), (0, 200))
    contains(answer.body, b"GET /echo?x=1 HTTP/1.1\r\nHost: api.example.test\r\n")
    contains(STAGE.log(), " OCSF NET:OPEN [INFO] ALLOWED %s(" % CURL)
    contains(STAGE.log(), " -> api.example.test:443 [policy:api engine:opa]")
    contains(STAGE.log(), "-> GET https://api.example.test/echo [policy:api engine:l7]")
    lacks(STAGE.log(), "x=1")


def test_an_undeclared_host_is_refused_before_it_is_resolved():
    answer = curl("https://example.org/")
    equal(answer.status, 403)
    contains(answer.headers, "403 Forbidden")
    _, head = tunnel("example.org:443")
    contains(head, b"HTTP/1.1 403 Forbidden\r\n")
    denied = [e for e in STAGE.events() if e["unmapped"]["host"] == "example.org"][0]
    equal(denied["unmapped"]["decision"], "denied")
    equal(denied["unmapped"]["binary"], CURL)
    equal((denied["class_uid"], denied["type_uid"], denied["action"]), (4001, 400105, "Denied"))


def test_the_refusal_of_a_connection_says_why_in_json():
    text = proxy_bytes(b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n")
    head, body = text.split(b"\r\n\r\n", 1)
    contains(head, b"Content-Type: application/json")
    contains(head, b"Connection: close")
    fields = json.loads(body)
    equal(fields["error"], "policy_denied")
    equal(fields["detail"], "CONNECT example.org:443 not permitted by policy")
    assert fields["reason"]


def test_another_port_of_an_allowed_host_is_refused():
    equal(curl("https://api.example.test:8443/").status, 403)


def test_a_program_that_the_policy_does_not_name_is_refused():
    equal(curl("https://other.example.test/").status, 403)
    contains(STAGE.log(), "other.example.test:443 [policy:- engine:opa] [reason:binary '%s' not allowed" % CURL)


def test_a_copy_of_an_allowed_program_elsewhere_is_refused():
    copy = STAGE.folder + "/curl"
    shutil.copy(CURL, copy)
    # Through env(1): neither the copy nor its parents are named by the policy, except this script's Python.
    done = subprocess.run([copy, "-s", "-o", "/dev/null", "-w", "%{http_connect}", "-x", "http://%s:%d" % PROXY,
                           "https://other.example.test/"], stdout=subprocess.PIPE)
    equal(done.stdout, b"403")
    contains(STAGE.log(), copy + "(")


def test_a_program_replaced_after_its_first_use_is_refused():
    copy = STAGE.folder + "/replaced"

    def status():
        done = subprocess.run([copy, "-s", "-o", "/dev/null", "-w", "%{http_connect}", "-x",
                               "http://%s:%d" % PROXY, "--cacert", STAGE.folder + "/ca.pem",
                               "https://api.example.test/echo"], stdout=subprocess.PIPE)
        return done.stdout
    shutil.copy(CURL, copy)
    status()
    os.unlink(copy)
    shutil.copy(CURL, copy)
    with open(copy, "ab") as out:
        out.write(b"\0changed")
    equal(status(), b"403")
    contains(STAGE.log(), "Binary integrity violation: " + copy)


def test_loopback_link_local_and_rebound_names_are_refused():
    equal(curl("https://rebound.example.test/").status, 403)
    text = proxy_bytes(b"CONNECT rebound.example.test:443 HTTP/1.1\r\nHost: rebound.example.test:443\r\n\r\n")
    fields = json.loads(text.split(b"\r\n\r\n", 1)[1])
    equal(fields["error"], "ssrf_denied")
    contains(fields["detail"], "CONNECT rebound.example.test:443 blocked: ")
    contains(STAGE.log(), "rebound.example.test:443 [policy:api engine:ssrf]")
    equal(curl("https://metadata.wild.example.test/").status, 403)


def test_a_wildcard_never_leads_to_a_private_address():
    for name in ("private", "mixed"):
        text = proxy_bytes(b"CONNECT %s.wild.example.test:443 HTTP/1.1\r\nHost: x\r\n\r\n" % name.encode())
        equal(json.loads(text.split(b"\r\n\r\n", 1)[1])["detail"],
              "CONNECT %s.wild.example.test:443 blocked: internal address" % name)


def test_a_name_is_resolved_over_dns():
    answer = curl("https://dns.example.test/echo")
    equal((answer.code, answer.status), (0, 200))


def test_a_name_without_an_address_is_a_bad_gateway():
    text = proxy_bytes(b"CONNECT nowhere.example.test:443 HTTP/1.1\r\nHost: x\r\n\r\n")
    contains(text, b"HTTP/1.1 502 ")
    equal(json.loads(text.split(b"\r\n\r\n", 1)[1])["error"], "upstream_unreachable")


def test_the_alias_of_this_machine_reaches_its_loopback():
    answer = curl("http://host.openshell.internal:18080/v1/models", "-H",
                  "Authorization: Bearer openshell:resolve:env:LOCAL")
    equal(answer.status, 200)
    contains(answer.body, b"Authorization: Bearer local-secret\r\n")
    equal(curl("http://127.0.0.1:18080/", "--noproxy", "").status, 403)
    equal(curl("http://localhost:18080/", "--noproxy", "").status, 403)


def test_a_connect_head_above_8_kib_is_too_large():
    head = b"CONNECT api.example.test:443 HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * 8192 + b"\r\n\r\n"
    contains(proxy_bytes(head), b"HTTP/1.1 431 ")


def test_malformed_connects_are_bad_requests():
    for target in (b"host", b"host:", b"host:abc", b"host:70000", b"127.1:443", b"ho/st:1", b"user@host:443"):
        contains(proxy_bytes(b"CONNECT " + target + b" HTTP/1.1\r\nHost: x\r\n\r\n"), b"HTTP/1.1 400 ")
    for field in (b"Content-Length: 0", b"Transfer-Encoding: chunked"):
        text = proxy_bytes(b"CONNECT api.example.test:443 HTTP/1.1\r\nHost: x\r\n" + field + b"\r\n\r\n")
        contains(text, b"HTTP/1.1 400 ")
    contains(proxy_bytes(b"GET / HTTP/1.1\nHost: x\n\n"), b"HTTP/1.1 400 ")
    contains(proxy_bytes(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"), b"HTTP/1.1 400 ")
    contains(proxy_bytes(b"\x04\x01\x00\x50\x7f\x00\x00\x01\x00\r\n\r\n"), b"HTTP/1.1 400 ")


# --- Tunnels ---------------------------------------------------------------------------------------


def test_tls_skip_tunnels_the_servers_own_certificate():
    answer = curl("https://skip.example.test/echo", ca=STAGE.folder + "/trusted.pem")
    equal((answer.code, answer.status), (0, 200))
    equal(curl("https://skip.example.test/echo").code, 60)


def test_a_credential_bound_to_an_uninspected_host_is_refused():
    text = proxy_bytes(b"CONNECT sealed.example.test:443 HTTP/1.1\r\nHost: x\r\n\r\n")
    equal(json.loads(text.split(b"\r\n\r\n", 1)[1])["error"], "uninspected_credentials")


def test_a_connection_only_endpoint_carries_any_bytes_both_ways():
    connection, head = tunnel("l4.example.test:9000")
    with connection:
        contains(head, b" 200 ")
        equal(connection.recv(100), b"HELLO\n")
        connection.sendall(b"\0\x01binary")
        equal(connection.recv(100), b"\0\x01binary")
        connection.shutdown(socket.SHUT_WR)
        equal(read_all(connection), b"")


def test_bytes_that_are_not_http_are_refused_on_an_inspected_endpoint():
    connection, head = tunnel("api.example.test:9000")
    with connection:
        contains(head, b" 200 ")
        connection.sendall(b"\0\x01binary, and more than enough of it")
        contains(read_all(connection), b'"error":"unsupported_l7_protocol"')


def test_tls_on_a_connection_only_endpoint_is_terminated_and_recorded():
    answer = curl("https://l4.example.test/echo", "-X", "DELETE")
    equal((answer.code, answer.status), (0, 200))
    contains(STAGE.log(), "HTTP:DELETE [INFO] ALLOWED %s(" % CURL)


def test_an_upstream_certificate_of_a_stranger_is_refused():
    answer = curl("https://untrusted.example.test:8443/")
    equal(answer.status, 502)
    contains(answer.json()["detail"], "certificate verify failed")
    contains(STAGE.log(), "NET:FAIL [LOW] %s(" % CURL)


def test_the_sandbox_certificate_names_the_host_alone():
    with tls_tunnel("api.example.test") as connection:
        certificate = connection.getpeercert()
        equal(certificate["subjectAltName"], (("DNS", "api.example.test"),))
        equal(dict(part[0] for part in certificate["issuer"])["commonName"], "OpenShell Sandbox CA")
        equal(connection.version(), "TLSv1.3")


def test_http2_is_refused_with_an_http1_answer():
    text = in_tunnel(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
    contains(text, b"HTTP/1.1 403 ")
    contains(text, b"unsupported_l7_protocol")
    text = in_tunnel(request("/echo", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AA"))
    contains(text, b"unsupported_l7_protocol")


# --- Requests --------------------------------------------------------------------------------------


def test_a_request_that_no_rule_allows_gets_the_documented_answer():
    answer = curl("https://api.example.test/repos/x?token=hidden", "-X", "DELETE")
    equal((answer.code, answer.status), (0, 403))
    contains(answer.headers, "X-OpenShell-Policy: api")
    fields = answer.json()
    equal(fields["error"], "policy_denied")
    equal(fields["policy"], "api")
    equal(fields["rule"], "DELETE /repos/x")
    equal(fields["detail"], "DELETE /repos/x not permitted by policy")
    equal((fields["layer"], fields["protocol"], fields["host"], fields["port"]), ("l7", "rest", "api.example.test", 443))
    equal(fields["rule_missing"]["type"], "rest_allow")
    lacks(answer.body, b"hidden")
    contains(STAGE.log(), "HTTP:DELETE [MED] DENIED %s(" % CURL)
    lacks(STAGE.log(), "hidden")


def test_a_deny_rule_wins():
    fields = curl("https://api.example.test/secret/x").json()
    contains(fields["detail"], "blocked by deny rule")
    equal(curl("https://api.example.test/x/../secret/y", "--path-as-is").status, 403)
    equal(curl("https://api.example.test/%73ecret/y").status, 403)


def test_the_path_that_is_judged_is_the_path_that_is_forwarded():
    for sent, forwarded in (("/a/./b", "/a/b"), ("//public//x", "/public/x"), ("/%70ost/x", "/post/x"),
                            ("/a/caf%c3%a9", "/a/caf%C3%A9"), ("/x;p=1/y", "/x/y")):
        contains(in_tunnel(request(sent, "Connection: close")), b"GET %s HTTP/1.1\r\n" % forwarded.encode())
    for bad in ("/a/../../x", "/a%00b", "/a%2fb", "/%zz", "/a#b"):
        equal(in_tunnel(request(bad)), b"")
    contains(in_tunnel(request("/a%2fb", "Connection: close", host="slash.example.test"), "slash.example.test"),
             b"GET /a%2Fb HTTP/1.1\r\n")


def test_an_audited_endpoint_passes_what_it_would_refuse_and_says_so():
    answer = curl("https://audit.example.test/x", "-X", "DELETE")
    equal((answer.code, answer.status), (0, 200))
    event = [e for e in STAGE.events() if e["unmapped"]["host"] == "audit.example.test" and "http_request" in e][0]
    equal(event["unmapped"]["decision"], "audited")
    equal(event["action"], "Allowed")
    contains(event["message"], "L7_REQUEST audit DELETE audit.example.test:443/x")


def test_another_host_behind_an_allowed_connection_is_refused():
    text = in_tunnel(request("/echo", host="evil.example.test"))
    contains(text, b"request_authority_mismatch")
    text = in_tunnel(request("http://evil.example.test/", host="api.example.test"))
    contains(text, b"request_authority_mismatch")
    contains(in_tunnel(request("/echo", "Connection: close", host="API.example.test.")), b"HTTP/1.1 200 ")
    contains(in_tunnel(request("/echo", host="api.example.test"), port=9443), b"request_authority_mismatch")
    contains(in_tunnel(request("/echo", "Connection: close", host="api.example.test:9443"), port=9443),
             b"HTTP/1.1 200 ")


def test_smuggled_requests_close_the_connection_and_reach_nobody():
    smuggle = [
        request("/echo", "Content-Length: 5", "Transfer-Encoding: chunked", body=b"0\r\n\r\n"),
        request("/echo", "Transfer-Encoding: chunked", "Content-Length: 5", body=b"0\r\n\r\n"),
        request("/echo", "Content-Length: 0", "Content-Length: 50"),
        request("/echo", "Content-Length: abc"),
        request("/echo", "Content-Length: +5", body=b"hello"),
        request("/echo", "Transfer-Encoding: gzip, chunked"),
        request("/echo", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
        request("/echo", "Transfer-Encoding: xchunked"),
        request("/echo", "X: a\r\n b"),
        request("/echo", "X : a"),
        request("/echo", "X: a\x00b"),
        request("/echo", "X: a\rb"),
        request("/echo", "Host: api.example.test"),
        request("/echo", "Connection: content-length"),
        b"GET /echo HTTP/1.1\r\n\r\n",
        b"GET  /echo HTTP/1.1\r\nHost: api.example.test\r\n\r\n",
        b"GET /echo HTTP/1.1\nHost: api.example.test\n\n",
        b"GET /echo HTTP/3.0\r\nHost: api.example.test\r\n\r\n",
    ]
    for data in smuggle:
        equal((data, in_tunnel(data)), (data, b""))
    contains(STAGE.log(), "engine:http-parser")


def test_two_bodies_of_equal_length_are_one():
    text = in_tunnel(request("/post/x", "Content-Length: 2", "Content-Length: 2", "Connection: close", method="POST",
                             body=b"ok"))
    equal(text.count(b"Content-Length: 2\r\n"), 1)


def test_a_chunked_body_is_streamed_and_framed_anew():
    body = b"5;ext=1\r\nhello\r\n6\r\n world\r\n0\r\nX-Trailer: kept\r\nHost: dropped\r\n\r\n"
    text = in_tunnel(request("/post/x", "Transfer-Encoding: chunked", "Connection: close", method="POST", body=body))
    contains(text, b"Transfer-Encoding: chunked\r\n")
    contains(text, b"5\r\nhello\r\n6\r\n world\r\n0\r\nX-Trailer: kept\r\n\r\n")
    lacks(text, b"ext=1")
    lacks(text, b"dropped")


def test_a_malformed_chunk_never_completes_a_request():
    for body in (b"5\nhello\n0\n\n", b"-5\r\nhello\r\n0\r\n\r\n", b"5\r\nhelloworld\r\n0\r\n\r\n", b"0x5\r\nhello\r\n0\r\n\r\n"):
        text = in_tunnel(request("/post/x", "Transfer-Encoding: chunked", method="POST", body=body))
        equal((body, text), (body, b""))


def test_large_bodies_pass_in_both_directions():
    big = STAGE.folder + "/big"
    with open(big, "wb") as out:
        out.write(b"y" * 6000000)
    answer = curl("https://api.example.test/size", "--data-binary", "@" + big, "-H", "Expect: 100-continue")
    equal(answer.body, b"6000000")
    equal(len(curl("https://api.example.test/big").body), 8000000)


def test_an_early_answer_to_a_large_body_arrives():
    big = STAGE.folder + "/big2"
    with open(big, "wb") as out:
        out.write(b"y" * 6000000)
    answer = curl("https://api.example.test/early", "--data-binary", "@" + big)
    equal(answer.status, 413)


def test_one_tunnel_carries_many_requests():
    with tls_tunnel("api.example.test") as connection:
        for number in range(5):
            connection.sendall(request("/echo?n=%d" % number))
            head, body = read_response(connection)
            contains(head, b"HTTP/1.1 200 ")
            contains(body, b"GET /echo?n=%d HTTP/1.1" % number)
        connection.sendall(request("/echo?a") + request("/echo?b"))  # Pipelined.
        contains(read_response(connection)[1], b"GET /echo?a ")
        contains(read_response(connection)[1], b"GET /echo?b ")


def test_a_server_that_closed_meanwhile_is_dialled_again():
    with tls_tunnel("api.example.test") as connection:
        for _ in range(3):
            connection.sendall(request("/once"))
            equal(read_response(connection)[1], b"once")
            time.sleep(0.05)


def test_events_arrive_while_they_are_sent():
    with tls_tunnel("api.example.test") as connection:
        connection.sendall(request("/sse"))
        arrived = []
        data = b""
        while not data.endswith(b"0\r\nX-Trailer: kept\r\n\r\n"):
            data += connection.recv(65536)
            arrived.append(time.monotonic())
        lacks(data, b"dropped")
        assert arrived[-1] - arrived[0] > 0.6, "the events came all at once"
        connection.sendall(request("/echo"))
        contains(read_response(connection)[0], b"200 OK")


def test_answers_are_framed_as_http_says():
    equal(curl("https://api.example.test/unframed").body, b"until the end")
    equal(curl("https://api.example.test/nothing").status, 204)
    equal(curl("https://api.example.test/unchanged").status, 304)
    equal(curl("https://api.example.test/hints").body, b"hinted")
    head = curl("https://api.example.test/echo", "-I")
    equal((head.code, head.status), (0, 200))
    contains(head.headers, "Content-Length: 1234")


def test_a_cut_answer_is_seen_to_be_cut():
    equal(curl("https://api.example.test/cut").code, 18)
    equal(curl("https://api.example.test/short").code, 18)


def test_a_contradictory_answer_is_a_bad_gateway():
    equal(curl("https://api.example.test/both").status, 502)


def test_switching_protocols_unasked_is_a_bad_gateway():
    equal(curl("https://api.example.test/switch").status, 502)


def test_a_websocket_is_relayed():
    with tls_tunnel("api.example.test") as connection:
        connection.sendall(request("/ws", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
                                   "Sec-WebSocket-Key: " + base64.b64encode(b"0123456789abcdef").decode()))
        head = b""
        while b"\r\n\r\n" not in head:
            head += connection.recv(1)
        contains(head, b"HTTP/1.1 101 ")
        connection.sendall(b"\x81\x02hi")
        data = b""
        while len(data) < 9:
            data += connection.recv(9)
        equal(data, b"echo:\x81\x02hi")


def test_a_query_is_judged_and_kept():
    contains(curl("https://api.example.test/query?tag=ok%2B1").body, b"GET /query?tag=ok%2B1 ")
    equal(in_tunnel(request("/echo?bad=%2")), b"")


def test_hop_by_hop_fields_stay_here():
    text = in_tunnel(request("/echo", "Connection: close, X-Mine", "X-Mine: 1", "X-Yours: 2", "Proxy-Authorization: x",
                             "TE: trailers", "Keep-Alive: 5"))
    contains(text, b"X-Yours: 2\r\n")
    for gone in (b"X-Mine", b"Proxy-Authorization", b"TE:", b"Keep-Alive"):
        lacks(text, gone)


def test_plain_http_inside_a_tunnel_is_inspected():
    answer = curl("http://plain.example.test/echo", "-p")
    contains(answer.body, b"GET /echo HTTP/1.1\r\nHost: plain.example.test\r\n")
    equal(curl("http://plain.example.test/x", "-p", "-X", "DELETE").status, 403)


# --- Forwarded requests ----------------------------------------------------------------------------


def test_an_absolute_request_is_forwarded_once():
    answer = curl("http://plain.example.test/echo?a=1")
    equal((answer.code, answer.status), (0, 200))
    contains(answer.body, b"GET /echo?a=1 HTTP/1.1\r\nHost: plain.example.test\r\n")
    contains(answer.body, b"Via: 1.1 openshell-sandbox\r\n")
    contains(answer.headers, "Connection: close")
    data = b"GET http://plain.example.test/echo HTTP/1.1\r\nHost: plain.example.test\r\n\r\n"
    equal(proxy_bytes(data + data).count(b"HTTP/1.1 200 OK"), 1)


def test_forwarded_requests_are_judged_like_others():
    equal(curl("http://plain.example.test/x", "-X", "DELETE").json()["detail"],
          "DELETE plain.example.test:80/x denied by L7 policy: DELETE /x not permitted by policy")
    fields = curl("http://example.org/x").json()
    equal(fields, {"error": "policy_denied", "detail": "GET example.org:80/x not permitted by policy"})
    equal(curl("http://api.example.test/").status, 403)
    posted = curl("http://plain.example.test/size", "-d", "12345")
    equal(posted.body, b"5")


def test_malformed_forward_targets_are_told():
    def error(target, host):
        text = proxy_bytes(b"GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (target, host))
        contains(text, b"HTTP/1.1 400 ")
        return text
    contains(error(b"https://api.example.test/", b"api.example.test"), b"CONNECT")
    contains(error(b"ftp://api.example.test/", b"api.example.test"), b"unsupported_proxy_scheme")
    contains(error(b"http://plain.example.test/../x", b"plain.example.test"), b"invalid_request_target")
    text = proxy_bytes(b"GET http://plain.example.test/ HTTP/1.1\r\nHost: other\r\n\r\n")
    contains(text, b"request_authority_mismatch")


# --- Credentials -----------------------------------------------------------------------------------

PLACEHOLDER = "openshell:resolve:env:API_TOKEN"


def test_a_placeholder_becomes_the_secret_for_its_host_only():
    answer = curl("https://api.example.test/echo", "-H", "Authorization: Bearer " + PLACEHOLDER)
    contains(answer.body, b"Authorization: Bearer " + TOKEN.encode() + b"\r\n")
    contains(curl("https://api.example.test/echo", "-H", "X-Api-Key: " + PLACEHOLDER).body, TOKEN.encode())
    basic = curl("https://api.example.test/echo", "-u", "user:" + PLACEHOLDER)
    contains(basic.body, base64.b64encode(b"user:" + TOKEN.encode()))
    query = curl("https://api.example.test/echo?key=openshell%3Aresolve%3Aenv%3AAPI_TOKEN")
    contains(query.body, b"key=tok-5ecret%2F%2Bvalue")
    for host in ("dns", "l4"):
        refused = curl("https://%s.example.test/echo" % host, "-H", "Authorization: Bearer " + PLACEHOLDER)
        equal((refused.status, refused.json()["error"]), (403, "credential_endpoint_mismatch"))


def test_an_unknown_or_unsafe_credential_is_unavailable():
    for name in ("NOBODY", "BAD"):
        answer = curl("https://api.example.test/echo", "-H", "X: openshell:resolve:env:" + name)
        equal((answer.status, answer.json()["error"]), (500, "credential_unavailable"))


def test_a_secret_never_travels_in_the_clear():
    answer = curl("http://plain.example.test/echo", "-H", "X: openshell:resolve:env:PLAIN")
    equal((answer.status, answer.json()["error"]), (403, "credential_endpoint_mismatch"))


def test_records_hold_no_secret_and_no_placeholder():
    curl("https://api.example.test/bot" + PLACEHOLDER + "/x")
    contains(STAGE.log(), "/bot[CREDENTIAL]/x")
    with open(STAGE.folder + "/events.jsonl") as lines:
        text = lines.read()
    for secret in (TOKEN, "local-secret", "never-in-clear", "openshell:resolve"):
        lacks(text, secret)
        lacks(STAGE.log(), secret)


# --- The process -----------------------------------------------------------------------------------


def gateway_pid():
    children = open("/proc/%d/task/%d/children" % (STAGE.gateway.pid, STAGE.gateway.pid)).read().split()
    return int(children[0])


def test_the_process_is_confined():
    status = open("/proc/%d/status" % gateway_pid()).read()
    contains(status, "NoNewPrivs:\t1")
    if "Seccomp:\t2" not in status:
        contains(subprocess.run(["nm", "-D", sys.argv[1]], stdout=subprocess.PIPE).stdout.decode(), "asan")
    environment = open("/proc/%d/environ" % gateway_pid(), "rb").read()
    equal(environment.strip(b"\0"), b"")
    names = [os.readlink("/proc/%d/fd/%s" % (gateway_pid(), fd)) for fd in os.listdir("/proc/%d/fd" % gateway_pid())]
    strange = [n for n in names if not n.startswith(("socket:", "anon_inode:[eventpoll]", STAGE.folder, "/dev/null"))
               and "pipe" not in n and not n.startswith(("/dev/pts", "/tmp"))]
    equal(strange, [])


def test_slow_and_silent_connections_do_not_block_others():
    silent = [connect_proxy() for _ in range(40)]
    slow = connect_proxy()
    slow.sendall(b"CONNECT api.exa")
    begin = time.monotonic()
    equal(curl("https://api.example.test/echo").status, 200)
    assert time.monotonic() - begin < 5
    for connection in silent + [slow]:
        connection.close()


def test_more_connections_than_allowed_are_told():
    held = []
    answers = []
    for _ in range(260):
        held.append(connect_proxy())
    held[-1].settimeout(3)
    answers.append(held[-1].recv(100))
    for connection in held:
        connection.close()
    contains(answers[0], b"HTTP/1.1 503 ")
    for _ in range(50):
        if curl("https://api.example.test/echo").status == 200:
            return
        time.sleep(0.1)
    raise AssertionError("the gateway does not recover")


def test_it_says_why_it_does_not_start():
    done = subprocess.run([sys.argv[1], STAGE.folder + "/policy.yaml", STAGE.folder + "/policy.yaml", STAGE.folder,
                           PROXY[0], "3129", str(os.getpid())], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    equal((done.returncode, done.stderr),
          (1, b"gateway_driver: starting the gateway: the CA bundle holds no certificate\n"))


def test_it_ends_when_its_supervisor_dies():
    other = STAGE.start([os.path.abspath(sys.argv[1]), STAGE.folder + "/policy.yaml", STAGE.folder + "/trusted.pem",
                         STAGE.folder, PROXY[0], "3130", str(os.getpid())])
    STAGE.expect_ready(other)
    pid = int(open("/proc/%d/task/%d/children" % (other.pid, other.pid)).read().split()[0])
    other.kill()
    other.wait()
    for _ in range(100):
        try:
            gone = open("/proc/%d/stat" % pid).read().split(")")[1].split()[0] == "Z"
        except OSError:
            gone = True
        if gone:
            return
        time.sleep(0.05)
    raise AssertionError("the gateway outlives its supervisor")


def test_it_ends_in_order():
    """Last: the gateway finishes when the supervisor says so, with every record written."""
    STAGE.gateway.stdin.close()
    equal(STAGE.gateway.wait(10), 0)
    for event in STAGE.events():
        for key in ("class_uid", "time", "severity_id", "unmapped"):
            assert key in event
    equal(len(STAGE.events()), STAGE.log().count("\n"))


def main():
    global STAGE
    if len(sys.argv) < 2:
        print(__doc__)
        return 64
    enter_namespaces()
    os.environ.pop("GATEWAY_TEST_INSIDE")
    STAGE = Stage(os.path.abspath(sys.argv[1]))
    wanted = sys.argv[2:]
    tests = [(name, body) for name, body in globals().items()
             if name.startswith("test_") and (not wanted or name in wanted)]
    failed = 0
    try:
        for name, body in tests:
            try:
                body()
            except Exception as problem:  # Any failure is one test's failure.
                failed += 1
                print("FAILED %s: %s: %s" % (name, type(problem).__name__, str(problem)[:1500]), flush=True)
    finally:
        if failed and os.environ.get("GATEWAY_TEST_LOG"):
            print(STAGE.log())
        STAGE.close()
    print("gateway: %d passed, %d failed" % (len(tests) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
