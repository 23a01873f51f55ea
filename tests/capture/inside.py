# SPDX-License-Identifier: Apache-2.0
"""What the agent tries, without a proxy. Prints a line of JSON for each try: its name, answer and seconds.

inside.py HTTP HTTPS RAW [few|off]   (ports of the machine's servers; few: no other programs; off: a policy without a network)
"""
import ctypes
import errno
import json
import os
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time

HTTP, HTTPS, RAW = (int(word) for word in sys.argv[1:4])
NAME = 'host.openshell.internal'
SKIPPED = 'host.docker.internal'  # tls: skip.
IPPROTO_MPTCP = 262
WEB = b'GET /x HTTP/1.1\r\nHost: %s:%d\r\nConnection: close\r\n\r\n'
results = {}
for variable in [name for name in os.environ if name.lower().endswith('_proxy')]:
    del os.environ[variable]
os.environ['NO_PROXY'] = '*'


def attempt(name, action):
    began = time.monotonic()
    try:
        answer = action()
    except socket.timeout:
        answer = 'timeout'
    except ssl.SSLError:
        answer = 'ssl error'
    except OSError as error:
        answer = errno.errorcode.get(error.errno, str(error))
        if isinstance(error, socket.gaierror):
            answer = 'no such name' if error.errno == socket.EAI_NONAME else f'gaierror {error.errno}'
    results[name] = {'answer': answer, 'seconds': round(time.monotonic() - began, 3)}


def talk(address, say=b'GET / HTTP/1.0\r\n\r\n', family=socket.AF_INET, wrap=None, bind=None):
    """What the other side sends, or how it fails."""
    with socket.socket(family, socket.SOCK_STREAM) as plain:
        plain.settimeout(60)
        if bind:
            plain.bind(bind)
        plain.connect(address)
        stream = wrap(plain) if wrap else plain
        stream.sendall(say)
        heard = b''
        while True:
            piece = stream.recv(1000)
            if not piece:
                return heard.decode(errors='replace')
            heard += piece


def resolve(name):
    return socket.gethostbyname(name)


def tls(name, server_name):
    def wrap(plain):
        context = ssl.create_default_context()
        context.check_hostname = False
        return context.wrap_socket(plain, server_hostname=server_name)
    return talk((resolve(name), HTTPS), WEB % (NAME.encode(), HTTPS), wrap=wrap)


def tls_through_the_proxy(server_name):
    context = ssl.create_default_context()
    context.check_hostname = False
    with socket.create_connection(('10.200.0.1', 3128), 60) as plain:
        plain.sendall(f'CONNECT {NAME}:{HTTPS} HTTP/1.1\r\nHost: x\r\n\r\n'.encode())
        plain.recv(1000)
        with context.wrap_socket(plain, server_hostname=server_name) as stream:
            stream.sendall(WEB % (NAME.encode(), HTTPS))
            return stream.recv(1000).decode()


def mptcp():
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP) as stream:
        stream.settimeout(60)
        stream.connect(('203.0.113.20', 443))
        return stream.recv(10).decode()


def connect(address, family=socket.AF_INET, blocking=True, kind=socket.SOCK_STREAM):
    """What connect(2) itself says: nothing is sent or read."""
    with socket.socket(family, kind) as out:
        out.setblocking(blocking)  # A time-out would report the reset as well.
        return errno.errorcode.get(out.connect_ex(address), 'connected')


def changed_address():
    """How a call ends whose address another thread changes all the time; never with a connection."""
    libc, answers, done = ctypes.CDLL(None, use_errno=True), set(), []
    there, loopback = (struct.pack('=H', socket.AF_INET) + struct.pack('>H', port) + socket.inet_aton(address) + bytes(8)
                       for address, port in (('203.0.113.30', 443), ('127.0.0.1', 1)))
    memory = ctypes.create_string_buffer(there, 16)

    def change():
        while not done:
            memory.raw = loopback
            memory.raw = there
    thread = threading.Thread(target=change)
    thread.start()
    for _ in range(300):
        with socket.socket() as out:
            if libc.connect(out.fileno(), memory, 16) != 0:
                answers.add(errno.errorcode[ctypes.get_errno()])
                continue
            out.settimeout(5)
            try:
                answers.add(out.recv(10).decode())
            except OSError as error:
                answers.add(errno.errorcode[error.errno])
    done.append(True)
    thread.join()
    return sorted(answers)


def flood():
    for number in range(300):
        ask('10.200.0.1', f'flood{number}.example.net')
    return 'asked'


def datagram(address, family=socket.AF_INET, connect=True, say=b'x' * 20):
    with socket.socket(family, socket.SOCK_DGRAM) as out:
        out.settimeout(5)
        if connect:
            out.connect(address)
            out.send(say)
        else:
            out.sendto(say, address)
        return out.recv(1000).hex()


def question(name, kind, number=7):
    labels = b''.join(bytes([len(part)]) + part.encode() for part in name.split('.') if part)
    return struct.pack('>6H', number, 0x0100, 1, 0, 0, 0) + labels + b'\0' + struct.pack('>2H', kind, 1)


def ask(server, name, kind=1, tcp=False):
    """(rcode, number of answers, last address) as a bare resolver sees them."""
    query = question(name, kind)
    if tcp:
        with socket.create_connection((server, 53), 5) as stream:
            stream.sendall(struct.pack('>H', len(query)) + query)
            size = struct.unpack('>H', stream.recv(2))[0]
            reply = stream.recv(size)
    else:
        family = socket.AF_INET6 if ':' in server else socket.AF_INET
        reply = bytes.fromhex(datagram((server, 53), family, False, query))
    count = struct.unpack('>H', reply[6:8])[0]
    address = socket.inet_ntoa(reply[-4:]) if count and kind == 1 else ''
    return [reply[3] & 15, count, address]


def odd_questions():
    """By name: the code and the number of answers to each, or None where nothing is said."""
    good = question(NAME, 1)
    head, labels = good[:12], good[12:-4]
    tail = struct.pack('>2H', 1, 1)

    def counts(questions=1, answers=0, flags=0x0100):
        return struct.pack('>6H', 7, flags, questions, answers, 0, 0)
    odd = {
        'a pointer to itself': head + b'\xc0\x0c' + tail,
        'two pointers at each other': head + b'\xc0\x0e\xc0\x0c' + tail,
        'a label behind a pointer': head + b'\x01a\xc0\x0c' + tail,
        'a pointer beyond the end': head + b'\xff\xff' + tail,
        'a label of 64': head + b'\x40' + b'a' * 64 + b'\0' + tail,
        'a name of 300': head + (b'\x3b' + b'a' * 59) * 5 + b'\0' + tail,
        'a name without an end': head + b'\x3f' + b'a' * 20,
        'no question': counts(0), 'a question that is missing': counts(2) + labels + tail,
        'two questions': counts(2) + (labels + tail) * 2,
        'an answer beside the question': counts(answers=1) + labels + tail,
        'an update': counts(flags=0x2800) + labels + tail, 'an answer': counts(flags=0x8100) + labels + tail,
        'more behind it': good + b'secret' * 100, 'a header alone': head, 'half a header': head[:6],
        'a dot in a label': head + b'\x03a.b' + labels[labels[0] + 1:] + tail,
        'a zero in a label': head + b'\x04a\0bc' + labels + tail, 'nine kilobytes': good + b'x' * 9000,
        'another class': good[:-2] + b'\0\3',
        **{f'type {kind}': question(NAME, kind) for kind in (2, 5, 6, 10, 12, 15, 16, 33, 35, 64, 65, 249, 252, 255, 65399)},
    }
    sockets = {}
    for name, packet in odd.items():
        sockets[name] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sockets[name].sendto(packet, ('10.200.0.1', 53))
    assert ask('10.200.0.1', NAME)[1] == 1
    answers = {}
    for name, out in sockets.items():
        out.setblocking(False)
        try:
            reply = out.recv(9000)
            answers[name] = [reply[3] & 15, struct.unpack('>H', reply[6:8])[0], len(reply)]
        except BlockingIOError:
            answers[name] = None
        out.close()
    return answers


def pipelined_questions():
    """Over TCP: how many answers come to two questions at once, and to what is no message."""
    def answers(data):
        with socket.create_connection(('10.200.0.1', 53), 5) as stream:
            stream.sendall(data)
            stream.shutdown(socket.SHUT_WR)
            heard, count = b'', 0
            while piece := stream.recv(1000):
                heard += piece
            while heard:
                heard, count = heard[2 + struct.unpack('>H', heard[:2])[0]:], count + 1
            return count
    framed = struct.pack('>H', len(question(NAME, 1))) + question(NAME, 1)
    return [answers(data) for data in (framed * 2, framed[:-1], b'\0\0' + framed, b'\xff\xff' + framed)]


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, errors='replace', timeout=600)
    return [done.returncode, (done.stdout + done.stderr)[-600:]]


def controls():
    attempt('plain socket', lambda: talk((NAME, HTTP), WEB % (NAME.encode(), HTTP)))
    attempt('tls', lambda: tls(NAME, NAME))
    attempt('tls without a name', lambda: tls(NAME, None))
    attempt('tls that is not inspected', lambda: tls(SKIPPED, SKIPPED))
    attempt('tls through the proxy', lambda: tls_through_the_proxy(NAME))
    attempt('raw protocol', lambda: talk((NAME, RAW), b'hello', wrap=None))
    attempt('own loopback', own_loopback)
    attempt('resolve', lambda: resolve(NAME))
    attempt('resolve wildcard', lambda: resolve('deep.wild.example.com'))
    attempt('another resolver', lambda: ask('8.8.8.8', NAME))
    attempt('another resolver over tcp', lambda: ask('8.8.8.8', NAME, tcp=True))
    attempt('another resolver over v6', lambda: ask('2001:db8::53', NAME))
    attempt('aaaa', lambda: ask('10.200.0.1', NAME, 28))
    attempt('txt', lambda: ask('10.200.0.1', NAME, 16))
    attempt('srv', lambda: ask('10.200.0.1', '_x._tcp.' + NAME, 33))


def own_loopback():
    server = socket.create_server(('127.0.0.1', 0))
    with socket.create_connection(server.getsockname()) as client:
        server.accept()[0].sendall(b'heard')
        return client.recv(10).decode()


def refused():
    attempt('denied method', lambda: talk((NAME, HTTP), b'DELETE /x HTTP/1.1\r\nHost: %s:%d\r\n'
                                          b'Connection: close\r\n\r\n' % (NAME.encode(), HTTP)))
    attempt('wrong port', lambda: talk((resolve(NAME), 5432)))
    attempt('raw address of a declared name', lambda: talk(('192.0.2.10', 443)))
    attempt('address of nobody', lambda: talk(('203.0.113.7', 80)))
    attempt('metadata', lambda: talk(('169.254.169.254', 80)))
    attempt('private address', lambda: talk(('10.0.0.1', 443)))
    attempt('synthetic address of no name', lambda: talk(('198.19.200.200', 443)))
    attempt('the listener itself', lambda: talk(('127.0.0.1', 15001)))
    attempt('v6 address', lambda: talk(('2001:db8::1', 443), family=socket.AF_INET6))
    attempt('v6 synthetic address', lambda: talk(('fd23:6f70:656e::1', 443), family=socket.AF_INET6))
    attempt('v4 inside v6', lambda: talk(('::ffff:203.0.113.8', 443), family=socket.AF_INET6))
    attempt('from an address of its own', lambda: talk(('203.0.113.9', 443), bind=('198.51.100.1', 0)))
    attempt('other name in tls', lambda: tls(NAME, 'example.com'))
    attempt('other name in tls that is not inspected', lambda: tls(SKIPPED, 'example.com'))
    attempt('other name in tls through the proxy', lambda: tls_through_the_proxy('example.com'))
    attempt('name of nobody', lambda: resolve('example.com'))
    attempt('doh', lambda: resolve('dns.google'))
    attempt('tunnel in names', lambda: ask('8.8.8.8', 'c2VjcmV0.tunnel.example.net', 16))
    attempt('udp', lambda: datagram(('203.0.113.10', 443)))
    attempt('udp unconnected', lambda: datagram(('203.0.113.11', 443), connect=False))
    attempt('udp v6', lambda: datagram(('2001:db8::2', 443), socket.AF_INET6))
    attempt('udp multicast', lambda: datagram(('224.0.0.251', 5353)))
    attempt('raw socket', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 47) and 'opened')
    attempt('host loopback', lambda: talk(('127.0.0.1', HTTP)))
    attempt('mptcp', mptcp)
    attempt('connect', lambda: connect(('203.0.113.21', 443)))
    attempt('connect over v6', lambda: connect(('2001:db8::21', 443), socket.AF_INET6))
    attempt('connect to v4 inside v6', lambda: connect(('::ffff:203.0.113.22', 443), socket.AF_INET6))
    attempt('connect without waiting', lambda: connect(('203.0.113.23', 443), blocking=False))
    attempt('connect to an endpoint', lambda: connect(('192.0.2.30', 6443)))
    attempt('connect to a name server', lambda: connect(('203.0.113.24', 53)))
    attempt('connect a datagram socket', lambda: connect(('203.0.113.25', 443), kind=socket.SOCK_DGRAM))
    attempt('changed address', changed_address)
    attempt('odd questions', odd_questions)
    attempt('pipelined questions', pipelined_questions)
    attempt('flood of names', flood)


def programs():
    url = f'http://{NAME}:{HTTP}/x'
    here = os.getcwd()
    table = {
        'curl': ['curl', '-s', '--noproxy', '*', url],
        'curl over tls': ['curl', '-s', '--noproxy', '*', f'https://{NAME}:{HTTPS}/x'],
        'curl to nobody': ['curl', '-s', '--noproxy', '*', 'http://example.com/'],
        'curl to an address': ['curl', '-s', '--noproxy', '*', '-k', 'https://203.0.113.12/'],
        'bash': ['bash', '-c', 'echo > /dev/tcp/203.0.113.26/443'],
        'curl -6': ['curl', '-6', '-s', '--noproxy', '*', url],
        'curl through a direct proxy': ['curl', '-s', '--noproxy', '', '-x', 'http://203.0.113.13:8080', url],
        'wget to nobody': ['wget', '-q', '--tries=1', 'http://example.com/'],
        'dig': ['dig', '+short', NAME],
        'dig another server': ['dig', '+short', '@8.8.8.8', NAME],
        'dig nobody': ['dig', '+nocmd', 'example.com'],
        'getent': ['getent', 'ahosts', NAME],
        'getent nobody': ['getent', 'ahosts', 'example.com'],
        'ssh nobody': ['ssh', '-o', 'BatchMode=yes', 'example.com'],
        'nc': ['nc', '-z', '-w', '3', '127.0.0.1', str(HTTP)],
        'ping': ['ping', '-c', '1', '-W', '2', '203.0.113.14'],
        'node': ['node', '-e', f'fetch("https://{NAME}:{HTTPS}/x").then(r => r.text()).then(console.log)'],
        'node to nobody': ['node', '-e', 'fetch("https://example.com/").then(r => r.text()).then(console.log)'],
        'go': [here + '/client', url],
        'go to nobody': [here + '/client', 'http://example.com/'],
        'java': ['java', '-Xshare:auto', '-XX:TieredStopAtLevel=1', 'Client.java', url, 'http://example.com/'],
    }
    for name, words in table.items():
        if shutil.which(words[0]) and (name != 'java' or shutil.which('javac')):
            attempt(name, lambda words=words: run(*words))


def network_off():
    table = {'getent': ['getent', 'ahosts', 'example.com'], 'curl': ['curl', '-sI', 'https://example.com/'], 'wget': ['wget', '-q', '--tries=1', '-O-', 'http://example.com/'],
             'ssh': ['ssh', '-o', 'BatchMode=yes', 'example.com'], 'curl to an address': ['curl', '-sI', 'http://203.0.113.7/'], 'true': ['true']}
    for name, words in table.items():
        if shutil.which(words[0]):
            attempt(name, lambda words=words: run(*words))
    attempt('own loopback', own_loopback)


if 'off' in sys.argv:
    network_off()
else:
    controls()
    refused()
if not {'few', 'off'} & set(sys.argv):
    programs()
for name, result in results.items():
    print(json.dumps([name, result]))
