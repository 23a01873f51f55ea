"""Certificates, the logs that saw them, and timestamps, each signed whatever it says."""
import base64
import dataclasses
import struct

import der
from der import DAY, MINUTE, NOON
from keys import DIGEST_OID, HASHES, Key, key, sha256
from cryptography.hazmat.primitives import hashes

BASIC_CONSTRAINTS, KEY_USAGE, EXTENDED_USAGE = '2.5.29.19', '2.5.29.15', '2.5.29.37'
ALTERNATIVE_NAME, NAME_CONSTRAINTS = '2.5.29.17', '2.5.29.30'
SUBJECT_KEY, AUTHORITY_KEY = '2.5.29.14', '2.5.29.35'
CODE_SIGNING, TIME_STAMPING, SERVER = (f'1.3.6.1.5.5.7.3.{arc}' for arc in (3, 8, 1))
FULCIO = '1.3.6.1.4.1.57264.1.'
SCT_LIST = '1.3.6.1.4.1.11129.2.4.2'

DIGITAL_SIGNATURE = der.bits(b'\x80', 7)
CERTIFICATE_SIGN = der.bits(b'\x06', 1)


def name(common_name):
    """A Name with one attribute; of an empty one, none."""
    if not common_name:
        return der.sequence()
    return der.sequence(der.set_of(der.sequence(der.oid('2.5.4.3'), der.utf8(common_name))))


def basic_constraints(ca, path_length=None):
    parts = [der.boolean(True)] if ca else []
    return der.sequence(*parts, *([der.integer(path_length)] if path_length is not None else []))


def usages(*oids):
    return der.sequence(*map(der.oid, oids))


def uri(text):
    return der.implicit(6, text.encode())


def email(text):
    return der.implicit(1, text.encode())


def dns(text):
    return der.implicit(2, text.encode())


def user_name(text):
    """Fulcio's otherName for identities that are neither a URI nor an address."""
    return der.explicit(0, der.oid(FULCIO + '7') + der.explicit(0, der.utf8(text)))


def der_of(extensions):
    """`extensions`: (OID, value) or (OID, value, critical), in order."""
    return der.sequence(*(
        der.sequence(der.oid(oid), *([der.boolean(True)] if rest and rest[0] else []), der.octets(value))
        for oid, value, *rest in extensions))


@dataclasses.dataclass(frozen=True)
class Certificate:
    der: bytes
    subject: bytes
    issuer: bytes
    serial: int
    key: Key

    @property
    def pem(self):
        text = base64.encodebytes(self.der).decode().replace('\n', '')
        lines = [text[i:i + 64] for i in range(0, len(text), 64)]
        return '\n'.join(['-----BEGIN CERTIFICATE-----', *lines, '-----END CERTIFICATE-----', '']).encode()


SERIALS = iter(range(0x1000, 1 << 30))


def issue(subject, subject_key, issuer, extensions, start=NOON - 30 * DAY, end=NOON + 3650 * DAY,
          signed_by=None, digest=None, before_sct=None):
    """A certificate; `issuer` None: self-signed. `before_sct(tbs without SCTs)` gives the SCT list's
    extension, which goes last, as Fulcio puts it."""
    serial = next(SERIALS)
    signer = signed_by or (issuer.key if issuer else subject_key)
    issuer_name = issuer.subject if issuer else name(subject)

    def tbs(extra):
        return der.sequence(
            der.explicit(0, der.integer(2)), der.integer(serial), signer.algorithm(digest), issuer_name,
            der.sequence(der.moment(start), der.moment(end)), name(subject), subject_key.spki,
            der.explicit(3, der_of([*extensions, *extra])))

    final = tbs(before_sct(tbs([])) if before_sct else [])
    whole = der.sequence(final, signer.algorithm(digest), der.bits(signer.sign(final, digest)))
    return Certificate(whole, name(subject), issuer_name, serial, subject_key)


def authority(common_name, kind='p256', issuer=None, path_length=1, extended=(), extra=(), **rest):
    """A certificate authority's own certificate."""
    subject_key = rest.pop('subject_key', None) or key(common_name, kind)
    extensions = [(BASIC_CONSTRAINTS, basic_constraints(True, path_length), True),
                  (KEY_USAGE, CERTIFICATE_SIGN, True),
                  (SUBJECT_KEY, der.octets(sha256(subject_key.spki)[:20]))]
    if extended:
        extensions.append((EXTENDED_USAGE, usages(*extended)))
    return issue(common_name, subject_key, issuer, [*extensions, *extra], **rest)


def sct(tbs, issuer_spki, log, time=NOON, extensions=b'', signed_extensions=None, version=0, digest='sha256',
        algorithms=None, over=None):
    """One signed certificate timestamp, RFC 6962 3.2. `signed_extensions`: those the signature covers,
    where they are to differ; `over`: what is signed in place of `tbs`."""
    millis = der.unix(time) * 1000
    seen = extensions if signed_extensions is None else signed_extensions
    tbs = over or tbs
    signed = (b'\0\0' + struct.pack('>Q', millis) + b'\0\1' + sha256(issuer_spki)
              + struct.pack('>I', len(tbs))[1:] + tbs + struct.pack('>H', len(seen)) + seen)
    signature = log.sign(signed, digest)
    algorithms = algorithms or (b'\4\1' if log.kind.startswith('rsa') else b'\4\3')
    return (bytes([version]) + sha256(log.spki) + struct.pack('>Q', millis)
            + struct.pack('>H', len(extensions)) + extensions + algorithms
            + struct.pack('>H', len(signature)) + signature)


def sct_list(scts):
    body = b''.join(struct.pack('>H', len(one)) + one for one in scts)
    return der.octets(struct.pack('>H', len(body)) + body)


def leaf(issuer, ct_log, key_kind='p256', subject_key=None, names=None, issuer_url='https://issuer.test',
         start=NOON - MINUTE, end=NOON + 9 * MINUTE, extended=(CODE_SIGNING,), ca=None, claims=None,
         extra=(), scts=({},), sct_extension=None, subject='', **rest):
    """A ten-minute certificate as Fulcio issues it. `scts`: for each, what differs from a good one
    (see `sct`); `sct_extension`: makes the extension's list from the encoded SCTs; `claims`: Fulcio's
    extensions by their last arc, instead of the two of the issuer."""
    subject_key = subject_key or key('leaf', key_kind)
    if claims is None:
        claims = {1: issuer_url.encode(), 8: der.utf8(issuer_url)}
    extensions = [(KEY_USAGE, DIGITAL_SIGNATURE, True)]
    if extended:
        extensions.append((EXTENDED_USAGE, usages(*extended)))
    if ca is not None:
        extensions.append((BASIC_CONSTRAINTS, basic_constraints(ca), True))
    if names:
        extensions.append((ALTERNATIVE_NAME, der.sequence(*names), not subject))
    extensions += [(FULCIO + str(arc), value) for arc, value in claims.items()]

    def with_scts(tbs):
        encoded = [sct(tbs, **{'issuer_spki': issuer.key.spki, 'log': ct_log, **changes})
                   for changes in scts]
        if sct_extension:
            return sct_extension(encoded)
        return [(SCT_LIST, sct_list(encoded))] if encoded else []

    return issue(subject, subject_key, issuer, [*extensions, *extra], start, end,
                 before_sct=with_scts, **rest)


def digest_of(data, algorithm):
    context = hashes.Hash(HASHES[algorithm]())
    context.update(data)
    return context.finalize()


TST_INFO, SIGNED_DATA = '1.2.840.113549.1.9.16.1.4', '1.2.840.113549.1.7.2'


def attribute(oid, value):
    return der.sequence(der.oid(oid), der.set_of(value))


def timestamp(over, authority_, time=NOON, imprint='sha256', embed=(), status=0, ess=None, named=None,
              token=True, content=TST_INFO, corrupt=False, signed_info=None, after=b'', version=1):
    """A TimeStampResp over `over`, RFC 3161 2.4.2. `authority_`: the certificate that signs; `embed`:
    those the token carries; `ess`: the certificate its signed attribute names; `named`: the one its
    SignerInfo names; `signed_info`: the TSTInfo that is signed, where another is shown."""
    algorithm = der.sequence(der.oid(DIGEST_OID[imprint]))
    info = der.sequence(
        der.integer(version), der.oid('1.3.6.1.4.1.57264.2'),
        der.sequence(algorithm, der.octets(digest_of(over, imprint))), der.integer(next(SERIALS)),
        der.generalized(time))
    attributes = der.set_of(
        attribute('1.2.840.113549.1.9.3', der.oid(content)),
        attribute('1.2.840.113549.1.9.4', der.octets(sha256(signed_info or info))),
        attribute('1.2.840.113549.1.9.16.2.47',
                  der.sequence(der.sequence(der.sequence(der.octets(sha256((ess or authority_).der)))))))
    signature = authority_.key.sign(attributes, 'sha256')
    if corrupt:
        signature = authority_.key.sign(b'something else', 'sha256')
    named = named or authority_
    sha = der.sequence(der.oid(DIGEST_OID['sha256']))
    signer = der.sequence(
        der.integer(1), der.sequence(named.issuer, der.integer(named.serial)), sha,
        b'\xa0' + attributes[1:], authority_.key.algorithm('sha256'), der.octets(signature))
    certificates = [der.encode(0xa0, b''.join(one.der for one in embed))] if embed else []
    signed = der.sequence(
        der.integer(3), der.set_of(sha), der.sequence(der.oid(content), der.explicit(0, der.octets(info))),
        *certificates, der.set_of(signer))
    parts = [der.sequence(der.integer(status))]
    if token:
        parts.append(der.sequence(der.oid(SIGNED_DATA), der.explicit(0, signed)))
    return der.sequence(*parts) + after


def timestamper(common_name='tsa', issuer=None, extended=(TIME_STAMPING,), critical=True,
                start=NOON - DAY, end=NOON + 365 * DAY, kind='p256'):
    """The certificate that signs timestamps."""
    return issue(common_name, key(common_name, kind), issuer,
                 [(KEY_USAGE, DIGITAL_SIGNATURE, True), (EXTENDED_USAGE, usages(*extended), critical)],
                 start, end)
