# SPDX-License-Identifier: Apache-2.0
"""Servers of HTTP/2 and gRPC that the gateway is made to talk to. Run inside a network namespace of the
test, with the folder of its certificates as the argument."""
import json
import socket
import ssl
import sys
import threading
import time
from concurrent import futures

import grpc
import h2.config
import h2.connection
import h2.events
import h2.exceptions

ADDRESS = "10.77.0.2"
HTTP2_PORT = 10443
CLEAR_PORT = 10080  # HTTP/2 without TLS.
GRPC_PORT = 50051
CLEAR_GRPC_PORT = 50052

# What a test asks about later.
SEEN = {"connections": 0, "resets": [], "held": 0}


class Origin:
    """One connection. What arrived of a body is acknowledged at once, but for /slow."""

    def __init__(self, connection):
        self.socket = connection
        self.lock = threading.RLock()
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(
            client_side=False, header_encoding="utf-8"))
        self.requests = {}
        SEEN["connections"] += 1
        self.number = SEEN["connections"]

    def flush(self):
        data = self.h2.data_to_send()
        if data:
            self.socket.sendall(data)

    def run(self):
        self.h2.initiate_connection()
        self.flush()
        try:
            while True:
                data = self.socket.recv(65536)
                if not data:
                    return
                with self.lock:
                    for event in self.h2.receive_data(data):
                        self.take(event)
                    self.flush()
        except (OSError, ssl.SSLError, h2.exceptions.ProtocolError):
            pass
        finally:
            self.socket.close()

    def take(self, event):
        if isinstance(event, h2.events.RequestReceived):
            fields = [(str(name), str(value)) for name, value in event.headers]
            request = {"fields": fields, "path": dict(fields)[":path"].split("?")[0],
                       "body": bytearray(), "trailers": []}
            self.requests[event.stream_id] = request
            if request["path"] == "/early":
                self.answer(event.stream_id, b"too much", status="413")
            if request["path"] == "/slow":
                threading.Thread(target=self.acknowledge_late, args=(event.stream_id,), daemon=True).start()
            if request["path"] == "/duplex":
                self.h2.send_headers(event.stream_id, [(":status", "200")])
        elif isinstance(event, h2.events.DataReceived):
            request = self.requests[event.stream_id]
            request["body"] += event.data
            if request["path"] == "/duplex" and event.data:
                self.h2.send_data(event.stream_id, b"echo:" + event.data)
            if request["path"] != "/slow" or request.get("late"):
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            else:
                SEEN["held"] += event.flow_controlled_length
        elif isinstance(event, h2.events.TrailersReceived):
            self.requests[event.stream_id]["trailers"] = [(str(n), str(v)) for n, v in event.headers]
        elif isinstance(event, h2.events.StreamReset):
            SEEN["resets"].append([self.requests[event.stream_id]["path"], int(event.error_code)])
        elif isinstance(event, h2.events.StreamEnded):
            self.serve(event.stream_id, self.requests[event.stream_id])

    def acknowledge_late(self, stream):
        time.sleep(1)
        with self.lock:
            self.requests[stream]["late"] = True
            self.h2.acknowledge_received_data(SEEN["held"], stream)
            self.flush()

    def answer(self, stream, body, status="200", fields=(), trailers=()):
        self.h2.send_headers(stream, [(":status", status), ("content-length", str(len(body))), *fields])
        self.h2.send_data(stream, body, end_stream=not trailers)
        if trailers:
            self.h2.send_headers(stream, list(trailers), end_stream=True)

    def serve(self, stream, request):
        path = request["path"]
        if path == "/early":
            return
        if path == "/duplex":
            self.h2.end_stream(stream)
        elif path in ("/seen", "/size"):
            self.answer(stream, json.dumps(SEEN if path == "/seen" else len(request["body"])).encode())
        elif path == "/slow":
            self.answer(stream, str(len(request["body"])).encode())
        elif path == "/trailers":
            self.h2.send_headers(stream, [(":status", "200")])
            self.h2.send_data(stream, json.dumps(request["trailers"]).encode())
            self.h2.send_headers(stream, [("x-sum", "abc"), ("grpc-status", "0")], end_stream=True)
        elif path == "/hints":
            self.h2.send_headers(stream, [(":status", "103"), ("link", "</x>")])
            self.answer(stream, b"hinted")
        elif path == "/nothing":
            self.h2.send_headers(stream, [(":status", "204")], end_stream=True)
        elif path == "/reset":
            self.h2.send_headers(stream, [(":status", "200")])
            self.h2.send_data(stream, b"some of it")
            self.flush()
            self.h2.reset_stream(stream, error_code=2)
        elif path == "/refuse-once":
            if self.number % 2 == 1:
                self.h2.close_connection(last_stream_id=stream - 2 if stream > 1 else 0)
                self.flush()
                self.socket.shutdown(socket.SHUT_RDWR)
            else:
                self.answer(stream, b"second")
        elif path == "/goaway":
            self.answer(stream, b"the last on %d" % self.number)
            self.h2.close_connection()
        elif path == "/hold":
            threading.Thread(target=self.hold, args=(stream,), daemon=True).start()
        elif path == "/big":
            threading.Thread(target=self.send_big, args=(stream,), daemon=True).start()
        elif path == "/forever":
            self.h2.send_headers(stream, [(":status", "200")])
            self.h2.send_data(stream, b"first")
        else:
            body = json.dumps({"fields": request["fields"], "body": request["body"].decode("latin-1"),
                               "connection": self.number}).encode()
            self.answer(stream, body)

    def hold(self, stream):
        time.sleep(0.5)
        with self.lock:
            self.answer(stream, b"held")
            self.flush()

    def send_big(self, stream):
        try:
            self.send_pieces(stream)
        except (OSError, h2.exceptions.ProtocolError):
            pass  # The test has gone.

    def send_pieces(self, stream):
        with self.lock:
            self.h2.send_headers(stream, [(":status", "200")])
            self.flush()
        left = 8000000
        while left:
            with self.lock:
                size = min(left, self.h2.local_flow_control_window(stream), 16384)
                if size:
                    self.h2.send_data(stream, b"x" * size, end_stream=size == left)
                    left -= size
                    self.flush()
            if not size:
                time.sleep(0.002)


def serve_http2(port, context):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((ADDRESS, port))
    listener.listen(64)

    def serve(connection):
        if context is None:
            return Origin(connection).run()
        try:
            inside = context.wrap_socket(connection, server_side=True)
        except (OSError, ssl.SSLError):
            return None
        if inside.selected_alpn_protocol() == "h2":
            Origin(inside).run()
        else:  # Asked for by a client that offers no HTTP/2.
            inside.recv(65536)
            inside.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\nConnection: close\r\n\r\nHTTP/1.1")
            inside.close()
        return None

    def accept():
        while True:
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=serve, args=(connection,), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()


# --- gRPC ------------------------------------------------------------------------------------------


def unary(message, context):
    context.set_trailing_metadata((("x-trailing", "yes"),))
    return b"unary:" + message


def fail(_, context):
    context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not today")


def many(message, _):
    for number in range(int(message)):
        yield b"%d" % number


def chat(messages, _):
    for message in messages:
        yield b"chat:" + message


def gather(messages, _):
    return b",".join(messages)


def endless(_, context):
    context.add_callback(lambda: SEEN["resets"].append(["/test.Echo/Endless", 8]))
    yield b"first"
    while context.is_active():
        time.sleep(0.05)


def serve_grpc(folder):
    methods = {
        "Unary": grpc.unary_unary_rpc_method_handler(unary),
        "Denied": grpc.unary_unary_rpc_method_handler(unary),
        "Fail": grpc.unary_unary_rpc_method_handler(fail),
        "Many": grpc.unary_stream_rpc_method_handler(many),
        "Chat": grpc.stream_stream_rpc_method_handler(chat),
        "Gather": grpc.stream_unary_rpc_method_handler(gather),
        "Endless": grpc.unary_stream_rpc_method_handler(endless),
    }
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=8))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Echo", methods),))
    with open(folder + "/server.key", "rb") as key, open(folder + "/server.pem", "rb") as certificate:
        credentials = grpc.ssl_server_credentials([(key.read(), certificate.read())])
    server.add_secure_port("%s:%d" % (ADDRESS, GRPC_PORT), credentials)
    server.add_insecure_port("%s:%d" % (ADDRESS, CLEAR_GRPC_PORT))
    server.start()
    return server


def main():
    folder = sys.argv[1]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder + "/server.pem", folder + "/server.key")
    context.set_alpn_protocols(["h2", "http/1.1"])
    serve_http2(HTTP2_PORT, context)
    serve_http2(CLEAR_PORT, None)
    server = serve_grpc(folder)
    print("ready", flush=True)
    sys.stdin.read()
    server.stop(0)


if __name__ == "__main__":
    main()
