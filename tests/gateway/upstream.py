# SPDX-License-Identifier: Apache-2.0
"""Servers the gateway is made to talk to: HTTP and HTTPS that show what reached them byte by byte, a raw
echo that greets first, and DNS. Run inside a network namespace of the test."""
import base64
import hashlib
import socket
import ssl
import struct
import sys
import threading
import time

ADDRESS = "10.77.0.2"


def read_head(connection):
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(1)
        if not more:
            return None
        data += more
    return data


def read_body(connection, head):
    lower = head.lower()
    if b"transfer-encoding: chunked" in lower:
        raw = b""
        while not (raw.endswith(b"\r\n\r\n") and b"0\r\n" in raw):
            more = connection.recv(65536)
            if not more:
                return raw
            raw += more
        return raw
    for line in lower.split(b"\r\n"):
        if line.startswith(b"content-length:"):
            left = int(line.split(b":")[1])
            raw = b""
            while len(raw) < left:
                more = connection.recv(65536)
                if not more:
                    break
                raw += more
            return raw
    return b""


def reply(connection, body, extra=b"", status=b"200 OK"):
    connection.sendall(b"HTTP/1.1 " + status + b"\r\nContent-Length: " + str(len(body)).encode() +
                       b"\r\n" + extra + b"\r\n" + body)


def answer(connection, head):
    """Answers one request; False when the connection is over."""
    path = head.split(b" ")[1].split(b"?")[0]
    if path == b"/early":
        reply(connection, b"too much", status=b"413 Payload Too Large", extra=b"Connection: close\r\n")
        time.sleep(0.2)
        return False
    if path == b"/reset":  # In the middle of an answer, or before it.
        if b"late" in head:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")
            time.sleep(1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False
    if path == b"/peer":
        reply(connection, b"%d" % connection.getpeername()[1])
        return True
    if path == b"/hang":
        time.sleep(30)
        return False
    body = read_body(connection, head)
    if path == b"/sse":
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                           b"Transfer-Encoding: chunked\r\n\r\n")
        for number in range(3):
            event = b"data: %d\n\n" % number
            connection.sendall(b"%x\r\n" % len(event) + event + b"\r\n")
            time.sleep(0.4)
        connection.sendall(b"0\r\nX-Trailer: kept\r\nContent-Length: dropped\r\n\r\n")
        return True
    if path == b"/unframed":
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\nuntil the end")
        return False
    if path == b"/cut":
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        return False
    if path == b"/short":
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")
        return False
    if path == b"/both":
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
                           b"5\r\nhello\r\n0\r\n\r\n")
        return False
    if path == b"/switch":
        connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                           b"Upgrade: websocket\r\n\r\n")
        return False
    if path == b"/hints":
        connection.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
        reply(connection, b"hinted")
        return True
    if path == b"/nothing":
        connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
        return True
    if path == b"/unchanged":
        connection.sendall(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\n\r\n")
        return True
    if path == b"/once":  # Answers, and closes without having said so.
        reply(connection, b"once")
        return False
    if path == b"/big":
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 8000000\r\n\r\n")
        connection.sendall(b"x" * 8000000)
        return True
    if path == b"/ws":
        key = [l for l in head.split(b"\r\n") if l.lower().startswith(b"sec-websocket-key:")][0]
        accept = base64.b64encode(hashlib.sha1(
            key.split(b":")[1].strip() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                           b"Upgrade: websocket\r\nSec-WebSocket-Accept: " + accept + b"\r\n\r\n")
        while True:
            data = connection.recv(65536)
            if not data:
                return False
            connection.sendall(b"echo:" + data)
    if head.startswith(b"HEAD "):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n")
        return True
    if path == b"/size":
        reply(connection, str(len(body)).encode())
        return True
    reply(connection, head + body)
    return True


def serve_http(connection, context):
    try:
        if context is not None:
            connection = context.wrap_socket(connection, server_side=True)
        while True:
            head = read_head(connection)
            if head is None or not answer(connection, head):
                break
    except (OSError, ssl.SSLError):
        pass
    finally:
        try:
            connection.close()
        except OSError:
            pass


def serve_raw(connection, _):
    try:
        connection.sendall(b"HELLO\n")
        while True:
            data = connection.recv(65536)
            if not data:
                break
            connection.sendall(data)
    except OSError:
        pass
    connection.close()


HEARD = []


def serve_half(connection, _):
    """Says how much the last client said, finishes, and goes on listening."""
    try:
        connection.sendall(b"%d\n" % (HEARD[-1] if HEARD else 0))
        connection.shutdown(socket.SHUT_WR)
        size = 0
        while True:
            data = connection.recv(65536)
            if not data:
                break
            size += len(data)
        HEARD.append(size)
    except OSError:
        pass
    connection.close()


def serve_nothing(connection, _):
    """Takes a connection and never says anything."""
    try:
        while connection.recv(65536):
            pass
    except OSError:
        pass
    connection.close()


def listen(address, port, handler, context=None):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen(1024)

    def accept():
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=handler, args=(connection, context), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()


ZONE = {
    "dns.example.test": ["10.77.0.2"],
    "mixed.wild.example.test": ["93.184.216.34", "10.77.0.2"],
    "private.wild.example.test": ["10.77.0.2"],
    "own.wild.example.test": ["93.184.216.77"],
    "here.example.test": ["10.77.0.1"],
    "metadata.wild.example.test": ["169.254.169.254"],
    "rebound.example.test": ["127.0.0.1"],
}


def serve_dns(address):
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((address, 53))

    def run():
        while True:
            query, peer = server.recvfrom(4096)
            labels, at = [], 12
            while query[at]:
                labels.append(query[at + 1:at + 1 + query[at]].decode())
                at += 1 + query[at]
            kind = struct.unpack(">H", query[at + 1:at + 3])[0]
            name = ".".join(labels).lower()
            if name.startswith("silent."):
                continue
            addresses = ZONE.get(name)
            records = addresses if addresses and kind == 1 else []
            flags = 0x8180 if addresses else 0x8182 if name.startswith("broken.") else 0x8183
            out = query[:2] + struct.pack(">HHHHH", flags, 1, len(records), 0, 0) + query[12:at + 5]
            for record in records:
                out += b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 5, 4) + socket.inet_aton(record)
            server.sendto(out, peer)
    threading.Thread(target=run, daemon=True).start()


def tls_context(certificate, key):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


def main():
    folder = sys.argv[1]
    good = tls_context(folder + "/server.pem", folder + "/server.key")
    bad = tls_context(folder + "/stranger.pem", folder + "/stranger.key")
    listen(ADDRESS, 80, serve_http)
    listen(ADDRESS, 443, serve_http, good)
    listen(ADDRESS, 8443, serve_http, bad)
    listen(ADDRESS, 8444, serve_http, tls_context(folder + "/expired.pem", folder + "/server.key"))
    listen(ADDRESS, 8445, serve_http, tls_context(folder + "/common.pem", folder + "/server.key"))
    listen(ADDRESS, 8446, serve_http, tls_context(folder + "/addressed.pem", folder + "/server.key"))
    listen(ADDRESS, 9443, serve_http, good)
    listen(ADDRESS, 9000, serve_raw)
    listen(ADDRESS, 9001, serve_half)
    listen(ADDRESS, 9444, serve_nothing)
    serve_dns(ADDRESS)
    print("ready", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
