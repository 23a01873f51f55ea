# SPDX-License-Identifier: Apache-2.0
"""Sockets: of each kind, and to each place."""
import ctypes
import errno
import fcntl
import os
import socket
import struct
import tempfile
import threading
import time

from table import APART, FACTS, IF_THERE, IF_THERE_ROOT, LIBC, OK, ROOT, buffer, call, checked, control, fail, family_socket, group

UDP = 'EPERM|EACCES|ECONNREFUSED|ENETUNREACH: packet filter + network namespace', 'EACCES|EPERM: broker'
REFUSED = 'ECONNREFUSED: gateway + network namespace', 'ECONNREFUSED: broker + gateway'
NOT_OURS = 'not tried outside: no service listens there'
SECONDS = 60


def heard(client):
    """The service outside says so; a connection that is accepted only to be closed leads nowhere."""
    if client.recv(5) != b'heard':
        fail(errno.ECONNREFUSED)


def connected(address, family=socket.AF_INET, kind=socket.SOCK_STREAM, protocol=0, prepare=lambda client: None):
    with socket.socket(family, kind, protocol) as client:
        client.settimeout(SECONDS)
        prepare(client)
        try:
            client.connect(address)
            heard(client)
        except TimeoutError:
            fail(errno.ETIMEDOUT)
        except ConnectionResetError:
            fail(errno.ECONNREFUSED)


def port(name='tcp'):
    found = FACTS['ports'].get(name)
    return found[1] if found else fail(errno.EAFNOSUPPORT)


def named(name):
    path = FACTS['ports'][name]
    return path.encode('latin-1') if path[0] == '\0' else path


def sent(address, family=socket.AF_INET, data=b'x'):
    with socket.socket(family, socket.SOCK_DGRAM) as client:
        client.sendto(data, address)


QUESTION = b'\x12\x34\1\0\0\1\0\0\0\0\0\0\7example\3com\0\0\1\0\1'


def answered(answer):
    """With an address, or only that there is none: that is the gateway's answer."""
    if len(answer) < 4 or answer[3] & 15:
        fail(errno.ECONNREFUSED)


def asked(server):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(SECONDS)
        client.sendto(QUESTION, server)
        answered(client.recv(512))


def asked_over_tcp():
    with socket.create_connection(('192.0.2.53', 53), SECONDS) as client:
        client.sendall(struct.pack('>H', len(QUESTION)) + QUESTION)
        answered(client.recv(512)[2:])


def fast_open():
    with socket.socket() as client:
        client.sendto(b'x', 0x20000000, ('127.0.0.1', port()))
        heard(client)


def fast_open_message():
    with socket.socket() as client:
        client.sendmsg([b'x'], [], 0x20000000, ('127.0.0.1', port()))
        heard(client)


def delayed(client):
    client.setsockopt(socket.IPPROTO_TCP, 30, 1)  # TCP_FASTOPEN_CONNECT


def said_first():
    with socket.socket() as client:
        client.settimeout(SECONDS)
        delayed(client)
        client.connect(('127.0.0.1', port()))
        client.sendall(b'x')
        try:
            heard(client)
        except ConnectionResetError:
            fail(errno.ECONNREFUSED)


def packed(address):
    return struct.pack('H', socket.AF_INET) + struct.pack('>H4s8x', address[1], socket.inet_aton(address[0]))


def changing_address():
    """Between the host's service and an address of nobody: what is connected is the one that was looked at."""
    service, nowhere = packed(('127.0.0.1', port())), packed(('203.0.113.7', 9))
    if control():
        nowhere = service
    target, stop = buffer(16, nowhere), []

    def turn():
        while not stop:
            ctypes.memmove(target, service, 16)
            ctypes.memmove(target, nowhere, 16)
    thread = threading.Thread(target=turn)
    thread.start()
    try:
        for _ in range(50):
            with socket.socket() as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack('ll', SECONDS, 0))
                if LIBC.connect(client.fileno(), target, 16) == 0 and received(client) == b'heard':
                    return
    finally:
        stop.append(1)
        thread.join()
    fail(errno.ECONNREFUSED)


def received(client):
    try:
        return client.recv(5)
    except OSError:
        return b''


def twice():
    """Connected where it may be, then taken apart and connected again."""
    with socket.socket() as server, socket.socket() as client:
        server.bind(('127.0.0.1', 0))
        server.listen()
        client.settimeout(SECONDS)
        client.connect(server.getsockname())
        checked(LIBC.connect(client.fileno(), buffer(16), 16))  # AF_UNSPEC
        try:
            client.connect(('127.0.0.1', port()))
            heard(client)
        except ConnectionResetError:
            fail(errno.ECONNREFUSED)


def passed_on():
    """A socket that another process made, and connects after it was handed over."""
    ours, theirs = socket.socketpair()
    client = socket.socket()
    client.settimeout(SECONDS)
    socket.send_fds(ours, [b'x'], [client.fileno()])
    child = os.fork()
    if child == 0:
        _, descriptors, _, _ = socket.recv_fds(theirs, 1, 1)
        rest = socket.socket(fileno=descriptors[0])
        rest.settimeout(SECONDS)
        os._exit(rest.connect_ex(('127.0.0.1', port())))
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        fail(status)
    try:
        heard(client)
    except ConnectionResetError:
        fail(errno.ECONNREFUSED)


def bound_first(client):
    client.bind(('', 0))


def option(level, name, value=b'\1\0\0\0'):
    return lambda: socket.socket().setsockopt(level, name, value)


def routed(client):
    client.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, b'\x83\x07\x04\x7f\0\0\1\0')  # Through 127.0.0.1.


def netlink_route():
    """Takes the loopback interface up: RTM_NEWLINK."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as link:
        link.send(struct.pack('IHHII', 32, 16, 5, 1, 0) + struct.pack('BxHiII', 0, 0, 1, 1, 1))
        answer = link.recv(100)
        error = -struct.unpack_from('i', answer, 16)[0]
        if error:
            fail(error)


def interface_changed():
    with socket.socket(socket.AF_INET) as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack('16sH14x', b'lo', 0x49))  # SIOCSIFFLAGS


def interfaces():
    if [name for _, name in socket.if_nameindex() if name != 'lo'] == []:
        fail(errno.ENOENT)


def kinds():
    add = group('Kinds of sockets')
    own_net = 'EPERM: seccomp + no capabilities', 'EPERM|EACCES: broker + no capabilities'
    for name, family, kind, protocol in (
            ('raw packets', 2, 3, 1), ('raw packets of any protocol', 2, 3, 255), ('raw IPv6 packets', 10, 3, 58)):
        add(f'Send {name}', '`socket(SOCK_RAW)`', lambda a=(family, kind, protocol): family_socket(*a), *own_net, ROOT)
    frames = own_net[0], 'EAFNOSUPPORT: broker + no capabilities'
    add('Send frames', '`socket(AF_PACKET)`', lambda: family_socket(17, 3, 0), *frames, ROOT)
    add('Send frames without headers', '`socket(AF_PACKET)`', lambda: family_socket(17, 2, 0), *frames, ROOT)
    add('Talk to the hypervisor', '`socket(AF_VSOCK)`', lambda: family_socket(40, 1), 'EPERM: seccomp', 'EAFNOSUPPORT: broker',
        IF_THERE)
    add('Use the kernel\'s ciphers', '`socket(AF_ALG)`', lambda: family_socket(38, 5), 'EPERM: seccomp', 'EAFNOSUPPORT: broker',
        IF_THERE)
    for name, family in (('Bluetooth', 31), ('TIPC', 30), ('RDS', 21), ('CAN', 29), ('X.25', 9), ('AX.25', 3), ('NET/ROM', 6),
                         ('Rose', 11), ('AppleTalk', 5), ('IPX', 4), ('IUCV', 32), ('RxRPC', 33), ('Qualcomm routers', 42)):
        add(f'Open a socket for {name}', f'`socket({family})`', lambda family=family: family_socket(family, 2), 'EPERM: seccomp',
            'EAFNOSUPPORT: broker', IF_THERE)
    for name, family in (('XDP', 44), ('IPsec keys', 15)):
        add(f'Open a socket for {name}', f'`socket({family})`', lambda family=family: family_socket(family, 3, 2), 'EPERM: seccomp',
            'EAFNOSUPPORT: broker', IF_THERE_ROOT)
    for name, family in (('ATM', 8), ('LLC', 26), ('IEEE 802.15.4', 36), ('phones', 35), ('CAIF', 37), ('NFC', 39), ('MCTP', 45)):
        add(f'Open a socket for {name}', f'`socket({family})`', lambda family=family: family_socket(family, 2),
            'EPERM|EAFNOSUPPORT: seccomp', 'EPERM|EACCES|EAFNOSUPPORT: broker', IF_THERE)
    add('Open a pair of an unusual family', '`socketpair(AF_TIPC)`', lambda: socket.socketpair(30, 1), 'EPERM: seccomp', None,
        IF_THERE)
    for name, protocol in (('audit', 9), ('netfilter', 12), ('devices', 15), ('socket diagnosis', 4), ('generic', 16),
                           ('IPsec', 6), ('connector', 11)):
        add(f'Talk to the kernel: {name}', f'`socket(AF_NETLINK, {protocol})`', lambda protocol=protocol: family_socket(
            16, 3, protocol), 'EAFNOSUPPORT: seccomp', 'EAFNOSUPPORT: broker', IF_THERE)
    add('Change an interface', '`RTM_NEWLINK`', netlink_route, 'EPERM: no capabilities', None, APART)
    add('Change an interface, the old way', '`ioctl(SIOCSIFFLAGS)`', interface_changed, 'EPERM: no capabilities',
        None, APART)
    add('Find an interface that leads out', '`if_nameindex`', interfaces, 'ENOENT: network namespace', 'ok: ',
        IF_THERE)
    add('SCTP', '`socket(IPPROTO_SCTP)`', lambda: family_socket(2, 1, 132), 'EPERM|EPROTONOSUPPORT: network namespace',
        'EPERM|EACCES|EPROTONOSUPPORT: broker', IF_THERE)
    add('UDP-Lite', '`socket(IPPROTO_UDPLITE)`', lambda: sent_lite(), 'EPERM|EACCES|EPROTONOSUPPORT: packet filter',
        'EPERM|EACCES|EPROTONOSUPPORT: broker', IF_THERE)
    add('Choose the interface', '`setsockopt(SO_BINDTODEVICE)`', option(socket.SOL_SOCKET, 25, b'eth0\0'),
        'ENODEV|EPERM: network namespace', 'EPERM: broker', IF_THERE)
    add('Mark packets', '`setsockopt(SO_MARK)`', option(socket.SOL_SOCKET, 36), 'EPERM: no capabilities', None, ROOT)
    add('Take another\'s address', '`setsockopt(IP_TRANSPARENT)`', option(socket.IPPROTO_IP, 19), 'EPERM: no capabilities', None,
        ROOT)
    add('Repair a connection', '`setsockopt(TCP_REPAIR)`', option(socket.IPPROTO_TCP, 19), 'EPERM: no capabilities', None, ROOT)
    add('Another protocol in TCP\'s place', '`setsockopt(TCP_ULP)`', option(socket.IPPROTO_TCP, 31, b'smc\0'),
        'ENOENT|EPERM|ENOTCONN|EOPNOTSUPP|EINVAL: kernel', 'ENOPROTOOPT: seccomp', IF_THERE)


def sent_lite():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 136) as client:
        client.sendto(b'x', ('192.0.2.1', 443))


def places():
    add = group('Ways out')
    local = lambda address='127.0.0.1', family=socket.AF_INET, **more: lambda: connected(
        (address, port('tcp6' if family == socket.AF_INET6 and ':ffff:' not in address else 'tcp')), family, **more)
    add('A service on the host\'s loopback', '`connect(127.0.0.1)`', local(), *REFUSED)
    add('... over IPv6', '`connect(::1)`', local('::1', socket.AF_INET6), *REFUSED, IF_THERE)
    add('... as an IPv4 address in IPv6', '`connect(::ffff:127.0.0.1)`', local('::ffff:127.0.0.1', socket.AF_INET6), *REFUSED,
        IF_THERE)
    add('... as no address', '`connect(0.0.0.0)`', local('0.0.0.0'), *REFUSED)
    add('... as another address of loopback', '`connect(127.0.0.1)` from `127.9.9.9`', lambda: connected(
        ('127.0.0.1', port()), prepare=lambda client: client.bind(('127.9.9.9', 0))), *REFUSED)
    add('... from a port chosen before', '`bind`, `connect`', local(prepare=bound_first), *REFUSED)
    add('... with data in the first packet', '`sendto(MSG_FASTOPEN)`', fast_open, 'EOPNOTSUPP: seccomp + network namespace',
        'EOPNOTSUPP: seccomp')
    add('... with data in the first message', '`sendmsg(MSG_FASTOPEN)`', fast_open_message, 'EOPNOTSUPP: seccomp + network namespace',
        'EOPNOTSUPP: seccomp')
    add('... connected when the first data is sent', '`setsockopt(TCP_FASTOPEN_CONNECT)`', said_first, *REFUSED)
    add('... after it gave up its interface', '`setsockopt(SO_BINDTODEVICE)`', local(
        prepare=lambda client: client.setsockopt(socket.SOL_SOCKET, 25, b'\0')), REFUSED[0], 'EPERM: broker')
    add('... by several paths', '`socket(IPPROTO_MPTCP)`', local(protocol=262), REFUSED[0], 'EPROTONOSUPPORT: broker', IF_THERE)
    add('... while the address changes', '`connect`', changing_address, *REFUSED)
    add('... on a socket that was connected elsewhere', '`connect(AF_UNSPEC)`', twice, REFUSED[0], 'EAFNOSUPPORT: broker')
    add('... on a socket that another process connects', '`SCM_RIGHTS`', passed_on, *REFUSED)
    add('... by a route of its own', '`setsockopt(IP_OPTIONS)`', local(prepare=routed), 'EPERM|ECONNREFUSED|ENETUNREACH: '
        'network namespace', 'ENOPROTOOPT: seccomp + broker', 'kernels refuse such routes')
    for name, address in (('The cloud\'s metadata', '169.254.169.254'), ('... of another cloud', '100.100.100.200'),
                          ('A private address', '10.0.0.1'), ('... of another range', '172.16.0.1'),
                          ('... of the third range', '192.168.0.1'), ('An address of the provider\'s', '100.64.0.1'),
                          ('A public address that no endpoint names', '203.0.113.7'), ('The host\'s bridge', '172.17.0.1')):
        add(name, f'`connect({address})`', lambda address=address: connected((address, 80)), *REFUSED, NOT_OURS)
    for name, address in (('A public IPv6 address', '2001:db8::1'), ('The cloud\'s metadata over IPv6', 'fd00:ec2::254'),
                          ('An IPv6 address of the link', 'fe80::1')):
        add(name, f'`connect({address})`', lambda address=address: connected((address, 80), socket.AF_INET6),
            'ECONNREFUSED|EINVAL: gateway + network namespace', 'ECONNREFUSED|EINVAL: broker + gateway', NOT_OURS)
    add('A name server of its own choice, over TCP', '`connect(192.0.2.53:53)`', asked_over_tcp, 'ECONNREFUSED: gateway + network namespace',
        'ECONNREFUSED: gateway + broker', NOT_OURS)
    add('A name that the policy does not have', '`sendto(192.0.2.53:53)`', lambda: asked(('192.0.2.53', 53)),
        'ECONNREFUSED: gateway', UDP[1], NOT_OURS)
    add('A service of UDP on the host\'s loopback', '`sendto(127.0.0.1)`', lambda: spoken_to(port('udp')),
        'ECONNREFUSED: network namespace', UDP[1])
    add('UDP to the metadata', '`sendto(169.254.169.254)`', lambda: sent(('169.254.169.254', 80)), *UDP, NOT_OURS)
    add('QUIC', '`sendto(192.0.2.1:443)`', lambda: sent(('192.0.2.1', 443)), *UDP, NOT_OURS)
    add('UDP over IPv6', '`sendto(2001:db8::1)`', lambda: sent(('2001:db8::1', 443), socket.AF_INET6), *UDP, NOT_OURS)
    add('All on the network', '`sendto(255.255.255.255)`', lambda: sent_to_all(), *UDP, NOT_OURS)
    add('A group on the network', '`sendto(224.0.0.251)`', lambda: sent(('224.0.0.251', 5353)), *UDP, NOT_OURS)
    add('Ping', '`socket(IPPROTO_ICMP)`', pinged, 'EPERM|EACCES: packet filter + network namespace', 'EPERM|EACCES: broker',
        NOT_OURS)


def spoken_to(number):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(SECONDS)
        client.connect(('127.0.0.1', number))
        client.send(b'x')
        heard(client)


def sent_to_all():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        client.sendto(b'x', ('255.255.255.255', 9))


def pinged():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1) as client:
        client.settimeout(SECONDS)
        client.sendto(b'\x08' + b'\0' * 15, ('192.0.2.1', 0))
        client.recv(100)


def unix():
    add = group('Unix sockets')
    add('A Unix socket that is not exposed', '`connect`', lambda: connected(named('unix'), socket.AF_UNIX),
        'ENOENT: own root', 'EACCES: broker')
    add('... through `/proc/self/root`', '`connect`', lambda: connected('/proc/self/root' + named('unix'), socket.AF_UNIX),
        'ENOENT: own root', 'ELOOP: broker')
    add('A Unix socket in an exposed directory', '`connect`', lambda: connected(named('unix shown'), socket.AF_UNIX),
        'ECONNREFUSED: overlay', 'EACCES: broker')
    add('A Unix socket without a file', '`connect`', lambda: connected(named('abstract'), socket.AF_UNIX),
        'ECONNREFUSED: network namespace + Landlock', 'ECONNREFUSED: broker + Landlock')
    add('A datagram to a Unix socket that is not exposed', '`sendto`', lambda: sent(named('datagram'), socket.AF_UNIX),
        'ENOENT: own root', 'EACCES|EPERM: broker')
    add('A datagram to one in an exposed directory', '`sendto`', lambda: sent(named('datagram shown'), socket.AF_UNIX),
        'ECONNREFUSED: overlay', 'EACCES|EPERM: broker')
    add('A datagram to one without a file', '`sendto`', lambda: sent(named('datagram abstract'), socket.AF_UNIX),
        'ECONNREFUSED: network namespace + Landlock', 'EACCES|EPERM: broker')
    add('A datagram on a pair of its own', '`socketpair`, `sendto`', lambda: paired(), 'EISCONN|ECONNREFUSED|EPERM: network namespace',
        'EPERM: seccomp + Landlock', 'the kernel sends nothing from a connected pair')
    add('Docker\'s socket', '`connect(/run/docker.sock)`', lambda: connected('/run/docker.sock', socket.AF_UNIX),
        'ENOENT: own root', 'ENOENT|EACCES: broker', IF_THERE)


def paired():
    one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.sendto(b'x', named('datagram abstract'))


kinds()
places()
unix()
