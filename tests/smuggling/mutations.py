# SPDX-License-Identifier: Apache-2.0
"""Requests that two readers could read differently. Each is for /ok/NUMBER and, read wrongly, also for
/denied/NUMBER."""

ODD_BYTES = [b'\r', b'\n', b'\0', b'\t', b' ', b'\x0b', b'\x0c', b'\x1f', b'\x7f', b'\x85', b'\xa0', b'\xff', b';', b',']


def framings(evil):
    """Lines about the body, and bodies, that hide `evil` behind what some reader takes for the end."""
    length = b'%d' % len(evil)
    hidden = b'0\r\n\r\n' + evil
    lengths = [b'+5', b'-1', b'0x5', b'5 5', b'5,5', b'5, 6', b'5;5', b' 5\x0b', b'5\x00', b'5.0', b'5e0', b'1_0', b'05 ', b'', b'five',
               b'18446744073709551616', b'18446744073709551621', b'9223372036854775808', b'\xd9\xa5']
    for value in lengths:
        yield b'Content-Length: %s\r\n' % value, b'12345' + evil
    codings = [b'chunked, identity', b'identity, chunked', b'gzip, chunked', b'chunked, gzip', b'chunked, chunked', b'chunkedx', b'xchunked',
               b'chunked,', b',chunked', b'"chunked"', b'chunked;q=1', b'\x0bchunked', b'chunked\x0b', b'chunked\0', b'CHUNKED\x00', b'chunke',
               b'x', b'', b'\tchunked\x0c', b'chu\tnked', b'deflate', b'identity']
    for value in codings:
        yield b'Transfer-Encoding: %s\r\n' % value, hidden
        yield b'Transfer-Encoding: %s\r\nContent-Length: %s\r\n' % (value, length), hidden
    pairs = [(b'Content-Length: %d' % len(hidden), b'Transfer-Encoding: chunked'), (b'Content-Length: 0', b'Content-Length: ' + length),
             (b'Content-Length: 5', b'content-length: 6'), (b'Transfer-Encoding: chunked', b'Transfer-Encoding: identity'),
             (b'Transfer-Encoding: chunked', b'Transfer-encoding: chunked'), (b'Transfer-Encoding: x', b'Transfer-Encoding: chunked'),
             (b'Content-Length: 0', b'Transfer_Encoding: chunked'), (b'Content-Length: 0', b'Content_Length: ' + length)]
    for one, other in pairs:
        yield one + b'\r\n' + other + b'\r\n', hidden
        yield other + b'\r\n' + one + b'\r\n', hidden
    names = [b'Transfer-Encoding', b'Content-Length']
    for name in names:
        value = b'chunked' if name == names[0] else length
        for odd in ODD_BYTES:
            yield name + odd + b': ' + value + b'\r\n', hidden
            yield odd + name + b': ' + value + b'\r\n', hidden
            yield name + b':' + odd + value + b'\r\n', hidden
            yield name + b': ' + value + odd + b'\r\n', hidden
            yield name[:4] + odd + name[4:] + b': ' + value + b'\r\n', hidden
        yield name + b':\r\n ' + value + b'\r\n', hidden
        yield b'X: y\r\n ' + name + b': ' + value + b'\r\n', hidden
        yield b'X: y\r' + name + b': ' + value + b'\r\n', hidden
        yield b'X: y\n' + name + b': ' + value + b'\r\n', hidden
        yield b'X: y\r\r\n' + name + b': ' + value + b'\r\n', hidden
        yield b'Connection: ' + name + b'\r\n' + name + b': ' + value + b'\r\n', hidden


def chunks(evil):
    """Chunked bodies with a size line, or an end, that readers disagree about."""
    for size in (b'+5', b'-5', b'0x5', b'5 ', b' 5', b'5\t', b'5\x0b', b'5,', b'5.0', b'', b'g', b'5\0', b'FFFFFFFFFFFFFFFF5', b'10000000000000005',
                 b'5\n', b'5\r', b'00000000000000000000000005', b'5;a\nb', b'5;a\rb', b'5;a=\0', b'5;' + b'a' * 5000):
        yield size + b'\r\n12345\r\n0\r\n\r\n' + evil
    for end in (b'0\n\n', b'0\r\n\n', b'0\r\r\n', b'00\r\n\r', b'0\r\nX: y\n\r\n', b'0\r\nX y\r\n\r\n', b'0\r\n \r\n\r\n', b'0\r\nContent-Length: 9\r\nX\r\n\r\n',
                b'0;\r\n\r\r\n', b'-0\r\n\r\n'):
        yield b'5\r\n12345\r\n' + end + evil
    for middle in (b'123456\r\n', b'1234\r\n', b'12345\n', b'12345', b'12345\r', b'12345\r\n\r\n', b'12345\n\r'):
        yield b'5\r\n' + middle + b'0\r\n\r\n' + evil


def request_lines(path, authority):
    for query in (b'_method=DELETE', b'a=b&_method=put', b'%5Fmethod=DELETE', b'_HttpMethod=PUT', b'_method=GET&_method=DELETE', b'[_method]=DELETE', b'_method%00x=PUT'):
        yield b'POST ' + path + b'?' + query + b' HTTP/1.1\r\n'
    for odd in ODD_BYTES:
        yield b'GET' + odd + path + b' HTTP/1.1\r\n'
        yield b'GET ' + odd + path + b' HTTP/1.1\r\n'
        yield b'GET ' + path + odd + b' HTTP/1.1\r\n'
        yield b'GET ' + path + odd + b'HTTP/1.1\r\n'
        yield b'GET ' + path + b' HTTP/1.1' + odd + b'\r\n'
        yield odd + b'GET ' + path + b' HTTP/1.1\r\n'
    for version in (b'HTTP/1.2', b'HTTP/2.0', b'HTTP/0.9', b'HTTP/11', b'HTTP/1.01', b'http/1.1', b'HTTP/1', b'HTTP/ 1.1', b'HTTPS/1.1', b''):
        yield b'GET ' + path + b' ' + version + b'\r\n'
    for target in (b'http://other.example' + path, b'http://other.example@' + authority + path, b'http://' + authority + b'@other.example' + path,
                   b'//other.example' + path, b'http:' + path, b'http:/' + path, b'HTTP://other.example' + path, b'https://' + authority + path,
                   b'*', b'', b'other.example:80', path[1:], b'\\' + path, path + b'#/denied', b'/denied/../..' + path, b'/ok/%2e%2e/denied/x',
                   b'/ok/..;/denied/x', b'/ok/..%2fdenied/x', b'/ok/..%5cdenied/x', b'/ok/..\\denied/x', b'/ok/x%5c..%5c..%5cdenied', b'/ok/%2e%2e%5Cdenied',
                   b'/ok/%c0%ae%c0%ae/denied/x', b'/ok/..%c0%afdenied/x', b'/ok/%c1%9c../denied', b'/ok/%e0%80%ae%e0%80%ae/denied', b'/ok/%f0%80%80%ae./denied',
                   b'/ok/%2e%2e;x/denied', b'/ok/..%3b/denied', b'/ok/..%00/denied', b'/ok/%252e%252e/x', b'/ok/./../denied', b'/ok/%00/x', b'/ok/%0d%0aX', b'/ok/%zz', b'/ok/\xc3\xa9'):
        yield b'GET ' + target + b' HTTP/1.1\r\n'


def hosts(authority):
    good = b'Host: ' + authority + b'\r\n'
    for value in (b'other.example', b'', b'a@' + authority, authority + b',other.example', authority + b' other.example', authority + b'/x', b'[' + authority,
                  authority.split(b':')[0] + b':1', authority + b'\0', b'\x0b' + authority):
        yield b'Host: ' + value + b'\r\n'
        yield good + b'Host: ' + value + b'\r\n'
        yield b'Host: ' + value + b'\r\n' + good
    yield b''
    yield good + good
    yield b'Host : ' + authority + b'\r\n'
    yield b' ' + good
    yield b'X: y\r\n' + good.replace(b'Host', b' Host')


def fields():
    """Fields that some servers take for another part of the request."""
    for name in (b'X-HTTP-Method-Override', b'X-HTTP-Method', b'X-Method-Override'):
        yield name + b': DELETE\r\n'
        yield name.lower() + b':GET\r\n' + name + b': PUT\r\n'
    for name in (b'X-Original-URL', b'X-Rewrite-URL'):
        yield name + b': /denied/x\r\n'
    for line in (b'Transfer-Encoding;: chunked', b'Content-Length\xc2\xa0: 5', b'Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AA',
                 b'HTTP2-Settings: AA', b'Upgrade: websocket, h2c\r\nConnection: upgrade', b'Upgrade: TLS/1.2\r\nConnection: upgrade', b'Connection: host',
                 b'Connection: Transfer-Encoding, close', b'Connection: close\x0b', b'Connection: "close"', b'Expect: 100-continue\r\nContent-Length: 5, 6',
                 b'Trailer: Content-Length', b'TE: chunked', b'Proxy-Connection: keep-alive', b'Keep-Alive: timeout=5', b'Host\t: a', b'Hos\xd5\xb4: a'):
        yield line + b'\r\n'


def mutations(authority):
    """(number, bytes) of every case."""
    number = 0

    def paths():
        nonlocal number
        number += 1
        return b'/ok/%d' % number, b'GET /denied/%d HTTP/1.1\r\nHost: %s\r\n\r\n' % (number, authority)

    host = b'Host: ' + authority + b'\r\n'
    for index in range(len(list(framings(b'')))):
        path, evil = paths()
        lines, body = list(framings(evil))[index]
        yield number, b'POST ' + path + b' HTTP/1.1\r\n' + host + lines + b'\r\n' + body
    for index in range(len(list(chunks(b'')))):
        path, evil = paths()
        yield number, (b'POST ' + path + b' HTTP/1.1\r\n' + host + b'Transfer-Encoding: chunked\r\n\r\n' + list(chunks(evil))[index])
    for index in range(len(list(request_lines(b'', b'')))):
        path, evil = paths()
        yield number, list(request_lines(path, authority))[index] + host + b'\r\n' + evil
    for lines in hosts(authority):
        path, evil = paths()
        yield number, b'GET ' + path + b' HTTP/1.1\r\n' + lines + b'\r\n' + evil
    for lines in fields():
        path, evil = paths()
        yield number, b'POST ' + path + b' HTTP/1.1\r\n' + host + lines + b'\r\n' + evil
