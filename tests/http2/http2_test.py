#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 and gRPC through the gateway process: curl, a gRPC client and a hostile client on one side; servers of
HTTP/2, HTTP/1 and gRPC on the other.

Usage: http2_test.py GATEWAY_DRIVER [TEST_NAME...]

Stage, namespaces and the HTTP/1 server are those of tests/gateway.
"""
import json
import os
import struct
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "gateway"))

import frames  # noqa: E402
import stage as gateway  # noqa: E402
from stage import PYTHON, contains, curl, equal, lacks  # noqa: E402

gateway.NAMES = ["api", "h2", "grpc", "l4", "plain"]
gateway.POLICY = """
version: 1
network_policies:
  api:
    endpoints:
      - host: api.example.test
        port: 443
        protocol: rest
        enforcement: enforce
        rules:
          - allow: {{method: GET, path: "/**"}}
          - allow: {{method: POST, path: "/**"}}
        deny_rules:
          - {{method: GET, path: "/secret/**"}}
      - host: h2.example.test
        ports: [10080, 10443]
        protocol: rest
        enforcement: enforce
        rules:
          - allow: {{method: GET, path: "/**"}}
          - allow: {{method: HEAD, path: "/**"}}
          - allow: {{method: POST, path: "/**"}}
        deny_rules:
          - {{method: GET, path: "/secret/**"}}
      - host: grpc.example.test
        ports: [50051, 50052]
        protocol: rest
        enforcement: enforce
        rules:
          - allow: {{method: POST, path: "/test.Echo/*"}}
        deny_rules:
          - {{method: POST, path: "/test.Echo/Denied"}}
      - {{host: plain.example.test, port: 80, protocol: rest, enforcement: enforce, access: full}}
      - {{host: l4.example.test, ports: [9000, 10080, 10443]}}
    binaries: [{{path: {curl}}}, {{path: {python}}}]
"""
H1 = "api.example.test"  # Its server speaks HTTP/1 alone.
H2 = "h2.example.test:10443"
CLEAR = "h2.example.test:10080"
STAGE = None


def connect(authority, alpn=("h2",), window=True):
    """A hostile client inside an inspected tunnel."""
    host, _, port = authority.partition(":")
    connection, head = gateway.tunnel("%s:%s" % (host, port or "443"))
    contains(head, b" 200 ")
    context = gateway.ssl.create_default_context(cafile=STAGE.folder + "/ca.pem")
    context.set_alpn_protocols(list(alpn))
    inside = context.wrap_socket(connection, server_hostname=host)
    equal(inside.selected_alpn_protocol(), alpn[0])
    return frames.Client(inside, window)


def connect_clear(authority):
    """The same without TLS: HTTP/2 is known to be spoken (RFC 9113, 3.3)."""
    connection, head = gateway.tunnel(authority)
    contains(head, b" 200 ")
    return frames.Client(connection)


def ask(authority, path, *options, **more):
    return curl("https://%s%s" % (authority, path), "--http2", *options, **more)


def version(answer):
    return answer.headers.strip().split("\r\n\r\n")[-1].split(" ")[0]


def seen():
    return ask(H2, "/seen").json()


# --- The four ways ---------------------------------------------------------------------------------


def test_both_sides_speak_http2():
    answer = ask(H2, "/echo?x=1", "-H", "X-Test: Yes", "-b", "a=1")
    equal((answer.code, answer.status, version(answer)), (0, 200, "HTTP/2"))
    fields = dict(answer.json()["fields"])
    equal((fields[":method"], fields[":path"], fields[":authority"], fields["x-test"], fields["cookie"]),
          ("GET", "/echo?x=1", H2, "Yes", "a=1"))
    STAGE.expect_log("-> GET https://h2.example.test:10443/echo [policy:api engine:l7]")


def test_a_server_of_http1_gets_what_was_judged():
    answer = ask(H1, "/echo?x=1", "-H", "X-Test: Yes")
    equal((answer.code, answer.status, version(answer)), (0, 200, "HTTP/2"))
    contains(answer.body, b"GET /echo?x=1 HTTP/1.1\r\nHost: api.example.test\r\n")
    contains(answer.body, b"x-test: Yes\r\n")
    lacks(answer.body.lower(), b"connection:")


def test_clients_of_http1_are_served_by_both():
    for url in ("https://%s/echo" % H1, "https://%s/echo" % H2):
        answer = curl(url, "--http1.1")
        equal((answer.code, answer.status, version(answer)), (0, 200, "HTTP/1.1"))


def test_a_client_that_offers_nothing_speaks_http1():
    with gateway.tls_tunnel(H1) as connection:
        equal(connection.selected_alpn_protocol(), None)
        connection.sendall(gateway.request("/echo"))
        contains(gateway.read_response(connection)[0], b"HTTP/1.1 200")


def test_a_credential_placeholder_is_resolved():
    placeholder = "openshell:resolve:env:API_TOKEN"
    answer = ask(H1, "/echo", "-H", "Authorization: Bearer " + placeholder)
    equal(answer.status, 200)
    contains(answer.body, b"authorization: Bearer " + gateway.TOKEN.encode())
    refused = ask(H2, "/echo", "-H", "Authorization: Bearer " + placeholder)
    equal(refused.status, 403)
    contains(refused.json()["error"], "credential")


def test_what_the_policy_refuses_is_refused_on_its_stream():
    for authority in (H1, H2):
        answer = ask(authority, "/secret/x")
        equal((answer.code, answer.status, version(answer)), (0, 403, "HTTP/2"))
        equal(answer.json()["error"], "policy_denied")
        lacks(answer.headers.lower().split("http/2 403")[1], "connection:")


def test_many_streams_share_a_connection_and_one_is_denied():
    before = seen()["connections"]
    client = connect(H2)
    for number in range(60):
        path = "/secret/x" if number == 30 else "/hold"
        client.headers(2 * number + 1, frames.get(H2, path))
    started = time.monotonic()
    assert client.pump(lambda: all(client.over(2 * number + 1) for number in range(60)))
    assert time.monotonic() - started < 20, "they were answered one after another"
    for number in range(60):
        equal(client.answer(2 * number + 1).status, 403 if number == 30 else 200)
    equal(seen()["connections"] - before, 2)  # The sixty, and the question.


def test_many_streams_to_a_server_of_http1():
    client = connect(H1)
    for number in range(40):
        client.headers(2 * number + 1, frames.get(H1, "/secret/x" if number == 7 else "/echo?n=%d" % number))
    assert client.pump(lambda: all(client.over(2 * number + 1) for number in range(40)))
    for number in range(40):
        answer = client.answer(2 * number + 1)
        equal(answer.status, 403 if number == 7 else 200)
        if number != 7:
            contains(answer.body, b"GET /echo?n=%d HTTP/1.1" % number)


# --- Bodies ----------------------------------------------------------------------------------------


def test_bodies_of_any_length_arrive_whole():
    with open(STAGE.folder + "/upload", "wb") as out:
        out.write(b"u" * 2000000)
    for authority in (H1, H2):
        answer = ask(authority, "/size", "--data-binary", "@" + STAGE.folder + "/upload")
        equal((answer.status, answer.body), (200, b"2000000"))
        streamed = ask(authority, "/size", "-X", "POST", "-H", "Content-Length:", "-T", STAGE.folder + "/upload")
        equal(streamed.status, 200)
        assert int(streamed.body) >= 2000000, streamed.body  # The server of HTTP/1 counts the chunks' heads too.
        big = ask(authority, "/big")
        equal((big.code, big.status, len(big.body)), (0, 200, 8000000))
        empty = ask(authority, "/size", "-X", "POST")
        equal((empty.status, empty.body), (200, b"0"))


def test_a_slow_server_slows_the_client():
    client = connect(H2)
    client.headers(1, frames.get(H2, "/slow", "POST"), end=False)
    client.pump(lambda: client.answers, 0.1)
    sent = 0
    while sent < 262144:  # The gateway's window for one stream.
        client.data(1, b"x" * 16384, end=False)
        sent += 16384
    client.pump(lambda: False, 0.3)
    assert not client.closed and client.goaway is None
    client.data(1, b"", end=True)
    client.pump(lambda: client.over(1))
    equal(client.answer(1).body, str(sent).encode())


def test_a_client_that_ignores_the_window_is_cut_off():
    client = connect(H2)
    client.headers(1, frames.get(H2, "/slow", "POST"), end=False)
    for _ in range(30):
        client.data(1, b"x" * 16384, end=False)
    client.pump(lambda: client.over(1) or client.closed)
    equal(client.goaway or client.answer(1).reset, 3)


def test_trailers_pass_both_ways():
    client = connect(H2)
    client.headers(1, frames.get(H2, "/trailers", "POST"), end=False)
    client.data(1, b"body", end=False)
    client.headers(1, [("x-request-trailer", "v")])
    client.pump(lambda: client.over(1))
    answer = client.answer(1)
    equal(json.loads(answer.body), [["x-request-trailer", "v"]])
    equal(dict(answer.trailers), {"x-sum": "abc", "grpc-status": "0"})


def test_interim_and_empty_answers_pass():
    hinted = ask(H2, "/hints")
    contains(hinted.headers, "HTTP/2 103")
    equal(hinted.body, b"hinted")
    for authority, path in ((H1, "/nothing"), (H2, "/nothing")):
        equal(ask(authority, path).status, 204)
    equal(ask(H1, "/unchanged").status, 304)
    equal(ask(H2, "/echo", "-I").status, 200)


def test_events_stream_without_delay():
    client = connect(H1)
    client.headers(1, frames.get(H1, "/sse"))
    client.pump(lambda: client.answer(1).body)
    equal(client.answer(1).body, b"data: 0\n\n")
    client.pump(lambda: client.over(1))
    equal(client.answer(1).body, b"data: 0\n\ndata: 1\n\ndata: 2\n\n")


def test_both_directions_at_once():
    client = connect(H2)
    client.headers(1, frames.get(H2, "/duplex", "POST"), end=False)
    for number in range(5):
        client.data(1, b"%d" % number, end=False)
        wanted = b"".join(b"echo:%d" % n for n in range(number + 1))
        assert client.pump(lambda: client.answer(1).body == wanted), client.answer(1).body
    client.data(1, b"")
    client.pump(lambda: client.over(1))
    equal(client.answer(1).ended, True)


def test_an_early_answer_ends_the_upload():
    for authority in (H1, H2):
        client = connect(authority)
        client.headers(1, frames.get(authority, "/early", "POST"), end=False)
        client.data(1, b"x" * 1000, end=False)
        client.pump(lambda: client.answer(1).reset is not None)
        equal((client.answer(1).status, client.answer(1).ended, client.answer(1).reset), (413, True, 0))
        equal(client.fetch(3, frames.get(authority)).status, 200)


# --- Ends that are not in order --------------------------------------------------------------------


def test_an_answer_that_is_cut_is_reset():
    for authority, path in ((H2, "/reset"), (H1, "/cut"), (H1, "/short")):
        answer = connect(authority).fetch(1, frames.get(authority, path))
        # A reset may overtake the head (RFC 9113, 5.4.2), but nothing may look like a whole answer.
        equal((answer.status in (None, 200), answer.ended), (True, False))
        assert answer.reset not in (None, 0), answer.reset


def test_a_request_given_up_is_given_up_upstream():
    client = connect(H2)
    client.headers(1, frames.get(H2, "/forever"))
    client.pump(lambda: client.answer(1).body)
    client.send(frames.frame(frames.RST_STREAM, 0, 1, b"\0\0\0\x08"))
    for _ in range(2400):
        if ["/forever", 8] in seen()["resets"]:
            break
        time.sleep(0.05)
    contains(seen()["resets"], ["/forever", 8])
    equal(client.fetch(3, frames.get(H2)).status, 200)


def test_a_farewell_of_the_server_moves_on_to_another_connection():
    client = connect(H2)
    first = client.fetch(1, frames.get(H2, "/goaway"))
    second = client.fetch(3, frames.get(H2, "/goaway"))
    equal((first.status, second.status), (200, 200))
    assert first.body != second.body, first.body


def test_a_request_that_the_server_did_not_take_is_sent_again():
    client = connect(H2)
    answer = client.fetch(1, frames.get(H2, "/refuse-once"))
    if answer.status != 200 or answer.body != b"second":  # An even connection answers at once.
        raise AssertionError("%r %r" % (answer.status, answer.body))
    equal(client.fetch(3, frames.get(H2)).status, 200)


# --- gRPC ------------------------------------------------------------------------------------------


def grpc_in_all_four_shapes(ca, scheme, authority):
    proxy = "http://%s:%d" % gateway.PROXY
    done = subprocess.run([PYTHON, HERE + "/grpc_client.py", ca, authority],
                          env=dict(os.environ, https_proxy=proxy, grpc_proxy=proxy), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=600)
    assert done.returncode == 0, done.stderr.decode()[-1500:]
    got = json.loads(done.stdout)
    equal((got["unary"], got["trailing"]), ("unary:hello", "yes"))
    equal(got["many"], ["0", "1", "2", "3", "4"])
    equal(got["gathered"], "a,b,c")
    equal(got["large"], 3000006)
    equal(got["chat"], ["chat:0", "chat:1", "chat:2", "chat:3", "chat:4"])
    equal(got["Fail"], ["FAILED_PRECONDITION", "not today"])
    equal(got["Denied"][0], "PERMISSION_DENIED")
    equal((got["endless"], got["cancelled"]), ("first", "CANCELLED"))
    STAGE.expect_log("-> POST %s://%s/test.Echo/Denied" % (scheme, authority))


def test_grpc_in_all_four_shapes():
    grpc_in_all_four_shapes(STAGE.folder + "/ca.pem", "https", "grpc.example.test:50051")


def test_grpc_without_tls():
    grpc_in_all_four_shapes("-", "http", "grpc.example.test:50052")


# --- What is no request ----------------------------------------------------------------------------


MALFORMED = [
    [("X-Upper", "v")],
    [("connection", "keep-alive")],
    [("keep-alive", "1")],
    [("proxy-connection", "close")],
    [("transfer-encoding", "chunked")],
    [("upgrade", "h2c")],
    [("http2-settings", "AAAA")],
    [("te", "gzip")],
    [("te", "trailers, deflate")],
    [("te", "")],
    [("content_length", "5")],
    [("transfer_encoding", "chunked")],
    [("cookie", "a=1"), ("cookie", "b\r\nsmuggled: 1")],
    [("x", "a\r\nsmuggled: 1")],
    [("x", "a\nsmuggled: 1")],
    [("x", "a\rsmuggled: 1")],
    [("x", b"a\0smuggled")],
    [("x", "a\r\n\r\nGET /secret/smuggled HTTP/1.1\r\nHost: api.example.test\r\n\r\n")],
    [("x\r\nsmuggled", "1")],
    [("x: smuggled", "1")],
    [("x smuggled", "1")],
    [("", "smuggled")],
    [("x", " padded")],
    [("x", b"\xff")],
    [("host", "evil.example.test")],
    [("host", "api.example.test"), ("host", "evil.example.test")],
    [("content-length", "5")],
    [("content-length", "0"), ("content-length", "5")],
    [("content-length", "+0")],
    [(":path", "/secret/again")],
    [(":authority", "evil.example.test")],
    [(":status", "200")],
    [(":protocol", "websocket")],
    [(":unknown", "1")],
]
# In place of the field of the same name.
REPLACED = [
    (":method", "GET /secret/smuggled HTTP/1.1\r\nx: y"),
    (":method", "GET "),
    (":method", ""),
    (":method", "CONNECT"),
    (":scheme", "http"),
    (":scheme", "HTTPS"),
    (":scheme", ""),
    (":path", ""),
    (":path", "echo"),
    (":path", "*"),
    (":path", "https://evil.example.test/"),
    (":path", "/echo HTTP/1.1\r\nsmuggled: 1\r\nx:"),
    (":path", "/echo smuggled"),
    (":path", "/echo\tsmuggled"),
    (":path", b"/echo\0smuggled"),
    (":path", "/echo#smuggled"),
    (":path", "/../../echo"),
    (":path", "/echo/..%5c..%5csecret/x"),
    (":path", "/echo/%c0%ae%c0%ae/x"),
    (":path", "/echo%2f..%2fsecret"),
    (":path", "/echo?x=%zz"),
    (":authority", ""),
    (":authority", "api.example.test/"),
    (":authority", "api.example.test\r\nsmuggled: 1"),
]


def test_a_malformed_request_is_no_request_and_costs_its_stream_alone():
    cases = [frames.get(H1) + fields for fields in MALFORMED]
    for name, value in REPLACED:
        cases.append([(n, value if n == name else v) for n, v in frames.get(H1)])
    for missing in (":method", ":scheme", ":path", ":authority"):
        cases.append([field for field in frames.get(H1) if field[0] != missing])
    cases.append([("accept", "*/*")] + frames.get(H1))
    cases.append(frames.get(H1)[:3] + [("accept", "*/*")] + frames.get(H1)[3:])
    client = connect(H1)
    stream = 1
    for case in cases:
        before = len(STAGE.events())
        answer = client.fetch(stream, case)
        assert answer.reset not in (None, 0) and answer.status is None, "%r got %r" % (case, answer.status)
        event = STAGE.events()[before]
        equal(event["status"], "Failure")
        equal(client.fetch(stream + 2, frames.get(H1)).status, 200)
        stream += 4
    lacks(STAGE.log(), "smuggled")


def odd_frames():
    """Frames that no client sends, by what is wrong with them."""
    F, head, post = frames.frame, frames.block(frames.get(H1)), frames.block(frames.get(H1, method="POST"))
    kind = frames

    def headers(block, stream=1, flags=5):
        return F(kind.HEADERS, flags, stream, block)

    def setting(number, value):
        return F(kind.SETTINGS, 0, 0, struct.pack(">HI", number, value)) + headers(head)

    def trailers(*fields):
        return headers(post, flags=4) + F(kind.DATA, 0, 1, b"body") + headers(frames.block(fields))
    entry = b"\x40\x01x\x7f\xa1\x1e" + b"a" * 4000
    return {
        "an even stream": headers(head, 2), "a stream before the last": headers(head[:-4], 5) + headers(head, 3),
        "headers on no stream": headers(head, 0), "data on no stream": F(kind.DATA, 1, 0, b"x"),
        "data before headers": F(kind.DATA, 1, 1, b"x"), "padding longer than its frame": F(kind.HEADERS, 13, 1, b"\xff" + head),
        "padding longer than its data": headers(post, flags=4) + F(kind.DATA, 9, 1, b"\xffab"),
        "a stream that waits for itself": F(kind.HEADERS, 0x25, 1, struct.pack(">IB", 1, 1) + head),
        "an empty window": F(kind.WINDOW_UPDATE, 0, 0, b"\0\0\0\0") + headers(head),
        "a window too wide": F(kind.WINDOW_UPDATE, 0, 0, b"\x7f\xff\xff\xff") * 2 + headers(head),
        "half a window": F(kind.WINDOW_UPDATE, 0, 0, b"\0\0") + headers(head),
        "push 2": setting(2, 2), "a first window too wide": setting(4, 1 << 31), "small frames": setting(5, 1),
        "half a setting": F(kind.SETTINGS, 0, 0, b"abc") + headers(head), "settings on a stream": F(kind.SETTINGS, 0, 1) + headers(head),
        "a promise": F(kind.PUSH_PROMISE, 4, 1, struct.pack(">I", 2) + head), "half a ping": F(kind.PING, 0, 0, b"1") + headers(head),
        "a reset of no stream": F(kind.RST_STREAM, 0, 0, b"\0\0\0\0") + headers(head),
        "a reset of a stream to come": F(kind.RST_STREAM, 0, 1, b"\0\0\0\0") + headers(head),
        "a continuation of nothing": F(kind.CONTINUATION, 4, 1, head),
        "a continuation of another": headers(head[:10], flags=1) + F(kind.CONTINUATION, 4, 3, head[10:]),
        "data among headers": headers(head, flags=1) + F(kind.DATA, 1, 1), "a ping among headers": headers(head, flags=1) + F(kind.PING, 0, 0, b"x" * 8),
        "a request among headers": headers(head, flags=1) + headers(head, 3), "a frame too long": F(kind.DATA, 0, 1, b"x" * 16385),
        "entry 0": headers(b"\x80"), "an entry beyond the table": headers(b"\xff\xff\xff\xff\x0f"), "a number without end": headers(b"\xff" * 21 + b"\1"),
        "a table too large": headers(b"\x3f\xe1\xff\xff\x7f" + head), "a table size in the middle": headers(head + b"\x20" + frames.block([("x", "y")])),
        "Huffman's end in a text": headers(head + b"\x10\x01x\x84\xff\xff\xff\xff"), "Huffman's padding of zeros": headers(head + b"\x10\x01x\x81\0"),
        "a text cut off": headers(head + b"\x10\x7f"), "ten thousand references": headers(head + entry + b"\xbe" * 10000),
        "thousands of fields": headers(head + b"\x10\x01x\0" * 4000),
        "extended CONNECT": headers(frames.block([(":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "https"), (":authority", H1), (":path", "/echo")])),
        "two methods": headers(frames.block([(":method", "GET"), (":method", "POST")]) + frames.block(frames.get(H1)[1:])),
        "two paths": headers(head + frames.block([(":path", "/secret/smuggled")])),
        "trailers that go on": headers(post, flags=4) + headers(frames.block([("x", "y")]), flags=4) + F(kind.DATA, 1, 1, b"more"),
        "trailers twice": headers(post, flags=4) + headers(frames.block([("x", "y")]), flags=4) + headers(frames.block([("x", "z")])),
        **{"a trailer of " + name: trailers((name, value)) for name, value in (
            (":path", "/secret/smuggled"), (":status", "200"), ("connection", "close"), ("transfer-encoding", "chunked"), ("content-length", "4"),
            ("host", "evil.example.test"), ("x", "a\r\nsmuggled: 1"), ("x\r\nsmuggled", "1"), ("X", "a"), ("authorization", "a"), ("x-http-method-override", "DELETE"), ("x_original_url", "/"), ("content_type", "a/b"))},
    }


def test_frames_that_no_client_sends_are_no_request():
    for name, data in odd_frames().items():
        client = connect(H1)
        client.send(data)
        client.pump(lambda: client.goaway is not None or client.over(1), 3)
        refused = client.goaway not in (None, 0) or client.answer(1).reset not in (None, 0)
        assert refused and client.answer(1).status is None, (name, client.goaway, client.answer(1).status, client.answer(1).body)
        client.connection.close()
    lacks(STAGE.log(), "smuggled")
    client = connect(H1)
    twice = frames.frame(frames.HEADERS, 5, 1, frames.block(frames.get(H1)))
    client.send(frames.frame(0xfa, 0xff, 1, b"unknown") + twice + twice)  # Its second is behind the end.
    client.pump(lambda: client.goaway is not None)
    equal(client.goaway, 5)
    padded = connect(H1)
    padded.headers(1, frames.get(H1, method="POST") + [("te", "trailers")], end=False)
    padded.send(frames.frame(frames.DATA, 9, 1, b"\x02ab\0\0"))
    padded.pump(lambda: padded.over(1))
    contains(padded.answer(1).body, b"\r\n\r\n2\r\nab\r\n0\r\n\r\n")
    lacks(padded.answer(1).body.lower(), b"\r\nte:")


def test_another_authority_than_the_tunnels_is_refused():
    client = connect(H1)
    authorities = ["evil.example.test", "api.example.test:444", "user@api.example.test", "api.example.test:443:1",
                   "[::1]", "api.example.test.evil.test", "api.example.test:99999"]
    for number, authority in enumerate(authorities):
        answer = client.fetch(4 * number + 1, frames.get(authority))
        equal((authority, answer.status), (authority, 403))
        equal(json.loads(answer.body)["error"], "request_authority_mismatch")
        equal(client.fetch(4 * number + 3, frames.get(H1)).status, 200)
    for number, authority in enumerate(["API.example.test", "api.example.test:443", "api.example.test."]):
        answer = client.fetch(101 + 2 * number, frames.get(authority))
        equal(answer.status, 200)
        contains(answer.body, b"\r\nHost: api.example.test\r\n")


def test_a_body_that_differs_from_its_length_is_no_request():
    for authority in (H1, H2):
        for length, body in (("5", b"1234"), ("5", b"123456"), ("0", b"1")):
            fields = frames.get(authority, "/echo", "POST") + [("content-length", length)]
            answer = connect(authority).fetch(1, fields, body)
            assert answer.status != 200 and answer.reset not in (None, 0), (answer.status, answer.reset)
        fields = frames.get(authority, "/echo", "POST") + [("content-length", "5")]
        equal(connect(authority).fetch(1, fields, b"12345").status, 200)


def test_what_passes_reaches_a_server_of_http1_as_one_request():
    body = b"0\r\n\r\nGET /secret/smuggled HTTP/1.1\r\nHost: api.example.test\r\n\r\n"
    client = connect(H1)
    fields = frames.get(H1, "/echo?q=a%0d%0ab", "POST") + [("cookie", "a=1"), ("cookie", "b=2"), ("x", "a\tb")]
    answer = client.fetch(1, fields, body)
    equal(answer.status, 200)
    head, _, rest = answer.body.partition(b"\r\n\r\n")
    equal(head.split(b"\r\n")[:2], [b"POST /echo?q=a%0d%0ab HTTP/1.1", b"Host: api.example.test"])
    equal(sorted(head.lower().split(b"\r\n")[2:]),
          [b"cookie: a=1; b=2", b"transfer-encoding: chunked", b"x: a\tb"])
    equal(rest, b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n")
    sized = client.fetch(3, frames.get(H1, "/echo", "POST") + [("content-length", str(len(body)))], body)
    contains(sized.body.lower(), b"content-length: %d\r\n" % len(body))
    assert sized.body.endswith(body)
    empty = client.fetch(5, frames.get(H1, "/echo", "POST"))
    contains(empty.body.lower(), b"content-length: 0\r\n")


# --- Floods ----------------------------------------------------------------------------------------


def drown(client, pieces):
    """Sends the pieces until the gateway hangs up; the code of its farewell."""
    for piece in pieces:
        client.send(piece)
        if client.cut:
            break
    client.pump(lambda: client.goaway is not None, 5)
    return client.goaway


def test_floods_end_in_a_farewell():
    reset = b"".join(
        frames.frame(frames.HEADERS, 5, stream, frames.block(frames.get(H2, "/hold"))) +
        frames.frame(frames.RST_STREAM, 0, stream, b"\0\0\0\x08") for stream in range(1, 2001, 2))
    equal(drown(connect(H2), [reset]), 11)
    equal(drown(connect(H2), [frames.frame(frames.PING, 0, 0, b"12345678") * 100] * 20), 11)
    equal(drown(connect(H2), [frames.frame(frames.SETTINGS, 0, 0) * 100] * 20), 11)
    empty = connect(H2)
    empty.headers(1, frames.get(H2, "/slow", "POST"), end=False)
    equal(drown(empty, [frames.frame(frames.DATA, 0, 1) * 100] * 20), 11)
    continued = frames.frame(frames.HEADERS, 1, 1, frames.block(frames.get(H2)))
    flood = frames.frame(frames.CONTINUATION, 0, 1, frames.block([("x", "y")])) * 100
    client = connect(H2)
    drown(client, [continued] + [flood] * 5)
    client.pump(lambda: False)
    assert client.closed and not client.answers
    STAGE.expect_log("HTTP/2: flood")
    # The gateway is as well as before.
    equal(ask(H2, "/echo").status, 200)


def test_a_head_that_is_too_long_is_no_request():
    client = connect(H2)
    long = frames.get(H2) + [("x-%d" % n, "v" * 1000) for n in range(16)]
    payload = frames.block(long)
    client.send(frames.frame(frames.HEADERS, 1, 1, payload[:16000]) +
                frames.frame(frames.CONTINUATION, 4, 1, payload[16000:]))
    client.pump(lambda: client.over(1))
    equal(client.answer(1).status, None)
    short = frames.get(H2) + [("x-%d" % n, "v" * 1000) for n in range(15)]
    client.headers(3, short)
    client.pump(lambda: client.over(3))
    equal(client.answer(3).status, 200)


def test_a_client_that_reads_nothing_holds_up_only_itself():
    client = connect(H2, window=False)
    for number in range(20):
        client.headers(2 * number + 1, frames.get(H2, "/big"))
    client.pump(lambda: sum(len(a.body) for a in client.answers.values()) >= 65535, 3)
    client.pump(lambda: False, 0.2)
    equal(sum(len(a.body) for a in client.answers.values()), 65535)
    equal(ask(H2, "/echo").status, 200)


def test_without_tls_each_request_is_judged_as_within():
    options = ("--http2-prior-knowledge", "-p")
    answer = curl("http://%s/echo?x=1" % CLEAR, *options, "-d", "some")
    equal((answer.code, answer.status, version(answer)), (0, 200, "HTTP/2"))
    fields = dict(answer.json()["fields"])
    equal((fields[":method"], fields[":scheme"], fields[":path"], fields[":authority"], answer.json()["body"]),
          ("POST", "http", "/echo?x=1", CLEAR, "some"))
    STAGE.expect_log("-> POST http://%s/echo [policy:api engine:l7]" % CLEAR)
    equal(curl("http://%s/secret/x" % CLEAR, *options).status, 403)
    client = connect_clear(CLEAR)
    one = client.fetch(1, frames.get(CLEAR, scheme="http"))
    denied = client.fetch(3, frames.get(CLEAR, "/secret/x", scheme="http"))
    two = client.fetch(5, frames.get(CLEAR, scheme="http"))
    equal((one.status, denied.status, two.status), (200, 403, 200))
    equal(json.loads(one.body)["connection"], json.loads(two.body)["connection"])
    client = connect_clear(CLEAR)  # A request of HTTPS is not what this connection can carry.
    client.headers(1, frames.get(CLEAR))
    client.pump(lambda: client.answer(1).reset is not None)
    equal(client.answer(1).reset, 1)


def test_without_tls_no_request_names_another_host():
    for authority in (CLEAR, "l4.example.test:10080"):
        client = connect_clear(authority)
        equal(client.fetch(1, frames.get(authority, scheme="http")).status, 200)
        answer = client.fetch(3, frames.get("evil.example.test", scheme="http"))
        equal((answer.status, json.loads(answer.body)["error"]), (403, "request_authority_mismatch"))
        equal(client.fetch(5, frames.get(authority, scheme="http")).status, 200)


def test_a_server_without_tls_that_speaks_http1_alone_is_a_failure():
    client = connect_clear("plain.example.test:80")
    equal(client.fetch(1, frames.get("plain.example.test", scheme="http")).status, 502)
    equal(curl("http://plain.example.test/echo").status, 200)


def test_inside_tls_the_client_need_not_have_offered_http2():
    client = frames.Client(gateway.tls_tunnel(H1))
    answer = client.fetch(1, frames.get(H1))
    equal(answer.status, 200)
    contains(answer.body, b"GET /echo HTTP/1.1\r\n")
    equal(client.fetch(3, frames.get(H1, "/secret/x")).status, 403)


def test_a_change_to_http2_within_http1_is_refused():
    connection, _ = gateway.tunnel("plain.example.test:80")
    connection.sendall(gateway.request("/echo", "Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings",
                                       "HTTP2-Settings: AAAA", host="plain.example.test"))
    got = gateway.read_all(connection)
    contains(got, b"403 Forbidden")
    contains(got, b"unsupported_l7_protocol")


def test_a_host_that_is_not_inspected_speaks_what_it_likes():
    answer = ask("l4.example.test:10443", "/secret/x")
    equal((answer.status, version(answer)), (200, "HTTP/2"))
    connection, head = gateway.tunnel("l4.example.test:9000")
    contains(head, b" 200 ")
    words = b"\x01 any words \x02"
    connection.sendall(words)
    got = b""
    while not got.endswith(words):  # A server that says hello, and then what it is told.
        more = connection.recv(65536)
        assert more, got
        got += more
    connection.close()


def test_no_descriptor_and_no_stream_is_left_behind():
    """Last but one: behind all of that the gateway holds what it held at its start, nearly."""
    pid = STAGE.gateway_pid()
    before = len(os.listdir("/proc/%d/fd" % pid))
    clients = [connect(H2) for _ in range(5)]
    for client in clients:
        for number in range(20):
            client.headers(2 * number + 1, frames.get(H2, "/forever"))
        client.pump(lambda: all(client.answer(2 * n + 1).body for n in range(20)))
        client.connection.close()
    for _ in range(2400):
        if len(os.listdir("/proc/%d/fd" % pid)) <= before:
            break
        time.sleep(0.05)
    assert len(os.listdir("/proc/%d/fd" % pid)) <= before, "descriptors are left open"


def test_it_ends_in_order():
    """Last."""
    STAGE.gateway.stdin.close()
    equal(STAGE.gateway.wait(60), 0)


class Stage(gateway.Stage):
    def __init__(self, driver):
        super().__init__(driver)
        enter = ["nsenter", "--target", str(self.children[0].pid), "--net"]
        self.expect_ready(self.start(enter + [PYTHON, HERE + "/origin.py", self.folder]))

    def gateway_pid(self):
        """The gateway proper is the driver's child."""
        with open("/proc/%d/task/%d/children" % (self.gateway.pid, self.gateway.pid)) as children:
            return int(children.read().split()[0])


def enter_namespaces():
    if os.environ.get("HTTP2_TEST_INSIDE") == "1":
        return
    flags = ["--net", "--mount"] if os.geteuid() == 0 else ["--user", "--map-root-user", "--net", "--mount"]
    os.environ["HTTP2_TEST_INSIDE"] = "1"
    if subprocess.run(["unshare", *flags, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        print("# SKIP userns: this machine gives no network namespace")
        sys.exit(77)
    os.execvp("unshare", ["unshare", *flags, PYTHON, os.path.abspath(__file__), *sys.argv[1:]])


def main():
    global STAGE
    if len(sys.argv) < 2:
        print(__doc__)
        return 64
    enter_namespaces()
    wanted = sys.argv[2:]
    tests = [(name, body) for name, body in globals().items()
             if name.startswith("test_") and (not wanted or name in wanted)]
    if not tests:
        print("FAILED: no test is called %s" % " or ".join(wanted))
        return 1
    STAGE = gateway.STAGE = Stage(os.path.abspath(sys.argv[1]))
    failed = 0
    try:
        for name, body in tests:
            started = time.monotonic()
            try:
                body()
            except Exception as problem:  # Any failure is one test's failure.
                failed += 1
                print("FAILED %s: %s: %s" % (name, type(problem).__name__, str(problem)[:1500]), flush=True)
            if os.environ.get("HTTP2_TEST_TIMES"):
                print("%5.2f s %s" % (time.monotonic() - started, name), flush=True)
    finally:
        if failed and os.environ.get("GATEWAY_TEST_LOG"):
            print(STAGE.log())
        STAGE.close()
    print("http2: %d passed, %d failed" % (len(tests) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
