# SPDX-License-Identifier: Apache-2.0
"""What programs need and get in tier landlock, and what is peculiar to its network: each with the answers that hold.

allowed.py FACTS: prints a JSON list a line.
"""
import ctypes
import errno
import json
import os
import select
import signal
import socket
import sys
import tempfile

LIBC = ctypes.CDLL(None, use_errno=True)
FACTS = json.loads(sys.argv[1])
RESULT = {}
PROXY = ('10.200.0.1', 3128)


def attempt(action):
    try:
        action()
        return 'ok'
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))


def probe(group, name, wanted, action):
    """In a process of its own: what it does to itself ends with it."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(write, attempt(action).encode())
        os._exit(0)
    os.close(write)
    answer = os.read(read, 100).decode()
    os.close(read)
    _, status = os.waitpid(pid, 0)
    if not answer:
        answer = f'signal {status & 127}'
    RESULT.setdefault(group, {})[name] = [answer, [wanted] if isinstance(wanted, str) else wanted]


def write(path, text='x'):
    with open(path, 'w') as file:
        file.write(text)


def read(path):
    with open(path, 'rb') as file:
        return file.read()


def own(name='file'):
    path = os.path.join(tempfile.mkdtemp(), name)
    write(path)
    return path


def files():
    both = lambda name, wanted, action: probe('files', name, wanted, action)
    both('own copy is written', 'ok', lambda: write('written'))
    both('own home is written', 'ok', lambda: write(os.environ['HOME'] + '/written'))
    both('own temporary directory', 'ok', lambda: write(own()))
    both('what the policy shows is read', 'ok', lambda: read(FACTS['shown'] + '/file'))
    both('the checkout itself is read', 'EACCES', lambda: read(FACTS['checkout'] + '/a.txt'))
    both('memory shared by name', 'EACCES', lambda: write(f'/dev/shm/{os.getpid()}'))


def change_time(fd_or_path, **more):
    os.utime(fd_or_path, (1, 1), **more)


def through_proc(path, action):
    fd = os.open(path, os.O_RDONLY)
    action(f'/proc/self/fd/{fd}')


def metadata():
    both = lambda name, wanted, action: probe('metadata', name, wanted, action)
    mine = own()
    both('mode of its own', 'ok', lambda: os.chmod(mine, 0o755))
    both('mode of its own, relative', 'ok', lambda: (os.chdir(os.path.dirname(mine)), os.chmod('file', 0o751)))
    both('mode of its own, at a directory', 'ok', lambda: os.chmod(
        'file', 0o752, dir_fd=os.open(os.path.dirname(mine), os.O_RDONLY)))
    both('mode by descriptor', 'ok', lambda: os.fchmod(os.open(mine, os.O_RDONLY), 0o700))
    both('mode through /proc', 'ok', lambda: through_proc(mine, lambda path: os.chmod(path, 0o711)))
    both('times of its own', 'ok', lambda: change_time(mine))
    both('times by descriptor', 'ok', lambda: change_time(os.open(mine, os.O_RDONLY)))
    both('owner of its own', 'ok', lambda: os.chown(mine, os.getuid(), os.getgid()))


def processes():
    both = lambda name, wanted, action: probe('processes', name, wanted, action)
    both('signal to itself', 'ok', lambda: os.kill(os.getpid(), 0))
    both('processors of its own', 'ok', lambda: os.sched_setaffinity(0, os.sched_getaffinity(0)))
    both('priority of its own', 'ok', lambda: os.setpriority(os.PRIO_PROCESS, 0, 19))

    def own_child():
        child = os.fork()
        if child == 0:
            signal.pause()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    both('signal to its child', 'ok', own_child)


def connect(address, family=socket.AF_INET, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as client:
        client.settimeout(60)
        client.connect(address)


def own_server(family=socket.AF_INET, address=('127.0.0.1', 0), to=None):
    with socket.socket(family) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(address)
        server.listen()
        with socket.socket(family) as client:
            client.connect((to, server.getsockname()[1]) if to else server.getsockname())
            peer, _ = server.accept()
            peer.sendall(b'hello')
            assert client.recv(5) == b'hello'


def free_port():
    """As test suites look for one: bound, closed, bound again."""
    with socket.socket() as first:
        first.bind(('127.0.0.1', 0))
        port = first.getsockname()[1]
    own_server(address=('127.0.0.1', port))


def restarted_server():
    port = None
    for _ in range(3):
        with socket.create_server(('127.0.0.1', port or 0)) as server:
            port = server.getsockname()[1]
            connect(('127.0.0.1', port))


def polled_before():
    """A socket that is watched before it is connected, without waiting; then its error and its peer."""
    with socket.socket() as client, select.epoll() as poll:
        client.setblocking(False)
        poll.register(client, select.EPOLLOUT | select.EPOLLIN | select.EPOLLET)
        if client.connect_ex(PROXY) not in (0, errno.EINPROGRESS):
            raise OSError(errno.ECONNREFUSED, '')
        seen = 0
        for _ in range(20):
            for _, events in poll.poll(0.2):
                seen |= events
            if seen & select.EPOLLOUT and not seen & select.EPOLLHUP:
                break
        assert seen & select.EPOLLOUT, seen
        error = client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            raise OSError(error, '')
        client.getpeername()


def duplicated():
    with socket.socket() as client:
        other = client.dup()
        client.connect(PROXY)
        other.sendall(b'GET http://nowhere.invalid/ HTTP/1.1\r\nHost: nowhere.invalid\r\n\r\n')
        assert b'HTTP/1.1' in other.recv(100)


def passed_on():
    """A socket that another process connects."""
    ours, theirs = socket.socketpair()
    client = socket.socket()
    socket.send_fds(ours, [b'x'], [client.fileno()])
    child = os.fork()
    if child == 0:
        _, descriptors, _, _ = socket.recv_fds(theirs, 1, 1)
        os._exit(0 if attempt(lambda: socket.socket(fileno=descriptors[0]).connect(PROXY)) == 'ok' else 1)
    _, status = os.waitpid(child, 0)
    assert status == 0
    client.getpeername()


def many():
    held = [socket.socket() for _ in range(400)]
    for client in (held[0], held[-1]):
        client.connect(PROXY)
        client.getpeername()


def mapped():
    connect(('::ffff:' + PROXY[0], PROXY[1]), socket.AF_INET6)


def bound_first():
    with socket.socket() as client:
        client.bind(('', 0))
        client.settimeout(60)
        client.connect(PROXY)
        client.getpeername()


def twice():
    """As programs learn that a connection has been made."""
    with socket.socket() as client:
        client.connect(PROXY)
        client.connect(PROXY)


def listening_ports():
    found = []
    for line in read('/proc/net/tcp').decode().splitlines()[1:]:
        fields = line.split()
        if fields[3] == '0A':
            found.append(int(fields[1].split(':')[1], 16))
    return found


def gateway_door():
    for port in listening_ports():
        connect(('127.0.0.1', port))


def sockets():
    both = lambda name, wanted, action: probe('sockets', name, wanted, action)
    both('proxy', 'ok', lambda: connect(PROXY))
    both('server of its own', 'ok', own_server)
    both('server of its own, at every address', 'ok', lambda: own_server(address=('0.0.0.0', 0), to='127.0.0.1'))
    both('server of its own, over v6', ['ok', 'EADDRNOTAVAIL', 'EAFNOSUPPORT'],
         lambda: own_server(socket.AF_INET6, ('::1', 0)))
    both('port that was free', 'ok', free_port)
    both('server that is started again', 'ok', restarted_server)
    both('watched before it connects', 'ok', polled_before)
    both('duplicate', 'ok', duplicated)
    both('passed to another process', 'ok', passed_on)
    both('proxy, over v6', ['ok', 'EAFNOSUPPORT'], mapped)
    both('bound first', 'ok', bound_first)
    both('connected twice', 'EISCONN', twice)
    both('one of four hundred', 'ok', many)
    both('gateway door', 'ECONNREFUSED', gateway_door)
    both('unix socket of its own', 'ok', lambda: unix_server())
    both('datagram pair', ['EACCES', 'EPERM'], lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
    both('stream pair', 'ok', socket.socketpair)
    both('address of no endpoint', 'ECONNREFUSED', lambda: connect(('203.0.113.7', 80)))


def unix_server():
    own_server(socket.AF_UNIX, os.path.join(tempfile.mkdtemp(), 's'))


def main():
    for group in (files, metadata, processes, sockets):
        group()
    RESULT['status'] = dict(line.split(':\t', 1) for line in read('/proc/self/status').decode().splitlines()
                            if ':\t' in line)
    for name, found in RESULT.items():
        for key, value in found.items():
            print(json.dumps([name, key, value]))  # A long line would be cut.


main()
