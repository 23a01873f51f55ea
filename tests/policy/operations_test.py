#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From an operation that the gateway refused to the patch that lets it pass, and nothing beside it: real
requests, the gateway's own records against their schema, `policy suggest`, `git apply`, and the gateway again
under the patched policy.
usage: operations_test.py AGENTIC_CI GATEWAY_DRIVER SOURCE_DIRECTORY"""
import http.client
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import jsonschema

AGENTIC_CI, DRIVER, SOURCE = (os.path.abspath(argument) for argument in sys.argv[1:4])
del sys.argv[1:4]
HOST = "host.openshell.internal"  # The gateway's machine.

POLICY = """\
version: 1
network_policies:
  api:
    endpoints:
      - host: {host}
        port: {port}
        path: /graphql
        protocol: graphql
        access: read-only
      - host: {host}
        port: {port}
        path: /rules
        protocol: graphql
        rules:
          # What the team uses.
          - allow: {{operation_type: query, fields: [viewer]}}
        deny_rules:
          - {{operation_type: '*', fields: [deleteUser]}}
      - {{host: {host}, port: {port}, path: /rpc, protocol: json-rpc, rules: [{{allow: {{method: ping}}}}]}}
      - host: {host}
        port: {port}
        path: /mcp
        protocol: mcp
        rules:
          - allow: {{method: tools/call, tool: read_status}}
      - host: {host}
        port: {port}
        path: /ws
        protocol: websocket
        rules:
          - allow: {{method: GET, path: /ws}}
          - allow: {{operation_type: subscription, fields: [news]}}
      - {{host: {host}, port: {port}, path: /chat, protocol: websocket, access: read-only}}
    binaries:
      - path: {python}
"""


def graphql(query):
    return {"query": query}


def persisted(name):
    return {"extensions": {"persistedQuery": {"version": 1, "sha256Hash": name}}}


def call(method, **params):
    return {"jsonrpc": "2.0", "id": 1, "method": method, **({"params": params} if params else {})}


def tool(name):
    return call("tools/call", name=name, arguments={})


def subscribe(query):
    return {"id": "1", "type": "subscribe", "payload": {"query": query}}


# Path, what is wanted, and a neighbour that must stay refused.
CASES = [
    ("/graphql", graphql("mutation Any { createIssue { id } }"), graphql("mutation Any { closeIssue { id } }")),
    ("/graphql", persisted("3f2a"), persisted("3f2b")),
    ("/rules", graphql("{ viewer organization }"), graphql("{ viewer repository }")),
    ("/rpc", call("eth_call"), call("eth_send")),
    ("/rpc", [call("eth_batch"), call("ping")], [call("eth_batch"), call("eth_send")]),
    ("/mcp", tool("list_issues"), tool("drop_tables")),
    ("/ws", subscribe("subscription { prices }"), subscribe("subscription { secrets }")),
    ("/chat", "hello", None),
]
HOSTILE = "x'}}]\n::error::y\n  evil: [*"


class Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def do_GET(self):  # A WebSocket that says the same to whatever comes.
        self.send_response(101)
        self.send_header("Connection", "Upgrade")
        self.send_header("Upgrade", "websocket")
        self.send_header("Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
        self.end_headers()
        if self.connection.recv(65536):
            self.connection.sendall(b"\x81\x02ok")
        self.close_connection = True

    def log_message(self, *_):
        pass


class Operations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.port = cls.server.server_address[1]

    @classmethod
    def tearDownClass(cls):
        cls.server.shutdown()
        cls.server.server_close()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        python = os.path.realpath(sys.executable)
        (self.root / "policy.yaml").write_text(POLICY.format(host=HOST, port=self.port, python=python))
        self.addCleanup(self.end_gateway)
        for _ in range(5):  # Somebody else may take the port in between.
            with socket.socket() as taken:
                taken.bind(("127.0.0.1", 0))
                self.proxy = taken.getsockname()
            self.gateway = subprocess.Popen(
                [DRIVER, self.root / "policy.yaml", "/etc/ssl/certs/ca-certificates.crt", self.root, self.proxy[0],
                 str(self.proxy[1]), str(os.getpid())], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            if self.gateway.stdout.readline() == b"ready\n":
                return
            self.gateway.communicate()
        self.fail("the gateway does not start")

    def end_gateway(self):
        self.gateway.stdin.close()
        self.gateway.wait(120)
        self.gateway.stdout.close()

    def post(self, path, asked):
        connection = http.client.HTTPConnection(*self.proxy, timeout=120)
        connection.request("POST", f"http://{HOST}:{self.port}{path}", json.dumps(asked),
                           {"Content-Type": "application/json"})
        status = connection.getresponse().status
        connection.close()
        return status

    def message(self, path, asked):
        """200, or the code that a WebSocket is closed with for this message."""
        text = (asked if isinstance(asked, str) else json.dumps(asked)).encode()
        place = f"{HOST}:{self.port}"
        with socket.create_connection(self.proxy, timeout=120) as connection, connection.makefile("rb") as answer:
            connection.sendall(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n".encode())
            self.assertIn(b" 200 ", answer.readline())
            self.assertEqual(answer.readline().strip(), b"")
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {place}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                               "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
                               .encode())
            self.assertIn(b" 101 ", answer.readline())
            while answer.readline().strip():
                pass
            # Masked with zeros.
            connection.sendall(bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text)
            kind, length = answer.read(2)
            body = answer.read(length)
        return 200 if kind == 0x81 else int.from_bytes(body[:2], "big")

    def ask(self, path, asked):
        return self.message(path, asked) if path in ("/ws", "/chat") else self.post(path, asked)

    def refused(self, path, asked):
        self.assertIn(self.ask(path, asked), (400, 403, 1008), asked)

    def events(self):
        return [json.loads(line) for line in (self.root / "events.jsonl").read_text().splitlines()]

    def suggest(self, *options):
        (self.root / "events.ocsf.jsonl").write_bytes((self.root / "events.jsonl").read_bytes())
        done = subprocess.run([AGENTIC_CI, "policy", "suggest", *options, "events.ocsf.jsonl"], cwd=self.root,
                              capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def update(self, name):
        self.gateway.stdin.write(f"update {self.root / name}\n".encode())
        self.gateway.stdin.flush()
        self.assertEqual(self.gateway.stdout.readline(), b"done\n", (self.root / name).read_text())

    def try_all(self):
        for path, asked, neighbour in CASES:
            with self.subTest(path=path, asked=asked):
                self.assertEqual(self.ask(path, asked), 200)
                if neighbour is not None:
                    self.refused(path, neighbour)

    def refuse_all(self):
        for path, asked, _ in CASES:
            self.refused(path, asked)

    def test_a_patch_lets_pass_what_was_refused_and_nothing_beside_it(self):
        self.refuse_all()
        self.post("/rpc", call(HOSTILE))
        patch = self.suggest("--policy", "policy.yaml")
        self.assertIn("# What the team uses.", patch)
        (note,) = [line for line in patch.splitlines() if line.startswith("# ")]
        self.assertRegex(note, "^# POST /rpc at .* by .*: no addition would allow it: POST /rpc not permitted by policy")
        self.assertNotIn("evil", "".join(line for line in patch.splitlines() if line.startswith("+")))
        self.assertIn("'eth_batch'", patch)
        self.assertNotIn("'ping'", patch)
        subprocess.run(["git", "init", "-q", "."], cwd=self.root, check=True, timeout=600)
        subprocess.run(["git", "apply", "-"], input=patch.encode(), cwd=self.root, check=True, timeout=600)
        self.update("policy.yaml")
        self.try_all()
        self.refused("/rpc", call(HOSTILE))
        self.assertEqual(self.ask("/rules", graphql("{ viewer }")), 200)  # As before.

    def test_the_policies_to_paste_let_pass_what_was_refused_and_nothing_beside_it(self):
        self.refuse_all()
        (self.root / "fragment.yaml").write_text(self.suggest())
        self.update("fragment.yaml")
        self.try_all()

    def test_records_say_what_was_asked_for_and_keep_their_schema(self):
        self.refuse_all()
        self.post("/rpc", call(HOSTILE))
        schema = json.loads(pathlib.Path(SOURCE, "docs/reference/schemas/events.schema.json").read_text())
        validator = jsonschema.Draft202012Validator(schema)
        denied = []
        for event in self.events():
            self.assertEqual([error.message for error in validator.iter_errors(event)], [], event)
            if event.get("action_id") == 2:
                denied.append(event["unmapped"])
        self.assertEqual(denied[0]["operations"],
                         [{"operation_type": "mutation", "operation_name": "Any", "fields": ["createIssue"]}])
        self.assertEqual(denied[1]["operations"], [{"persisted_query": "3f2a"}])
        self.assertEqual(denied[4]["operations"], [{"method": "eth_batch"}, {"method": "ping"}])
        self.assertEqual([one["protocol"] for one in denied],
                         ["graphql"] * 3 + ["json-rpc"] * 2 + ["mcp", "websocket", "websocket", "json-rpc"])
        self.assertEqual(denied[-1]["operations"], [{"method": HOSTILE}])
        broken = dict(self.events()[-1])
        broken["unmapped"] = dict(denied[-1], operations=[{"tools": "x"}])
        self.assertTrue(list(validator.iter_errors(broken)))

    def test_what_a_deny_rule_refused_names_that_rule_and_no_line_that_allows_it(self):
        self.refused("/rules", graphql("mutation { deleteUser { id } }"))
        self.refused("/rules", graphql("{ organization }"))
        by_rule, by_none = [event["unmapped"] for event in self.events() if event.get("action_id") == 2]
        line = POLICY.splitlines().index("          - {{operation_type: '*', fields: [deleteUser]}}") + 1
        self.assertRegex(by_rule["deny_rule"], rf"policy\.yaml:{line}:\d+$")
        self.assertNotIn("deny_rule", by_none)
        pasted = self.suggest()
        self.assertIn("organization", pasted)
        self.assertNotIn("fields: ['deleteUser']", pasted)
        self.assertRegex(pasted, rf"(?m)^# POST .*/rules.*: no addition would allow it: .*\(.*policy\.yaml:{line}:\d+\)$")
        self.assertRegex(self.suggest("--policy", "policy.yaml"), "# POST /rules at .*: no addition would allow it: ")

    def test_the_lines_for_people_are_openshells(self):
        self.post("/mcp", tool("drop_tables"))
        self.post("/rpc", call(HOSTILE))
        self.end_gateway()
        log = (self.root / "events.log").read_text()
        self.assertIn(f"POST http://{HOST}:{self.port}/mcp [policy:api engine:l7-mcp] "
                      "[reason:POST /mcp not permitted by policy]\n", log)
        self.assertNotIn("::error::", log)


if __name__ == "__main__":
    unittest.main()
