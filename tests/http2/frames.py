# SPDX-License-Identifier: Apache-2.0
"""A client of HTTP/2 that sends whatever it is told, well-formed or not."""
import struct

import hpack

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS = 1, 1, 4
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def block(fields):
    """Literals, never indexed and without Huffman coding: every byte goes out as given."""
    out = b""
    for name, value in fields:
        out += b"\x10"
        for text in (name, value):
            text = text if isinstance(text, bytes) else text.encode()
            if len(text) < 127:
                out += bytes([len(text)])
            else:
                left = len(text) - 127
                out += b"\x7f"
                while left >= 128:
                    out += bytes([left % 128 + 128])
                    left //= 128
                out += bytes([left])
            out += text
    return out


def get(host, path="/echo", method="GET", scheme="https"):
    return [(":method", method), (":scheme", scheme), (":authority", host), (":path", path)]


class Answer:
    def __init__(self):
        self.fields, self.body, self.trailers, self.reset = None, b"", None, None
        self.ended = False

    @property
    def status(self):
        return int(dict(self.fields)[":status"]) if self.fields else None


class Client:
    """Over a connected socket. Settings are acknowledged, windows are kept open, all else is the test's."""

    def __init__(self, connection, window=True):
        self.connection = connection
        self.window = window
        self.decoder = hpack.Decoder()
        self.answers = {}
        self.goaway = None
        self.closed = False
        self.cut = None
        self.buffer = b""
        self.send(PREFACE + frame(SETTINGS, 0, 0))

    def send(self, data):
        try:
            self.connection.sendall(data)
        except OSError as error:  # What was said before the end is still to be read.
            self.cut = error

    def headers(self, stream, fields, end=True):
        self.send(frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream, block(fields)))

    def data(self, stream, payload, end=True):
        self.send(frame(DATA, END_STREAM if end else 0, stream, payload))

    def answer(self, stream):
        return self.answers.setdefault(stream, Answer())

    def pump(self, until, timeout=120):
        """Reads until `until()` holds, or the connection ends; False: neither did."""
        self.connection.settimeout(timeout)
        while not until() and not self.closed:
            try:
                data = self.connection.recv(65536)
            except TimeoutError:
                return False
            except OSError:
                data = b""
            if not data:
                self.closed = True
            self.buffer += data
            while len(self.buffer) >= 9:
                size = int.from_bytes(self.buffer[:3], "big")
                if len(self.buffer) < 9 + size:
                    break
                kind, flags, stream = struct.unpack(">BBI", self.buffer[3:9])
                payload, self.buffer = self.buffer[9:9 + size], self.buffer[9 + size:]
                self.take(kind, flags, stream, payload)
        return True

    def take(self, kind, flags, stream, payload):
        if kind == SETTINGS and not flags & ACK:
            self.send(frame(SETTINGS, ACK, 0))
        elif kind == GOAWAY:
            self.goaway = struct.unpack(">I", payload[4:8])[0]
        elif kind == RST_STREAM:
            self.answer(stream).reset = struct.unpack(">I", payload)[0]
        elif kind == HEADERS:
            answer = self.answer(stream)
            fields = [(str(n), str(v)) for n, v in self.decoder.decode(payload)]
            if answer.fields is None or answer.fields[0][1].startswith("1"):
                answer.fields = fields
            else:
                answer.trailers = fields
        elif kind == DATA:
            self.answer(stream).body += payload
            if self.window and payload:
                update = struct.pack(">I", len(payload))
                self.send(frame(WINDOW_UPDATE, 0, 0, update) + frame(WINDOW_UPDATE, 0, stream, update))
        if kind in (DATA, HEADERS) and flags & END_STREAM:
            self.answer(stream).ended = True

    def over(self, stream):
        return self.answer(stream).ended or self.answer(stream).reset is not None or self.goaway is not None

    def fetch(self, stream, fields, body=None, timeout=120):
        """One request and its answer, however it ends."""
        whole = body is None
        head = frame(HEADERS, END_HEADERS | (END_STREAM if whole else 0), stream, block(fields))
        self.send(head if whole else head + frame(DATA, END_STREAM, stream, body))
        self.pump(lambda: self.over(stream), timeout)
        return self.answer(stream)
