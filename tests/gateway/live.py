# SPDX-License-Identifier: Apache-2.0
"""The policy changes while the gateway runs."""
import contextlib

from stage import (connect_proxy, contains, curl, equal, in_tunnel, read_all, read_response, request, stage, tls_tunnel,
                   tunnel)


def put_in_force(text, verb="update"):
    path = stage().folder + "/next.yaml"
    with open(path, "w") as out:
        out.write(text)
    stage().gateway.stdin.write(("%s %s\n" % (verb, path)).encode())
    stage().gateway.stdin.flush()
    return stage().gateway.stdout.readline().decode().strip()


def policy_of_the_start():
    with open(stage().folder + "/policy.yaml") as text:
        return text.read()


@contextlib.contextmanager
def policy_in_force(text, verb="update", answer="done"):
    """While it lasts; then the first one again."""
    try:
        equal(put_in_force(text, verb), answer)
        yield
    finally:
        equal(put_in_force(policy_of_the_start()), "done")
    equal(curl("https://api.example.test/echo").status, 200)


def test_an_update_decides_what_is_asked_next_and_closes_what_was_open():
    other = policy_of_the_start().replace('method: GET, path: "/**"', 'method: GET, path: "/other"')
    raw, head = tunnel("l4.example.test:9000")
    contains(head, b" 200 ")
    equal(raw.recv(6), b"HELLO\n")
    with tls_tunnel("api.example.test") as kept:
        kept.sendall(request("/echo"))
        contains(read_response(kept)[0], b"200 OK")
        with policy_in_force(other):
            equal(read_all(raw), b"")
            equal(read_all(kept), b"")
            contains(in_tunnel(request("/echo")), b"403 Forbidden")
            contains(in_tunnel(request("/other", "Connection: close")), b"200 OK")
            stage().expect_log(" hash:sha256:0123]")
    contains(stage().log(), "CONFIG:LOADED [INFO] policy reloaded [version:v")
    raw.close()


def test_an_update_closes_websockets_and_says_why():
    with tls_tunnel("socket.example.test") as connection:
        connection.sendall(request("/ws", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
                                   "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", host="socket.example.test"))
        head = b""
        while b"\r\n\r\n" not in head:
            head += connection.recv(1)
        contains(head, b"101 Switching Protocols")
        equal(put_in_force(policy_of_the_start()), "done")
        equal(read_all(connection), b"\x88\x10\x03\xf4policy changed")  # A close frame, 1012.


def test_an_update_closes_a_websocket_that_was_forwarded():
    with connect_proxy() as connection:
        connection.sendall(b"GET http://plain.example.test/ws HTTP/1.1\r\nHost: plain.example.test\r\nConnection: Upgrade\r\n"
                           b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
        head = b""
        while b"\r\n\r\n" not in head:
            head += connection.recv(1)
        contains(head, b"101 Switching Protocols")
        equal(put_in_force(policy_of_the_start()), "done")
        equal(read_all(connection), b"\x88\x10\x03\xf4policy changed")


def test_an_invalid_update_is_kept_out():
    with policy_in_force("version: 1\nnonsense: true\n", "keep", "rejected"):
        equal(curl("https://api.example.test/echo").status, 200)
        stage().expect_log("the last valid policy stays in force")


def test_an_invalid_update_closes_everything_where_that_is_asked_for():
    with policy_in_force("version: 1\nnonsense: true\n", answer="rejected"):
        equal(curl("https://api.example.test/echo").status, 403)
        stage().expect_log("all traffic is now blocked")
