"""Layers of cosign's tag format, from before bundles."""
import json

import der
from case import put, refused, verified
from certificates import email, leaf, uri
from der import MINUTE, NOON
from keys import key, sha256
from logs import b64, canonical
from signing import (CA, CT, DIGEST, IDENTITY, OTHER_CA, OTHER_ROOT, REKOR1, ROOT, chain, legacy,
                     simple_signing, statement, trusted_root)
from time_cases import OTHER_TSA

TEAM = key('team')
OTHER_DIGEST = sha256(b'something else').hex()
SIGNATURE = 'annotations.dev.cosignproject.cosign/signature'
SIGSTORE = 'dev.sigstore.cosign/'


def annotation(name, value):
    """A change of an annotation: its name has dots."""
    full = ('dev.cosignproject.cosign/' if name == 'signature' else SIGSTORE) + name

    def change(layer):
        annotations = dict(layer['annotations'])
        annotations[full] = value(annotations[full]) if callable(value) else value
        if annotations[full] is None:
            del annotations[full]
        return layer | {'annotations': annotations}
    return change


def team(**rest):
    return legacy(**{'managed': TEAM, 'log': None, 'stamp': None} | rest)


def with_payload(**changes):
    return legacy(payload=canonical(simple_signing(**changes)))


def critical(**changes):
    return with_payload(critical=simple_signing()['critical'] | changes)


def teams():
    for kind in ('p256', 'p384', 'p521', 'rsa2048', 'ed25519'):
        yield verified('legacy-team-' + kind, team(managed=key('team', kind)), root=None,
                       key=key('team', kind).pem)
        yield refused('legacy-team-other-' + kind, 'signature', team(managed=key('stranger', kind)),
                      root=None, key=key('team', kind).pem)
    # cosign 3 signs with the curve's own hash, and those before it with SHA-256.
    for kind, hash_name, other in (('p384', 'sha384', 'sha512'), ('p521', 'sha512', 'sha384')):
        yield verified('legacy-team-own-hash-' + kind, team(managed=key('team', kind), hash_name=hash_name),
                       root=None, key=key('team', kind).pem)
        yield verified('legacy-team-own-hash-logged-' + kind, team(managed=key('team', kind), log={},
                       hash_name=hash_name), key=key('team', kind).pem, options=('--require-log',))
        yield refused('legacy-team-another-hash-' + kind, 'signature', team(
            managed=key('team', kind), hash_name=other), root=None, key=key('team', kind).pem)
    yield refused('legacy-team-another-hash-p256', 'signature', team(hash_name='sha384'), root=None, key=TEAM.pem)
    rsa = key('team', 'rsa2048')
    yield verified('legacy-team-pkcs1', team(managed=rsa), root=None, key=rsa.pkcs1_pem)
    yield refused('legacy-team-pkcs1-other', 'signature', team(managed=key('stranger', 'rsa2048')), root=None,
                  key=rsa.pkcs1_pem)
    yield refused('legacy-team-pkcs1-weak', 'key-algorithm', team(managed=key('team', 'rsa1024')), root=None, exit=65,
                  key=key('team', 'rsa1024').pkcs1_pem)
    yield refused('legacy-team-ed25519ph', 'signature', team(
        managed=key('team', 'ed25519'), signature=lambda made: made[::-1]), root=None,
        key=key('team', 'ed25519').pem, word='Ed25519ph')
    for name, text, word in (('private', TEAM.private_pem, 'a private key'), ('empty', b'\n', 'is empty'),
                             ('certificate', CA.pem, 'a certificate'), ('der', TEAM.spki, 'DER'),
                             ('garbage', b'garbage', 'not a public key in PEM')):
        yield refused('legacy-team-key-' + name, 'bad-key', team(), root=None, key=text, word=word, exit=65)
    yield verified('legacy-team-logged', team(log={}), key=TEAM.pem)
    yield refused('legacy-team-weak', 'key-algorithm', team(managed=key('team', 'rsa1024')), root=None, exit=65,
                  key=key('team', 'rsa1024').pem)
    yield refused('legacy-team-other-image', 'digest', team(), root=None, key=TEAM.pem, digest=OTHER_DIGEST)


def good():
    yield verified('legacy-good', legacy())
    yield verified('legacy-email', legacy(names=[email('dev@example.test')]), identity='dev@example.test')
    yield verified('legacy-log-only', legacy(stamp=None))
    yield verified('legacy-without-chain', legacy(change=annotation('chain', None)))
    yield verified('legacy-strange-reference', critical(identity={'docker-reference': 'else.test/x'}))
    yield verified('legacy-optional', with_payload(optional={'a': 'b'}))
    yield verified('legacy-p384', legacy(kind='p384'))
    yield verified('legacy-rsa', legacy(kind='rsa2048'))


def payloads():
    image = {'docker-manifest-digest': 'sha256:' + OTHER_DIGEST}
    for name, reason, layer in [
            ('other-image', 'digest', critical(image=image)),
            ('digest-upper-case', 'digest', critical(image={
                'docker-manifest-digest': 'sha256:' + DIGEST.upper()})),
            ('digest-without-algorithm', 'digest', critical(image={'docker-manifest-digest': DIGEST})),
            ('digest-number', 'digest', critical(image={'docker-manifest-digest': 1})),
            ('digest-missing', 'digest', critical(image={})),
            ('digest-other-case', 'digest', critical(image={
                'Docker-Manifest-Digest': 'sha256:' + DIGEST})),
            ('no-critical', 'payload', legacy(payload=b'{}')),
            ('not-json', 'parse', legacy(payload=b'not json')), ('array', 'payload', legacy(payload=b'[]')),
            ('empty', 'parse', legacy(payload=b'')),
            ('trailing', 'parse', legacy(payload=canonical(simple_signing()) + b'{}')),
            ('type', 'payload', critical(type='something else')),
            ('duplicate-key', 'duplicate-key', legacy(payload=canonical(simple_signing()).replace(
                b'"image":', b'"image":%s,"image":' % canonical(image), 1)))]:
        yield refused('legacy-payload-' + name, reason, layer)
    yield refused('legacy-payload-swapped', 'tlog-mismatch', legacy() | {
        'payload': b64(canonical(simple_signing(optional={'a': 'b'})))})
    yield refused('legacy-team-payload-swapped', 'signature', team() | {
        'payload': b64(canonical(simple_signing(optional={'a': 'b'})))}, root=None, key=TEAM.pem)


def annotations():
    for name, reason, field, value in [
            # Without one the layer is an attestation, and this one is not.
            ('signature-missing', 'unknown-field', 'signature', None),
            ('signature-base64', 'bad-base64', 'signature', '****'),
            ('certificate-missing', 'material', 'certificate', None),
            ('certificate-garbage', 'bad-certificate', 'certificate', 'garbage'),
            ('bundle-garbage', 'parse', 'bundle', 'garbage'),
            ('bundle-empty-object', 'missing-field', 'bundle', '{}'),
            ('bundle-trailing', 'parse', 'bundle', lambda good_: good_ + '{}'),
            ('timestamp-garbage', 'parse', 'rfc3161timestamp', 'garbage'),
            ('timestamp-base64', 'bad-base64', 'rfc3161timestamp', json.dumps(
                {'SignedRFC3161Timestamp': '****'}))]:
        yield refused('legacy-' + name, reason, annotation(field, value)(legacy()))
    yield refused('legacy-bundle-duplicate-key', 'duplicate-key', annotation('bundle', lambda good_: (
        good_.replace('"Payload"', '"Payload": {}, "Payload"', 1)))(legacy()))
    yield refused('legacy-log-missing', 'tlog-none', legacy(log=None))
    yield refused('legacy-nothing-says-when', 'tlog-none', legacy(log=None, stamp=None))
    # The chain is a hint: a stranger's does no harm and no good.
    yield verified('legacy-chain-of-stranger', legacy(shown_chain=(OTHER_CA, OTHER_ROOT)))
    yield refused('legacy-hostile-chain', 'chain', legacy(issuer=OTHER_CA, shown_chain=(OTHER_CA, OTHER_ROOT)))
    yield refused('legacy-chain-is-not-used', 'chain', legacy(), root=trusted_root(
        certificateAuthorities=[chain([ROOT])]))
    yield refused('legacy-signature-other', 'signature', legacy(
        signature=lambda _: key('leaf p256').sign(b'something else')))
    yield refused('legacy-certificate-of-another', 'tlog-mismatch', annotation(
        'certificate', leaf(CA, CT, names=[uri(IDENTITY)], subject_key=key('leaf p256')).pem.decode())(legacy()),
        word='key')
    yield refused('legacy-team-with-certificate', 'material', legacy(), key=TEAM.pem)


def entries():
    """CVE-2022-23649 and CVE-2026-22703: an entry of another signature."""
    other = legacy(payload=canonical(simple_signing(optional={'n': 1})))
    name = SIGSTORE + 'bundle'
    yield refused('legacy-entry-of-another', 'tlog-mismatch', annotation(
        'bundle', other['annotations'][name])(legacy()))
    for what, word, field, value in [
            ('signature', 'signature', 'signature.content', b64(key('leaf p256').sign(b'else'))),
            ('key', 'key', 'signature.publicKey.content', b64(key('stranger').pem)),
            ('digest', 'digest', 'data.hash.value', OTHER_DIGEST),
            ('algorithm', '', 'data.hash.algorithm', 'sha512')]:
        yield refused('legacy-entry-' + what, 'tlog-mismatch', legacy(
            log={'change_spec': put(field, value)}), word=word)
    for what, path, value in [('time', 'Payload.integratedTime', der.unix(NOON) + 1),
                              ('index', 'Payload.logIndex', 8), ('set', 'SignedEntryTimestamp', b64(b'none'))]:
        yield refused('legacy-entry-moved-' + what, 'set-signature', legacy(rekor_bundle=put(path, value)))
    yield refused('legacy-entry-set-other-key', 'set-signature', legacy(log={'promised_by': key('stranger')}))
    yield refused('legacy-entry-unknown-log', 'tlog-none', legacy(
        rekor_bundle=put('Payload.logID', '00' * 32)))
    yield refused('legacy-entry-negative-index', 'tlog-index', legacy(
        rekor_bundle=put('Payload.logIndex', -1)))
    yield refused('legacy-entry-body-base64', 'bad-base64', legacy(rekor_bundle=put('Payload.body', '****')))
    yield refused('legacy-entry-kind', 'tlog-kind', legacy(log={
        'change_body': lambda body: body.replace(b'hashedrekord', b'rekord')}))


def times():
    yield refused('legacy-log-late', 'integrated-time', legacy(log={'time': NOON + 10 * MINUTE}))
    yield refused('legacy-timestamp-late', 'cert-expired', legacy(stamp={'time': NOON + 10 * MINUTE}))
    yield refused('legacy-timestamp-untrusted', 'tsa', legacy(stamp={
        'authority_': OTHER_TSA, 'embed': (OTHER_TSA,)}))
    yield refused('legacy-timestamp-corrupt', 'tsa', legacy(stamp={'corrupt': True}))
    yield refused('legacy-log-key-expired', 'log-validity', legacy(), root=trusted_root(
        tlogs=[REKOR1.in_root(end='2026-03-14T11:59:59Z')]))


def identities():
    yield refused('legacy-other-identity', 'identity-mismatch', legacy(names=[uri(IDENTITY + 'x')]))
    yield refused('legacy-other-issuer', 'issuer-mismatch', legacy(issuer_url='https://evil.test'))
    yield refused('legacy-no-sct', 'sct-missing', legacy(scts=()))
    yield refused('legacy-eku', 'eku', legacy(extended=()))
    yield refused('legacy-leaf-ca', 'bad-certificate', legacy(ca=True))


def attestations():
    """Of `.att` tags: an envelope for a layer (CVE-2022-35929, GHSA-w6c6-c85g-mmv6)."""
    def attest(**rest):
        return legacy(dsse=canonical(statement(**rest)))
    yield verified('legacy-attestation', attest())
    yield refused('legacy-attestation-other-subject', 'subject', attest(
        subject=[{'digest': {'sha256': OTHER_DIGEST}}]))
    yield refused('legacy-attestation-type', 'statement', attest(_type='x'))
    # cosign's first attestations were logged by the hash of the envelope's text.
    old = {'dsse': canonical(statement()), 'logged_as': 'old intoto'}
    yield verified('legacy-attestation-old-entry', legacy(**old))
    for what, field, value in [('digest', 'content.hash.value', OTHER_DIGEST),
                               ('key', 'publicKey', b64(key('stranger').pem))]:
        yield refused('legacy-attestation-old-entry-' + what, 'tlog-mismatch', legacy(
            log={'change_spec': put(field, value)}, **old), word=what)
    yield verified('legacy-attestation-intoto-entry', legacy(**old | {'logged_as': 'intoto'}))
    slsa = 'https://slsa.dev/provenance/v1'
    yield verified('legacy-attestation-predicate', attest(predicateType=slsa), options=('--predicate-type', slsa))
    yield refused('legacy-attestation-other-predicate', 'predicate-type', attest(
        predicateType='https://spdx.dev/Document'), options=('--predicate-type', slsa))
    yield refused('legacy-attestation-signature', 'signature', legacy(
        dsse=canonical(statement()), signature=lambda _: key('leaf p256').sign(b'something else')))
    yield refused('legacy-attestation-stamped-signature', 'tsa', legacy(
        dsse=canonical(statement()), stamp_signature=True), word='imprint')
    yield refused('legacy-attestation-payload-type', 'payload-type', team(
        dsse=canonical(statement()), payload_type='application/json'), root=None, key=TEAM.pem)
    yield verified('legacy-team-attestation', team(dsse=canonical(statement())), root=None, key=TEAM.pem)


def cases():
    for family in (teams, good, payloads, annotations, entries, times, identities, attestations):
        for case in family():
            case.legacy = True
            case.npm_reads = False
            yield case
