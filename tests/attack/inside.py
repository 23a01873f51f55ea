# SPDX-License-Identifier: Apache-2.0
"""Runs inside the sandbox: tries things and prints one JSON object, "RESULT {...}", per case."""
import ctypes
import errno
import json
import os
import shutil
import socket
import subprocess
import sys
import time

PROXY = ("10.200.0.1", 3128)
ALIAS = "host.openshell.internal"
PATIENCE_S = 4
ANSWER_S = 120  # On a busy machine.


def result(name, **facts):
    print("RESULT " + json.dumps({"name": name, **facts}), flush=True)


def read_all(connection, patience=PATIENCE_S):
    """Everything until the other side ends or is silent."""
    out = b""
    connection.settimeout(patience)
    try:
        while piece := connection.recv(65536):
            out += piece
        return out + b"<end>"
    except socket.timeout:
        return out
    except OSError:
        return out + b"<reset>"


def read_answer(connection, patience=PATIENCE_S):
    """One answer with a Content-Length, or what came until the end."""
    out = b""
    connection.settimeout(patience)
    try:
        while True:
            head, found, body = out.partition(b"\r\n\r\n")
            if found:
                lengths = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
                if lengths and len(body) >= lengths[0]:
                    return out
            piece = connection.recv(65536)
            if not piece:
                return out + b"<end>"
            out += piece
    except socket.timeout:
        return out + b"<silent>"
    except OSError:
        return out + b"<reset>"


def status_of(answer):
    words = answer.split(b" ", 2)
    if answer.startswith(b"HTTP/1.1 ") and len(words) > 1:
        return int(words[1])
    return 0  # Closed or silent.


def proxy():
    return socket.create_connection(PROXY, timeout=ANSWER_S)


def tunnel(authority):
    connection = proxy()
    connection.sendall(b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (authority.encode(), authority.encode()))
    head = b""
    connection.settimeout(ANSWER_S)
    while b"\r\n\r\n" not in head:
        piece = connection.recv(4096)
        if not piece:
            break
        head += piece
    return connection, head


def inside_tunnel(port, raw, answers=1):
    """The statuses of `answers` answers to raw bytes in a tunnel to the server."""
    connection, head = tunnel("%s:%d" % (ALIAS, port))
    with connection:
        if status_of(head) != 200:
            return [-status_of(head)]
        connection.sendall(raw)
        if answers == 1:
            return [status_of(read_answer(connection))]
        everything = read_all(connection)
        return [int(part[:3]) for part in everything.split(b"HTTP/1.1 ")[1:]]


def stranger_than_policy(port):
    """Destinations that this part's policy names and no policy can open."""
    for form in ("127.0.0.1", "[::1]", "169.254.169.254", "0.0.0.0", "localhost", "a.localhost",
                 "host.containers.internal"):
        connection, head = tunnel("%s:%d" % (form, port))
        head += read_all(connection)
        connection.close()
        result("named: " + form, status=status_of(head), ssrf=b"ssrf_denied" in head)
    connection, head = tunnel("%s:%d" % (ALIAS, port))
    connection.close()
    result("named control", status=status_of(head))


def smuggling(port):
    host = b"Host: %s:%d\r\n" % (ALIAS.encode(), port)
    evil = b"GET /denied/smuggled HTTP/1.1\r\n" + host + b"\r\n"

    def post(headers, body, line=b"POST /ok/case HTTP/1.1\r\n"):
        return line + host + headers + b"\r\n" + body

    chunked = b"Transfer-Encoding: chunked\r\n"
    length = b"Content-Length: %d\r\n" % len(evil)
    wanted_ok = {
        "control get": (b"GET /ok/control HTTP/1.1\r\n" + host + b"\r\n"),
        "control length": post(b"Content-Length: 5\r\n", b"12345"),
        "control chunked": post(chunked, b"5\r\n12345\r\n0\r\n\r\n"),
        "control same length twice": post(b"Content-Length: 5\r\nContent-Length: 5\r\n", b"12345"),
        "chunk extension is dropped": post(chunked, b"5;a=b\r\n12345\r\n0;c\r\n\r\n"),
        "trailers are dropped": post(chunked, b"5\r\n12345\r\n0\r\nContent-Length: 99\r\nHost: other\r\n\r\n"),
        "leading zeros of a chunk": post(chunked, b"000005\r\n12345\r\n0\r\n\r\n"),
        "a body that looks like a request": post(length, evil),
        "get with a body": post(length, evil, b"GET /ok/case HTTP/1.1\r\n"),
        "expect with a body": post(b"Expect: something\r\n" + length, evil),
        "old version": b"GET /ok/old HTTP/1.0\r\n" + host + b"Connection: keep-alive\r\n\r\n",
        "connection hides a header": b"GET /ok/hide HTTP/1.1\r\n" + host + b"X-A: 1\r\nConnection: X-A\r\n\r\n",
        "not a websocket after all": b"GET /ok/not-websocket HTTP/1.1\r\n" + host +
                                     b"Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
                                     b"Sec-WebSocket-Version: 13\r\n\r\n",
    }
    wanted_no = {
        "length and coding": post(length + chunked, b"0\r\n\r\n" + evil),
        "coding and length": post(chunked + length, b"0\r\n\r\n" + evil),
        "two lengths": post(b"Content-Length: 0\r\n" + length, evil),
        "list of lengths": post(b"Content-Length: 0, %d\r\n" % len(evil), evil),
        "length with a plus": post(b"Content-Length: +5\r\n", b"12345"),
        "length in hex": post(b"Content-Length: 0x5\r\n", b"12345"),
        "negative length": post(b"Content-Length: -1\r\n", b"12345"),
        "length of 2^64": post(b"Content-Length: 18446744073709551616\r\n", b"12345"),
        "empty length": post(b"Content-Length:\r\n", b"12345"),
        "coding with a vertical tab": post(b"Transfer-Encoding: \x0bchunked\r\n", b"0\r\n\r\n" + evil),
        "coding behind a space": post(b"Transfer-Encoding : chunked\r\n", b"0\r\n\r\n" + evil),
        "folded coding": post(b"Transfer-Encoding:\r\n chunked\r\n", b"0\r\n\r\n" + evil),
        "two codings": post(chunked + chunked, b"0\r\n\r\n" + evil),
        "identity": post(b"Transfer-Encoding: identity\r\n" + length, evil),
        "coding in 1.0": post(chunked, b"0\r\n\r\n", b"POST /ok/case HTTP/1.0\r\n"),
        "bare LF": b"GET /ok/lf HTTP/1.1\n" + host + b"\r\n",
        "bare LF in a header": b"GET /ok/lf HTTP/1.1\r\n" + host + b"X: a\nGET /denied/x HTTP/1.1\r\n\r\n",
        "bare CR in a header": b"GET /ok/cr HTTP/1.1\r\n" + host + b"X: a\rY: b\r\n\r\n",
        "NUL in a header": b"GET /ok/nul HTTP/1.1\r\n" + host + b"X: a\0b\r\n\r\n",
        "two Hosts": b"GET /ok/hosts HTTP/1.1\r\n" + host + host + b"\r\n",
        "no Host": b"GET /ok/nohost HTTP/1.1\r\n\r\n",
        "another Host": b"GET /ok/host HTTP/1.1\r\nHost: other.example\r\n\r\n",
        "another port in Host": b"GET /ok/host HTTP/1.1\r\nHost: %s\r\n\r\n" % ALIAS.encode(),
        "user in Host": b"GET /ok/host HTTP/1.1\r\nHost: a@%s:%d\r\n\r\n" % (ALIAS.encode(), port),
        "another authority in the target": b"GET http://other.example/ok/abs HTTP/1.1\r\n" + host + b"\r\n",
        "user in the target": b"GET http://a@%s:%d/ok/abs HTTP/1.1\r\n" % (ALIAS.encode(), port) + host + b"\r\n",
        "connection drops the length": post(b"Connection: content-length\r\n" + length, evil),
        "two spaces": b"GET  /ok/space HTTP/1.1\r\n" + host + b"\r\n",
        "tab in the request line": b"GET\t/ok/tab HTTP/1.1\r\n" + host + b"\r\n",
        "space in the target": b"GET /ok/a b HTTP/1.1\r\n" + host + b"\r\n",
        "no version": b"GET /ok/old\r\n" + host + b"\r\n",
        "another version": b"GET /ok/v HTTP/1.2\r\n" + host + b"\r\n",
        "h2c": b"GET /ok/h2c HTTP/1.1\r\n" + host + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n\r\n",
        "prior knowledge": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "climbing": b"GET /ok/../denied/a HTTP/1.1\r\n" + host + b"\r\n",
        "climbing encoded": b"GET /ok/%2e%2e/denied/a HTTP/1.1\r\n" + host + b"\r\n",
        "climbing behind parameters": b"GET /ok/..;a/denied/a HTTP/1.1\r\n" + host + b"\r\n",
        "climbing behind an encoded slash": b"GET /ok/..%2fdenied/a HTTP/1.1\r\n" + host + b"\r\n",
        "two slashes": b"GET //denied/a HTTP/1.1\r\n" + host + b"\r\n",
        "encoded NUL": b"GET /ok/%00 HTTP/1.1\r\n" + host + b"\r\n",
        "another method": b"DELETE /ok/a HTTP/1.1\r\n" + host + b"\r\n",
        "method of another case": b"dElete /ok/a HTTP/1.1\r\n" + host + b"\r\n",
        "connect inside": b"CONNECT %s:%d HTTP/1.1\r\n" % (ALIAS.encode(), port) + host + b"\r\n" + evil,
        "head of 17000 bytes": b"GET /ok/long HTTP/1.1\r\n" + host + b"X: " + b"a" * 17000 + b"\r\n\r\n",
    }
    # The head is good, so a request arrives; its broken body must end it and nothing else may.
    broken = {
        "chunk size with a plus": b"+5\r\n12345\r\n0\r\n\r\n",
        "chunk size in 0x": b"0x5\r\n12345\r\n0\r\n\r\n",
        "chunk size with a space": b"5 \r\n12345\r\n0\r\n\r\n",
        "negative chunk": b"-5\r\n12345\r\n0\r\n\r\n",
        "overflowing chunk": b"10000000000000005\r\n12345\r\n0\r\n\r\n",
        "bare LF behind a chunk size": b"5\n12345\r\n0\r\n\r\n",
        "LF in an extension": b"5;a\nb\r\n12345\r\n0\r\n\r\n",
        "longer than its size": b"3\r\n12345\r\n0\r\n\r\n",
        "endless extension": b"5;" + b"a" * 20000 + b"\r\n12345\r\n0\r\n\r\n",
        "endless trailers": b"0\r\n" + b"X: aaaaaaaaaaaaaaaaaaaaaaa\r\n" * 3000 + b"\r\n",
    }
    for name, raw in wanted_ok.items():
        result("passes: " + name, statuses=inside_tunnel(port, raw))
    for name, raw in wanted_no.items():
        result("refused: " + name, statuses=inside_tunnel(port, raw))
    for name, raw in broken.items():
        result("broken: " + name, statuses=inside_tunnel(port, post(chunked, raw + evil)))
    good = b"GET /ok/first HTTP/1.1\r\n" + host + b"\r\n"
    result("pipelined", statuses=inside_tunnel(port, good + evil, 2))
    result("pipelined control", statuses=inside_tunnel(port, good, 1))


def bad_server(port):
    host = b"Host: %s:%d\r\n\r\n" % (ALIAS.encode(), port)
    for name in ("unasked101", "flood1xx", "cl-te", "two-cl", "bare-lf", "huge-head", "set-cookie-split"):
        result("server: " + name, statuses=inside_tunnel(port, b"GET /ok/%s HTTP/1.1\r\n" % name.encode() + host))
    connection, _ = tunnel("%s:%d" % (ALIAS, port))
    with connection:
        connection.sendall(b"GET /ok/second-answer HTTP/1.1\r\n" + host)
        first = read_answer(connection)
        time.sleep(0.2)
        connection.sendall(b"GET /ok/mine HTTP/1.1\r\n" + host)
        second = read_answer(connection)
    result("server: second-answer", first=first.endswith(b"second-answer"), second=second.endswith(b"\r\n\r\nmine"))


def destinations(port):
    forms = ["127.0.0.1", "127.1", "2130706433", "0x7f.0.0.1", "0x7f000001", "0177.0.0.1", "0", "0.0.0.0", "localhost",
             "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::]", "[64:ff9b::7f00:1]", "[fe80::1%25lo]", "[fe80::1%lo]",
             "10.200.0.1", "169.254.169.254", "[::ffff:169.254.169.254]", "metadata.google.internal",
             "host.containers.internal", "a." + ALIAS, "a@" + ALIAS, ALIAS + "@127.0.0.1",
             ALIAS + "..", "." + ALIAS, ALIAS + "%00.example", "", "[127.0.0.1]", ALIAS + "/", "\u0127ost.openshell.internal",
             "wild.attack.internal"]
    for form in forms:
        connection, head = tunnel("%s:%d" % (form, port))
        connection.close()
        result("destination: " + form, status=status_of(head))
    for form in ("%s:%d" % (ALIAS, 1), "%s:0" % ALIAS, "%s:65536" % ALIAS, "%s:99999999999" % ALIAS, ALIAS, ALIAS + ":",
                 "%s:+%d" % (ALIAS, port), "%s:%d " % (ALIAS, port), "http://%s:%d" % (ALIAS, port)):
        connection, head = tunnel(form)
        connection.close()
        result("destination: " + form, status=status_of(head))
    for form in (ALIAS, ALIAS.upper(), ALIAS + "."):
        connection, head = tunnel("%s:%d" % (form, port))
        connection.close()
        result("reachable: " + form, status=status_of(head))
    raw = b"CONNECT %s:%d HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc" % (ALIAS.encode(), port)
    with proxy() as connection:
        connection.sendall(raw)
        result("destination: CONNECT with a body", status=status_of(read_all(connection)))
    for name, target in (("forward", "http://%s:%d/ok/f"), ("forward denied", "http://%s:%d/denied/f")):
        with proxy() as connection:
            target_bytes = (target % (ALIAS, port)).encode()
            connection.sendall(b"GET " + target_bytes + b" HTTP/1.1\r\nHost: %s:%d\r\n\r\nGET /denied/pipelined HTTP/1.1\r\n\r\n"
                               % (ALIAS.encode(), port))
            answer = read_all(connection)
            result("%s" % name, status=status_of(answer), answers=answer.count(b"HTTP/1.1 "))


PROBE = r"""
import socket, sys
c = socket.create_connection(("10.200.0.1", 3128), timeout=120)
c.sendall(b"CONNECT host.openshell.internal:%s HTTP/1.1\r\nHost: x\r\n\r\n" % sys.argv[1].encode())
print(c.recv(12).decode())
"""


def identity(port):
    python = os.path.realpath(sys.executable)

    def ask(program, *arguments):
        done = subprocess.run([program, *arguments, "-c", PROBE, str(port)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.stdout.decode(errors="replace").strip()[:60]

    result("identity: python", said=ask(python))
    shutil.copy(python, "/tmp/python3")
    os.chmod("/tmp/python3", 0o755)
    shutil.copy(python, "/tmp/strange\n::error::name")
    os.chmod("/tmp/strange\n::error::name", 0o755)
    bash = ("exec 3<>/dev/tcp/10.200.0.1/3128; printf 'CONNECT %s:%d HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n' >&3; head -c 12 <&3"
            % (ALIAS, port))
    # Started by something that is no ancestor of ours: this program itself is allowed.
    subprocess.run(["/usr/bin/setsid", "-f", "/bin/bash", "-c",
                            "sleep 0.3; (%s) > /tmp/bash.said 2>&1; /tmp/python3 -c '%s' %d > /tmp/copy.said 2>&1; /tmp/strange* -c '%s' %d "
                    "> /tmp/strange.said 2>&1; touch /tmp/said" % (bash, PROBE, port, PROBE, port)], check=True)
    for _ in range(1200):
        if os.path.exists("/tmp/said"):
            break
        time.sleep(0.1)
    for name in ("bash", "copy", "strange"):
        with open("/tmp/%s.said" % name) as said:
            result("identity: " + name, said=said.read().strip()[:60])


def credentials(port, other):
    import base64
    host = b"Host: %s:%d\r\n" % (ALIAS.encode(), port)
    mark = os.environ["KEY"].encode()
    result("credential: environment", value=mark.decode())

    def send(name, headers=b"", path=b"/ok/credential", body=b"", method=b"GET"):
        framing = b"Content-Length: %d\r\n" % len(body) if body else b""
        raw = method + b" " + path + b" HTTP/1.1\r\n" + host + headers + framing + b"\r\n" + body
        result("credential: " + name, statuses=inside_tunnel(port, raw))

    send("header", b"X-Sent: whole\r\nAuthorization: Bearer " + mark + b"\r\n")
    send("basic", b"X-Sent: basic\r\nAuthorization: Basic " + base64.b64encode(b"x:" + mark) + b"\r\n")
    send("query", b"X-Sent: query\r\n", path=b"/ok/credential?key=" + mark)
    send("body", b"X-Sent: body\r\n", body=mark, method=b"POST")
    send("body control", b"X-Sent: body control\r\n", body=b"x" * len(mark), method=b"POST")
    send("unknown", b"Authorization: Bearer openshell:resolve:env:NOPE\r\n")
    send("half", b"X-A: a" + mark + b"b\r\n")
    send("prefix", b"Authorization: Bearer " + mark + b"2\r\n")
    send("case", b"X-Sent: case\r\nX-A: " + mark.upper().replace(b"KEY", b"key") + b"\r\n")
    send("name", mark.replace(b":", b"") + b": a\r\n")
    send("trace", b"X-Sent: trace\r\nAuthorization: Bearer " + mark + b"\r\n", method=b"TRACE", path=b"/trace/ok")
    send("trace control", b"X-Sent: control\r\nAuthorization: Bearer " + mark + b"\r\n", path=b"/trace/ok")
    with proxy() as connection:
        connection.sendall(b"GET http://host.docker.internal:%d/ok/other HTTP/1.1\r\nHost: host.docker.internal:%d\r\nX-A: %s\r\n\r\n"
                           % (other, other, mark))
        result("credential: another host", statuses=[status_of(read_all(connection))])
    with proxy() as connection:
        connection.sendall(b"GET http://host.docker.internal:%d/ok/other HTTP/1.1\r\nHost: host.docker.internal:%d\r\n\r\n"
                           % (other, other))
        result("credential: another host, control", statuses=[status_of(read_all(connection))])


def exhaustion(port):
    import resource
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    held = []
    for _ in range(1400):
        try:
            held.append(socket.create_connection(PROXY, timeout=PATIENCE_S))
        except OSError:
            break
    for connection in held[:50]:
        connection.sendall(b"CONNECT ")
    time.sleep(0.5)
    busy = 0
    for connection in held:
        connection.setblocking(False)
        try:
            busy += connection.recv(12) == b"HTTP/1.1 503"
        except OSError:
            pass
    result("exhaustion: full", held=len(held), busy=busy)
    for connection in held:
        connection.close()
    time.sleep(1)
    host = b"Host: %s:%d\r\n\r\n" % (ALIAS.encode(), port)
    result("exhaustion: afterwards", statuses=inside_tunnel(port, b"GET /ok/after HTTP/1.1\r\n" + host))


def kernel():
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long

    def call(number, *arguments):
        got = libc.syscall(ctypes.c_long(number), *[ctypes.c_ulonglong(a) for a in arguments])
        return "ok" if got >= 0 else errno.errorcode.get(ctypes.get_errno(), "?")

    socket_call, seccomp_call, prctl_call, high = 41, 317, 157, 1 << 32
    descriptors = sorted(int(fd) for fd in os.listdir("/proc/self/fd"))
    result("kernel: descriptors", open=[fd for fd in descriptors if fd > 2 and os.path.exists("/proc/self/fd/%d" % fd)])
    result("kernel: socket control", said=call(socket_call, socket.AF_INET, 1, 0))
    for name, family in (("AF_VSOCK", 40), ("AF_ALG", 38), ("AF_PACKET", 17), ("AF_TIPC", 30), ("AF_KEY", 15)):
        result("kernel: " + name, said=call(socket_call, family, 2, 0))
        result("kernel: high " + name, said=call(socket_call, high | family, 2, 0))
    result("kernel: high netlink audit", said=call(socket_call, high | 16, 3, 9))
    result("kernel: seccomp", said=call(seccomp_call, 1, 0, 0))
    result("kernel: high seccomp", said=call(seccomp_call, high | 1, 0, 0))
    result("kernel: high prctl", said=call(prctl_call, high | 22, 2, 0))
    result("kernel: unshare", said=call(272, 0x10000000))
    result("kernel: keyctl", said=call(250, 0, 0))
    for path in ("/proc/1/environ", "/proc/1/mem", "/proc/1/fd", "/proc/1/root", "/proc/1/cwd"):
        try:
            os.listdir(path) if path.endswith(("fd", "root", "cwd")) else open(path, "rb").read(1)
            said = "ok"
        except OSError as error:
            said = errno.errorcode[error.errno]
        result("kernel: " + path, said=said)
    for signal in (9, 15, 19):
        try:
            os.kill(1, signal)  # Refused or not taken: we are still here afterwards.
        except OSError:
            pass
    result("kernel: alive", said="ok")
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect("\0agentic-ci-attack")
        said = "ok"
    except OSError as error:
        said = errno.errorcode[error.errno]
    result("kernel: abstract socket", said=said)


def main():
    part, port, other = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    if part == "wire":
        smuggling(port)
        bad_server(port)
        destinations(port)
    elif part == "named":
        stranger_than_policy(port)
    elif part == "rest":
        identity(port)
        credentials(port, other)
        kernel()
        exhaustion(port)


main()
