# SPDX-License-Identifier: Apache-2.0
"""Every server of another machine, which writes down each connection and datagram. usage: far.py LOG"""
import socket
import sys
import threading

log = open(sys.argv[1], 'a', buffering=1)


def listen(kind, port):
    own = socket.socket(socket.AF_INET6, kind)
    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    own.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    own.bind(('::', port))
    return own


def streams(own, port):
    own.listen(64)
    while True:
        connection, _ = own.accept()
        log.write(f'tcp {connection.getsockname()[0].removeprefix("::ffff:")} {port}\n')
        threading.Thread(target=answer, args=(connection,)).start()


def answer(connection):
    with connection:
        if connection.recv(9999):
            connection.sendall(b'HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nfar')


def datagrams(own, port):
    while True:
        data, sender = own.recvfrom(9999)
        log.write(f'udp {port}\n')
        own.sendto(data, sender)


for port in (53, 80, 8080):
    threading.Thread(target=streams, args=(listen(socket.SOCK_STREAM, port), port)).start()
for port in (53, 9999):
    threading.Thread(target=datagrams, args=(listen(socket.SOCK_DGRAM, port), port)).start()
print('ready', flush=True)
