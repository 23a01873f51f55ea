# SPDX-License-Identifier: Apache-2.0
"""A server that remembers every byte it was sent and answers as badly as its path says."""
import re
import socket
import threading


class Upstream:
    """Listens on loopback. `requests` holds (head, body) as a strict reader takes them off the wire."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self.socket.getsockname()[1]
        self.requests = []
        self.rest = []  # What was left on a connection and is no request.
        self.lock = threading.Lock()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            connection, _ = self.socket.accept()
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        data = b""
        connection.settimeout(120)
        try:
            while True:
                while b"\r\n\r\n" not in data:
                    piece = connection.recv(65536)
                    if not piece:
                        with self.lock:
                            self.rest += [data] if data else []
                        return
                    data += piece
                head, _, data = data.partition(b"\r\n\r\n")
                body, data = self.body(connection, head, data)
                with self.lock:
                    self.requests.append((head.decode("latin-1"), body))
                if not self.answer(connection, head.decode("latin-1"), body):
                    return
        except OSError:
            pass
        finally:
            connection.close()

    def body(self, connection, head, data):
        def need(count):
            nonlocal data
            while len(data) < count:
                piece = connection.recv(65536)
                if not piece:
                    raise OSError("cut")
                data += piece

        length = re.search(rb"(?im)^content-length: *(\d+)\r?$", head)
        if re.search(rb"(?im)^transfer-encoding: *chunked\r?$", head):
            body = b""
            while True:
                while b"\r\n" not in data:
                    need(len(data) + 1)
                size, _, data = data.partition(b"\r\n")
                size = int(size, 16)
                need(size + 2)
                body, data = body + data[:size], data[size + 2:]
                if size == 0:
                    return body, data
        size = int(length.group(1)) if length else 0
        need(size)
        return data[:size], data[size:]

    def answer(self, connection, head, body):
        target = head.split(" ")[1]
        name = target.rsplit("/", 1)[-1].split("?")[0]
        good = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(name), name.encode())
        bad = {
            "unasked101": b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nraw bytes",
            "flood1xx": b"HTTP/1.1 103 Early Hints\r\n\r\n" * 5000 + good,
            "cl-te": b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "two-cl": b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
            "bare-lf": b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
            "huge-head": b"HTTP/1.1 200 OK\r\nX: " + b"a" * 200000 + b"\r\n\r\n",
            "chunk-overflow": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\nab\r\n",
            "second-answer": good + b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged",
            "set-cookie-split": b"HTTP/1.1 200 OK\r\nX: a\rHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            "not-websocket": b"HTTP/1.1 200 OK\r\nUpgrade: websocket\r\nConnection: upgrade\r\nContent-Length: 2\r\n\r\nno",
        }.get(name, good)
        connection.sendall(bad)
        return name not in ("unasked101", "flood1xx", "cl-te", "two-cl", "bare-lf", "huge-head", "chunk-overflow")
