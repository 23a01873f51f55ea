"""DER, as much as certificates and timestamps need: bytes in, bytes out, nothing checked."""
import datetime
import functools


def encode(tag, body):
    size = len(body)
    if size < 128:
        return bytes([tag, size]) + body
    length = size.to_bytes((size.bit_length() + 7) // 8, 'big')
    return bytes([tag, 0x80 | len(length)]) + length + body


def sequence(*parts):
    return encode(0x30, b''.join(parts))


def set_of(*parts):
    return encode(0x31, b''.join(sorted(parts)))


def integer(value):
    return encode(0x02, value.to_bytes(value.bit_length() // 8 + 1, 'big', signed=True))


def boolean(value):
    return encode(0x01, b'\xff' if value else b'\0')


def octets(body):
    return encode(0x04, body)


def bits(body, unused=0):
    return encode(0x03, bytes([unused]) + body)


def null():
    return b'\x05\0'


def utf8(text):
    return encode(0x0c, text.encode())


@functools.lru_cache(maxsize=None)
def oid(text):
    arcs = [int(arc) for arc in text.split('.')]
    body = b''
    for arc in [arcs[0] * 40 + arcs[1], *arcs[2:]]:
        group = [arc & 0x7f]
        while arc := arc >> 7:
            group.append(0x80 | arc & 0x7f)
        body += bytes(reversed(group))
    return encode(0x06, body)


def explicit(number, body):
    return encode(0xa0 | number, body)


def implicit(number, body):
    """A primitive one, such as each kind of a subject's alternative name."""
    return encode(0x80 | number, body)


def moment(time):
    """UTCTime or GeneralizedTime, as RFC 5280 4.1.2.5 chooses."""
    if time.year < 2050:
        return encode(0x17, time.strftime('%y%m%d%H%M%SZ').encode())
    return generalized(time)


def generalized(time):
    text = time.strftime('%Y%m%d%H%M%S')
    if time.microsecond:
        text += f'.{time.microsecond:06}'.rstrip('0')
    return encode(0x18, text.encode() + b'Z')


# Fixtures do not know what time it is: every signature was made at noon of this day.
NOON = datetime.datetime(2026, 3, 14, 12, tzinfo=datetime.timezone.utc)
SECOND, MINUTE, DAY = (datetime.timedelta(**{unit: 1}) for unit in ('seconds', 'minutes', 'days'))


def unix(time):
    return int(time.timestamp())
