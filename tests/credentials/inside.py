# SPDX-License-Identifier: Apache-2.0
"""The agent of the test: sends the requests that requests.json lists through the proxy, each on its own
connection, and prints one line per answer: its name, status, headers and body."""
import base64
import json
import os
import select
import socket
import ssl
import time


def connect(host, port):
    connection = socket.create_connection(("10.200.0.1", 3128), timeout=120)
    connection.sendall(b"CONNECT %s:%d HTTP/1.1\r\nHost: %s:%d\r\n\r\n" % ((host.encode(), port) * 2))
    head = b""
    while b"\r\n\r\n" not in head:
        more = connection.recv(1)
        if not more:
            break
        head += more
    if b" 200 " not in head.split(b"\r\n")[0]:
        return None, head + connection.recv(65536)
    context = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
    return context.wrap_socket(connection, server_hostname=host), b""


def ask(request):
    connection, refused = connect(request["host"], request["port"])
    if connection is None:
        return refused
    head = "%s %s HTTP/1.1\r\nHost: %s:%d\r\nConnection: close\r\n" % (
        request["method"], request["path"], request["host"], request["port"])
    head += "".join("%s: %s\r\n" % (name, value) for name, value in request["headers"])
    pieces = [base64.b64decode(piece) for piece in request["pieces"]]
    if request["chunked"]:
        head += "Transfer-Encoding: chunked\r\n"
        pieces = [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces] + [b"0\r\n\r\n"]
    elif pieces:
        head += "Content-Length: %d\r\n" % (request["length"] or sum(map(len, pieces)))
    answer = b""
    try:
        connection.sendall(head.encode() + b"\r\n")
        for piece in pieces:
            connection.sendall(piece)
            # Each in a packet of its own; an answer to a long body that comes early ends it.
            early = len(pieces) > 1 and select.select([connection], [], [], 0.03)[0]
            if early and len(pieces[-1]) > 1000000:
                break
        while True:
            more = connection.recv(65536)
            if not more:
                break
            answer += more
    except (ConnectionError, ssl.SSLError) as error:
        answer += b"" if answer else str(error).encode()
    return answer


def main():
    with open("requests.json") as file:
        requests = json.load(file)
    print(json.dumps(["environment", dict(os.environ), ""]), flush=True)
    files = ["/etc/openshell-tls/" + name for name in os.listdir("/etc/openshell-tls")]
    print(json.dumps(["files", files, ""]), flush=True)
    for request in requests:
        if request.get("sleep"):
            time.sleep(request["sleep"])
        head, _, body = ask(request).partition(b"\r\n\r\n")
        print(json.dumps([request["name"], head.decode(errors="replace"), body.decode(errors="replace")]),
              flush=True)


if __name__ == "__main__":
    main()
