#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The messages of WebSockets through the gateway, with a real client and a real server.

Usage: websocket_test.py GATEWAY_DRIVER [TEST...]
"""
import asyncio
import json
import os
import queue
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

import websockets

DRIVER = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else ""
HOST = "host.openshell.internal"
KEY = "dGhlIHNhbXBsZSBub25jZQ=="

POLICY = """
version: 1
network_policies:
  ws:
    endpoints:
      - {{host: {host}, port: {port}, path: /chat, protocol: websocket, access: read-write}}
      - {{host: {host}, port: {port}, path: /quiet, protocol: websocket, access: read-only}}
      - {{host: {host}, port: {port}, path: /audit, protocol: websocket, enforcement: audit, access: read-only}}
      - {{host: {host}, port: {port}, path: /secret, protocol: websocket, access: read-write,
         websocket_credential_rewrite: true}}
      - {{host: {host}, port: {port}, path: /rest, protocol: rest, access: read-only}}
      - {{host: {host}, port: {port}, path: /queries, protocol: graphql, access: full}}
      - host: {host}
        port: {port}
        path: /graphql
        protocol: websocket
        rules:
          - allow: {{method: GET, path: /graphql}}
          - allow: {{operation_type: subscription, fields: [news]}}
    binaries: [{{path: {python}}}]
"""


class Server(threading.Thread):
    """Echoes every message, and remembers it. "close CODE" closes, "send SIZE" sends so much."""

    def __init__(self):
        super().__init__(daemon=True)
        self.seen = []
        self.closed = queue.Queue()
        self.extensions = []
        self.ready = threading.Event()
        self.start()
        self.ready.wait(120)

    def run(self):
        asyncio.run(self.serve())

    async def serve(self):
        server = await websockets.serve(self.handle, "127.0.0.1", 0, max_size=None, ping_interval=None)
        self.port = server.sockets[0].getsockname()[1]
        self.ready.set()
        await asyncio.Future()

    async def handle(self, ws):
        self.extensions.append(ws.response_headers.get("Sec-WebSocket-Extensions", ""))
        try:
            async for message in ws:
                self.seen.append(message)
                words = message.split() if isinstance(message, str) else []
                if words[:1] == ["close"]:
                    await ws.close(int(words[1]), "as asked")
                elif words[:1] == ["send"]:
                    await ws.send("x" * int(words[1]))
                else:
                    await ws.send(message)
        except websockets.ConnectionClosed:
            pass
        self.closed.put((ws.path, ws.close_code))


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Stage:
    """The server and the gateway; one for all tests."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="websocket-test-")
        self.server = Server()
        self.proxy = ("127.0.0.1", free_port())
        policy = self.folder + "/policy.yaml"
        with open(policy, "w") as out:
            out.write(POLICY.format(host=HOST, port=self.server.port, python=os.path.realpath(sys.executable)))
        bundle = "/etc/ssl/certs/ca-certificates.crt"
        self.gateway = subprocess.Popen(
            [DRIVER, policy, bundle, self.folder, self.proxy[0], str(self.proxy[1]), str(os.getpid()),
             "TOKEN@%s=s3cret-value" % HOST], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.gateway.stdout.readline() != b"ready\n":
            raise SystemExit("the gateway does not start")

    def close(self):
        self.gateway.stdin.close()
        status = self.gateway.wait(120)
        self.gateway.stdout.close()
        shutil.rmtree(self.folder)
        return status

    def events(self, path):
        """Records of requests to one path, with the engine that decided, oldest first."""
        events = [json.loads(line) for line in self.events_text().splitlines()]
        return [(event["unmapped"]["engine"], event["http_request"]["http_method"], event["disposition"])
                for event in events if event.get("http_request", {}).get("url", {}).get("path") == path]

    def events_text(self):
        with open(self.folder + "/events.jsonl") as text:
            return text.read()

    def log(self):
        with open(self.folder + "/events.log") as text:
            return text.read()

    def tunnel(self):
        connection = socket.create_connection(self.proxy, timeout=120)
        target = "%s:%d" % (HOST, self.server.port)
        connection.sendall(("CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (target, target)).encode())
        head = read_head(connection)
        assert b" 200 " in head, head
        return connection


def read_head(connection):
    head = b""
    while b"\r\n\r\n" not in head:
        more = connection.recv(1)
        if not more:
            break
        head += more
    return head


def read_frame(connection):
    """One short frame of a server, or what there is of it."""
    data = b""
    while len(data) < 2 or len(data) < 2 + data[1]:
        more = connection.recv(1)
        if not more:
            break
        data += more
    return data


STAGE = None


def setUpModule():
    global STAGE
    STAGE = Stage()


def tearDownModule():
    status = STAGE.close()
    assert status == 0, "the gateway ended with %d" % status


class WebSocketTest(unittest.TestCase):
    def setUp(self):
        STAGE.server.seen.clear()

    def talk(self, path, *messages, answers=None, **options):
        """Sends each message and gives the answers, or the code and reason that closed it instead."""
        async def conversation():
            got = []
            uri = "ws://%s:%d%s" % (HOST, STAGE.server.port, path)
            try:
                async with websockets.connect(uri, sock=STAGE.tunnel(), max_size=None, ping_interval=None,
                                              open_timeout=120, close_timeout=120, **options) as ws:
                    for message in messages:
                        await ws.send(message)
                        got.append(await asyncio.wait_for(ws.recv(), 120))
            except websockets.ConnectionClosed as closed:
                got.append((closed.rcvd.code, closed.rcvd.reason) if closed.rcvd else None)
            return got
        return asyncio.run(conversation())

    def exchange(self, path, data, *fields):
        """Opens a WebSocket by hand, sends bytes, and gives the head and the first frame behind it."""
        lines = ["GET %s HTTP/1.1" % path, "Host: %s:%d" % (HOST, STAGE.server.port)]
        lines += fields or ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
                            "Sec-WebSocket-Key: " + KEY]
        with STAGE.tunnel() as connection:
            connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n")
            head = read_head(connection)
            if not head.startswith(b"HTTP/1.1 101 "):
                return head, b""
            connection.sendall(data)
            return head, read_frame(connection)

    # --- Rules ---------------------------------------------------------------------------------------

    def test_a_message_passes_where_a_rule_allows_it(self):
        self.assertEqual(self.talk("/chat", "hello", "again"), ["hello", "again"])
        self.assertEqual(STAGE.events("/chat")[-2:], [("l7-websocket", "WEBSOCKET_TEXT", "Allowed")] * 2)

    def test_a_message_that_no_rule_allows_closes_the_connection_and_does_not_arrive(self):
        self.assertEqual(self.talk("/quiet", "hello"), [(1008, "WEBSOCKET_TEXT /quiet not permitted by policy")])
        self.assertEqual(STAGE.server.seen, [])
        self.assertEqual(STAGE.events("/quiet")[-1], ("l7-websocket", "WEBSOCKET_TEXT", "Blocked"))
        self.assertIn("engine:l7-websocket", STAGE.log())

    def test_an_endpoint_in_audit_records_and_lets_pass(self):
        self.assertEqual(self.talk("/audit", "hello"), ["hello"])
        self.assertIn("WEBSOCKET_L7_REQUEST audit WEBSOCKET_TEXT", STAGE.events_text())

    def test_graphql_subscriptions_are_judged_by_their_fields(self):
        def subscribe(query):
            return json.dumps({"id": "1", "type": "subscribe", "payload": {"query": query}})
        news = subscribe("subscription { news { title } }")
        self.assertEqual(self.talk("/graphql", '{"type":"connection_init"}', news),
                         ['{"type":"connection_init"}', news])
        for denied in (subscribe("subscription { prices }"), subscribe("mutation { news }"),
                       subscribe("subscription { news: prices }"), subscribe("subscription {"), "no json"):
            STAGE.server.seen.clear()
            self.assertEqual(self.talk("/graphql", denied)[0][0], 1008, denied)
            self.assertEqual(STAGE.server.seen, [])

    def test_a_plain_request_to_a_websocket_endpoint_is_refused(self):
        head, _ = self.exchange("/chat", b"", "Accept: */*")
        self.assertIn(b"HTTP/1.1 403 ", head)

    def test_none_opens_where_requests_are_judged_by_their_operations(self):
        head, frame = self.exchange("/queries?query=%7Bnews%7D", b"")
        self.assertIn(b"HTTP/1.1 403 ", head)
        self.assertEqual(STAGE.events("/queries")[-1][0], "l7-graphql")
        self.assertEqual(self.talk("/chat?query=%7Bnews%7D", "hello"), ["hello"])

    def test_what_is_no_handshake_is_refused(self):
        for fields in (["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 8",
                        "Sec-WebSocket-Key: " + KEY],
                       ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
                        "Sec-WebSocket-Key: c2hvcnQ="]):
            head, _ = self.exchange("/chat", b"", *fields)
            self.assertIn(b"HTTP/1.1 400 ", head)
        head, _ = self.exchange("/chat", b"\x88\x80\0\0\0\0")
        self.assertIn(b"HTTP/1.1 101 ", head)

    # --- Frames --------------------------------------------------------------------------------------

    def test_a_message_in_fragments_arrives_whole(self):
        self.assertEqual(self.talk("/chat", ["one ", "two ", "\u00e9"]), ["one two \u00e9"])

    def test_messages_are_compressed_without_context(self):
        self.talk("/chat", "x" * 1000)
        self.assertIn("permessage-deflate", STAGE.server.extensions[-1])
        self.assertIn("server_no_context_takeover", STAGE.server.extensions[-1])
        self.assertEqual(self.talk("/chat", "plain", compression=None), ["plain"])
        self.assertEqual(STAGE.server.extensions[-1], "")

    def test_frames_that_break_the_protocol_close_with_their_code(self):
        masked_text = b"\x81\x82\0\0\0\0"
        for data, code in ((b"\x81\x02hi", 1002), (masked_text + b"\xff\xff", 1007), (b"\x80\x80\0\0\0\0", 1002),
                           (b"\xc1\x80\0\0\0\0", 1002), (b"\x81\xff" + (5 << 20).to_bytes(8, "big") + b"mask", 1009),
                           (b"\x82\xff" + (17 << 20).to_bytes(8, "big") + b"mask", 1009)):
            _, answer = self.exchange("/chat", data)
            self.assertEqual((answer[:1], int.from_bytes(answer[2:4], "big")), (b"\x88", code), data)
        self.assertEqual(STAGE.server.seen, [])
        _, answer = self.exchange("/chat", masked_text + b"hi")
        self.assertEqual(answer, b"\x81\x02hi")

    def test_a_message_up_to_the_bound_passes_and_a_longer_one_does_not(self):
        largest = "x" * (4 << 20)
        self.assertEqual(self.talk("/chat", largest), [largest])
        self.assertEqual(self.talk("/chat", largest + "x")[0][0], 1009)
        self.assertEqual(len(STAGE.server.seen), 1)

    def open(self, path):
        """A connection with a WebSocket on it."""
        connection = STAGE.tunnel()
        self.addCleanup(connection.close)
        connection.sendall(("GET %s HTTP/1.1\r\nHost: %s:%d\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n" %
                            (path, HOST, STAGE.server.port, KEY)).encode())
        self.assertIn(b"HTTP/1.1 101 ", read_head(connection))
        return connection

    def test_more_large_messages_than_there_is_room_for_wait_and_then_pass(self):
        def send(payload, whole=True):
            connection = self.open("/chat?room")
            size = len(payload) if whole else len(payload) + 1
            connection.sendall(b"\x81\xff" + size.to_bytes(8, "big") + b"\0\0\0\0" + payload)
            return connection
        large = b"x" * 200000
        held = [send(large, whole=False) for _ in range(32)]
        waiting = [send(large) for _ in range(64)]
        for connection in waiting:
            connection.settimeout(0.3 if connection is waiting[0] else 0)
            self.assertRaises(OSError, connection.recv, 1)
        self.assertEqual(self.talk("/chat", "small"), ["small"])  # Control: others go on.
        refused = send(large)
        self.assertEqual(read_frame(refused)[:4], b"\x88\x19\x03\xf5")  # 1013: too many wait already.
        held[0].sendall(b"y")  # This one is whole, and makes room.
        for connection in waiting + held[:1]:
            connection.settimeout(120)
            self.assertEqual(connection.recv(10), b"\x81\x7f" + (200000 + (connection is held[0])).to_bytes(8, "big"))
        self.assertEqual(len(STAGE.server.seen), 1 + 64 + 1)

    def test_what_the_server_sends_has_no_bound(self):
        self.assertEqual(len(self.talk("/chat", "send 9000000")[0]), 9000000)

    def test_closing_is_passed_on_both_ways(self):
        def close_code(path):
            while True:  # Others' connections may end meanwhile.
                closed, code = STAGE.server.closed.get(timeout=120)
                if closed == path:
                    return code
        self.assertEqual(self.talk("/chat?server", "close 4001"), [(4001, "as asked")])
        self.assertEqual(close_code("/chat?server"), 4001)
        self.talk("/chat?client", "bye")
        self.assertEqual(close_code("/chat?client"), 1000)

    def test_binary_messages_pass_unread_where_any_text_may(self):
        self.assertEqual(self.talk("/chat", b"\0\xff" * 100000), [b"\0\xff" * 100000])

    def test_binary_messages_are_refused_where_what_a_text_says_is_judged(self):
        message = json.dumps({"type": "subscribe", "id": "1", "payload": {"query": "subscription { news }"}})
        self.assertEqual(self.talk("/graphql", message), [message])
        self.assertEqual(self.talk("/graphql", message.encode())[0][0], 1003)
        self.assertEqual(self.talk("/quiet", b"hidden")[0][0], 1008)
        self.assertEqual(STAGE.server.seen, [message])
        self.assertEqual(self.talk("/audit", b"seen"), [b"seen"])

    # --- Credentials ---------------------------------------------------------------------------------

    def test_placeholders_in_messages_become_credentials(self):
        self.assertEqual(self.talk("/secret", "key=openshell:resolve:env:TOKEN"), ["key=s3cret-value"])
        self.assertNotIn("s3cret-value", STAGE.log())
        self.assertEqual(self.talk("/secret", "key=openshell:resolve:env:OTHER")[0][0], 1008)
        self.assertEqual(STAGE.server.seen, ["key=s3cret-value"])

    def test_binary_messages_are_refused_where_credentials_are_put_in(self):
        self.assertEqual(self.talk("/secret", b"hidden")[0][0], 1008)
        self.assertEqual(STAGE.server.seen, [])

    # --- Other endpoints ----------------------------------------------------------------------------------

    def test_a_rest_endpoint_opens_none(self):
        with self.assertRaisesRegex(websockets.InvalidStatusCode, "403"):
            self.talk("/rest", "one")
        self.assertEqual(STAGE.server.seen, [])


if __name__ == "__main__":
    unittest.main()
