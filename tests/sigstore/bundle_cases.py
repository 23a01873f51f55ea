"""What a bundle is: its JSON, its version, its signature and its statement."""
import json

from case import drop, put, refused, text, verified
from keys import key, sha256
from logs import b64, canonical
from signing import CA, DIGEST, MEDIA_TYPE, REKOR2, ROOT, bundle, pae, raw, statement, trusted_root

GOOD = bundle()
MESSAGE = bundle('message')
MATERIAL = 'verificationMaterial.'
ENTRY = MATERIAL + 'tlogEntries.0.'
ENVELOPE = 'dsseEnvelope.'
TEAM = key('team')
OTHER_DIGEST = sha256(b'something else').hex()

NO_STATEMENT = 'npm leaves the statement to its caller'
NPM_SHA256 = 'npm hashes envelopes with SHA-256 whatever the key'
ONLY_SHA256 = 'of a digest, only SHA-256 is known; npm has the artifact'
STRICT_JSON = 'npm reads JSON as JavaScript does'


def old(version, promise=True, proof=True, chain=(), what='dsse'):
    """A bundle of an older version: a chain in place of one certificate."""
    made = bundle(what, logs=[(1, {'promise': promise})])
    material = made['verificationMaterial']
    material['x509CertificateChain'] = {'certificates': [material.pop('certificate'), *map(raw, chain)]}
    if not proof:
        del material['tlogEntries'][0]['inclusionProof']
    return made | {'mediaType': f'application/vnd.dev.sigstore.bundle+json;version={version}'}


def with_statement(**rest):
    return bundle(payload=canonical(statement(**rest)))


def statement_text(before, after):
    whole = canonical(statement())
    assert before in whole, before
    return bundle(payload=whole.replace(before, after, 1))


def managed(*arguments, **rest):
    return bundle(*arguments, **{'managed': TEAM, 'stamps': ()} | rest)


def key_types():
    """Every kind of key, in both formats, and what is no match for any."""
    for kind in ('p256', 'p384', 'p521', 'rsa2048', 'ed25519'):
        yield verified(f'dsse-{kind}', bundle(kind=kind),
                       npm_differs=NPM_SHA256 if kind in ('p384', 'p521') else '')
        yield verified(f'team-dsse-{kind}', managed(managed=key('team', kind), logs=()), root=None,
                       key=key('team', kind).pem, npm_reads=False)
        yield refused(f'team-other-key-{kind}', 'signature',
                      managed(managed=key('stranger', kind), logs=()), root=None,
                      key=key('team', kind).pem, npm_reads=False)
    for kind in ('p256', 'p384', 'p521', 'rsa2048'):
        yield verified(f'message-{kind}', bundle('message', kind=kind))
        yield verified(f'team-message-{kind}',
                       managed('message', managed=key('team', kind), logs=()), root=None,
                       key=key('team', kind).pem, npm_reads=False)
    for kind in ('p256', 'p384', 'p521', 'rsa2048', 'ed25519'):
        yield verified(f'rekor2-dsse-{kind}', bundle(kind=kind, logs=[2]),
                       npm_differs=NPM_SHA256 if kind in ('p384', 'p521', 'ed25519') else '')
    yield verified('dsse-p384-sha256', bundle(kind='p384', hash_name='sha256'))
    yield refused('dsse-p256-sha384', 'signature', bundle(hash_name='sha384'))
    yield refused('dsse-sha1', 'signature', bundle(hash_name='sha1'))
    yield refused('weak-rsa', 'key-algorithm', bundle(kind='rsa1024'), npm_differs='npm takes RSA of any size')
    yield refused('team-weak-rsa', 'key-algorithm', managed(managed=key('team', 'rsa1024'), logs=()), exit=65,
                  root=None, key=key('team', 'rsa1024').pem, npm_reads=False)
    yield refused('message-ed25519', 'key-algorithm', bundle('message', kind='ed25519'), word='Ed25519ph')


def media_types():
    for version in ('0.1', '0.2', '0.3'):
        made = GOOD if version == '0.3' else old(version)
        yield verified(f'version-{version}', made | {
            'mediaType': f'application/vnd.dev.sigstore.bundle+json;version={version}'})
    yield verified('v0.1-promise-only', old('0.1', proof=False))
    yield verified('v0.2-chain', old('0.2', chain=[CA]))
    for name, media_type in [('unknown-version', MEDIA_TYPE.replace('0.3', '0.4')),
                             ('version-suffix', MEDIA_TYPE + 'x'), ('version-empty', ''),
                             ('version-parameter', MEDIA_TYPE + ';charset=utf-8')]:
        yield refused(name, 'media-type', GOOD | {'mediaType': media_type},
                      npm_differs='npm looks at the beginning of the text only' if name != 'version-empty' else '')
    yield refused('no-media-type', 'media-type', drop('mediaType')(GOOD))
    yield refused('v0.1-no-promise', 'missing-field', old('0.1', promise=False))
    yield refused('v0.2-no-proof', 'inclusion-missing', old('0.2', proof=False))
    yield refused('v0.3-chain', 'material', old('0.3', chain=[CA]))
    yield refused('v0.2-root-in-chain', 'root-in-bundle', old('0.2', chain=[CA, ROOT]),
                  npm_differs='npm ignores all but the first certificate')
    yield refused('v0.2-empty-chain', 'material', put(
        MATERIAL + 'x509CertificateChain.certificates', [])(old('0.2')))


def json_text():
    for name, reason, made in [
            ('truncated', 'parse', json.dumps(GOOD)[:-1]),
            ('trailing-text', 'parse', json.dumps(GOOD) + '{}'),
            ('not-an-object', 'parse', '[]'),
            ('empty-file', 'parse', ''),
            ('not-utf8', 'parse', text(GOOD, 'application', '\udcff')),
            ('nested-deep', 'parse', '[' * 100000)]:
        yield refused(name, reason, made, npm_reads=False)
    # CVE-2023-46737: an attestation without an end.
    yield refused('larger-than-32-mib', 'reading the bundle', json.dumps(GOOD) + ' ' * (32 << 20), exit=65,
                  npm_reads=False)
    twice = '"mediaType": "x", "mediaType"'
    yield refused('duplicate-key', 'duplicate-key', text(GOOD, '"mediaType"', twice), npm_differs=STRICT_JSON)
    yield refused('duplicate-key-deep', 'duplicate-key', text(
        GOOD, '"payloadType"', '"payloadType": "x", "payloadType"'), npm_differs=STRICT_JSON)
    yield refused('duplicate-key-escaped', 'duplicate-key', text(
        GOOD, '"payloadType"', '"payload\\u0054ype": "x", "payloadType"'), npm_differs=STRICT_JSON)
    yield refused('unknown-field', 'unknown-field', GOOD | {'extra': 1}, npm_differs=STRICT_JSON)
    yield refused('other-case', 'unknown-field', text(GOOD, '"payloadType"', '"PayloadType"'))
    yield verified('null-is-absent', GOOD | {'messageSignature': None})
    yield verified('base64-with-newlines', put(ENVELOPE + 'payload', lambda text_: '\n'.join(
        text_[i:i + 64] for i in range(0, len(text_), 64)) + '\n')(GOOD))
    yield verified('numbers-as-numbers', put(ENTRY + 'logIndex', int)(put(
        ENTRY + 'integratedTime', int)(GOOD)))
    yield refused('index-negative', 'tlog-index', put(ENTRY + 'logIndex', '-1')(GOOD))
    for name, value in [('index-huge', '9223372036854775808'),
                        ('index-text', '1x'), ('index-empty', ''), ('index-fraction', 1.5), ('index-exponent', 1e3), ('index-true', True),
                        ('index-list', ['1'])]:
        yield refused(name, 'parse', put(ENTRY + 'logIndex', value)(GOOD))
    for field in (ENVELOPE + 'payload', ENVELOPE + 'signatures.0.sig', ENTRY + 'canonicalizedBody',
                  ENTRY + 'logId.keyId', MATERIAL + 'certificate.rawBytes'):
        yield refused('bad-base64-' + field.rsplit('.', 1)[1], 'bad-base64',
                      put(field, lambda good: '*' + good[1:])(GOOD))
    yield refused('base64-too-much-padding', 'bad-base64',
                  put(ENVELOPE + 'payload', lambda good: good + '=')(GOOD),
                  npm_differs='Node drops what is not base64')


def content():
    yield verified('good', GOOD, word='log index: 1006')
    yield verified('good-json', GOOD, options=('--json',), npm_reads=False,
                   word='"log_indices": [\n    "1006"\n  ],\n  "times": [\n    ')
    # Nobody signed the number of an old entry that has only a proof.
    yield verified('index-not-signed', bundle(logs=[(1, {'promise': False})]), no_word='log index')
    yield verified('good-message', MESSAGE)
    yield verified('good-intoto', bundle('intoto'))
    yield verified('good-rekor2', bundle(logs=[2]), word='log index: 6')
    yield verified('good-rekor2-message', bundle('message', logs=[2]))
    yield verified('both-logs', bundle(logs=[1, 2]))
    yield refused('no-material', 'missing-field', drop('verificationMaterial')(GOOD))
    yield refused('no-certificate', 'material', drop(MATERIAL + 'certificate')(GOOD))
    yield refused('no-content', 'no-signature', drop('dsseEnvelope')(GOOD))
    yield refused('both-contents', 'no-signature', GOOD | {'messageSignature': MESSAGE['messageSignature']})
    yield refused('certificate-and-key', 'material', put('verificationMaterial', lambda old_: old_ | {
        'publicKey': {'hint': 'x'}})(GOOD))
    yield refused('no-signature', 'no-signature', put(ENVELOPE + 'signatures', [])(GOOD))
    yield refused('two-signatures', 'no-signature', put(ENVELOPE + 'signatures', lambda one: one * 2)(GOOD))
    yield refused('empty-signature', 'missing-field', bundle(signature=lambda _: b''))
    yield refused('signature-of-something-else', 'signature',
                  bundle(signature=lambda _: key('leaf p256').sign(b'something else')))
    yield refused('signature-trailing-byte', 'signature', bundle(signature=lambda one: one + b'\0'))
    yield refused('signed-by-another-key', 'signature', bundle(
        signature=lambda _: key('stranger').sign(
            pae(canonical(statement()), 'application/vnd.in-toto+json'))))
    yield refused('payload-swapped', 'tlog-mismatch', put(ENVELOPE + 'payload', b64(canonical(
        statement(predicate={'x': 1}))))(GOOD))
    yield refused('message-other-artifact', 'digest', MESSAGE, digest=OTHER_DIGEST, npm_reads=False)
    yield refused('message-digest-lies', 'tlog-mismatch', put('messageSignature.messageDigest.digest', b64(
        sha256(b'something else')))(MESSAGE))
    yield refused('message-digest-algorithm', 'tlog-mismatch', put(
        'messageSignature.messageDigest.algorithm', 'SHA2_512')(MESSAGE))
    yield verified('message-file', MESSAGE, by_path=True)
    yield refused('message-other-file', 'digest', bundle('message', artifact=b'another'), by_path=True)
    for kind, hash_name in [('p384', 'sha384'), ('p521', 'sha512')]:
        yield verified('message-file-' + hash_name, bundle('message', kind=kind, hash_name=hash_name),
                       by_path=True)
        yield refused('message-other-file-' + hash_name, 'digest', bundle(
            'message', kind=kind, hash_name=hash_name, artifact=b'another'), by_path=True)
    yield verified('message-file-no-digest', drop('messageSignature.messageDigest')(MESSAGE), by_path=True,
                   npm_reads=False)
    yield verified('file-of-statement', GOOD, by_path=True)
    yield refused('message-sha384', 'digest', bundle('message', kind='p384', hash_name='sha384'),
                  npm_differs=ONLY_SHA256)


def statements():
    yield verified('statement-v0.1', with_statement(_type='https://in-toto.io/Statement/v0.1'))
    yield verified('statement-without-predicate', bundle(payload=canonical(
        {name: value for name, value in statement().items() if name != 'predicate'})))
    others = [{'digest': {'sha256': OTHER_DIGEST}}]
    good = statement()['subject']
    yield verified('statement-second-subject', with_statement(subject=others + good))
    yield verified('statement-1024-subjects', with_statement(subject=others * 1023 + good))
    yield verified('statement-large-predicate', with_statement(predicate={'files': [{'n': 1}] * 75000}))
    yield verified('statement-other-digests', with_statement(
        subject=[{'digest': {'sha512': 'ab' * 64, 'sha256': DIGEST}}]))
    for name, reason, made in [
            ('subject-other', 'subject', with_statement(subject=others)),
            ('subject-none', 'statement', with_statement(subject=[])),
            ('subject-upper-case', 'subject', with_statement(subject=[{'digest': {
                'sha256': DIGEST.upper()}}])),
            ('subject-prefix', 'subject', with_statement(subject=[{'digest': {'sha256': DIGEST[:-1]}}])),
            ('subject-sha512-only', 'subject', with_statement(subject=[{'digest': {'sha512': DIGEST}}])),
            ('subject-in-name', 'subject', with_statement(subject=[{
                'name': DIGEST, 'digest': {'sha256': OTHER_DIGEST}}])),
            ('subject-in-predicate', 'subject', with_statement(
                subject=others, predicate={'subject': good})),
            ('subjects-1025', 'too-many', with_statement(subject=others * 1024 + good)),
            ('statement-type', 'statement', with_statement(_type='https://in-toto.io/Statement/v2')),
            ('statement-no-type', 'statement', statement_text(b'"_type"', b'"type"')),
            ('statement-not-json', 'parse', bundle(payload=b'not json')),
            ('statement-array', 'statement', bundle(payload=b'[]')),
            ('statement-empty', 'statement', bundle(payload=b'{}')),
            ('statement-trailing', 'parse', bundle(payload=canonical(statement()) + b'{}')),
            ('statement-duplicate-key', 'duplicate-key', statement_text(
                b'"subject":', b'"subject":[],"subject":')),
            ('statement-subject-object', 'statement', with_statement(subject=good[0])),
            ('statement-digest-number', 'subject', with_statement(subject=[{'digest': {'sha256': 1}}])),
            ('statement-no-predicate-type', 'statement', with_statement(predicateType='')),
            ('statement-predicate-type-number', 'statement', with_statement(predicateType=1)),
            ('payload-type', 'payload-type', bundle(payload_type='application/json')),
            ('payload-type-suffix', 'payload-type', bundle(
                payload_type='application/vnd.in-toto+json2'))]:
        yield refused(name, reason, made, npm_differs=NO_STATEMENT)
    yield refused('subject-digest-input', 'subject', GOOD, digest=OTHER_DIGEST, npm_reads=False)
    # The type is signed: what was meant as something else cannot be called a statement.
    yield refused('payload-type-not-signed', 'signature', bundle(signed_type='text/plain'))


def keys():
    """Teams with a key of their own."""
    yield verified('team', managed(logs=()), root=None, key=TEAM.pem, npm_reads=False)
    yield verified('team-root-unused', managed(logs=()), key=TEAM.pem)
    yield verified('team-logged', managed(), key=TEAM.pem)
    yield verified('team-rekor2', managed(logs=[2], stamps=[{}]), key=TEAM.pem)
    yield verified('team-message', managed('message'), key=TEAM.pem)
    yield refused('team-certificate', 'material', GOOD, key=TEAM.pem, word='certificate',
                  npm_differs='npm verifies with the certificate')
    yield refused('team-hint-without-key', 'material', managed())
    yield refused('team-other-artifact', 'subject', managed(logs=()), digest=OTHER_DIGEST, root=None,
                  key=TEAM.pem, npm_reads=False)
    yield refused('team-hint-is-not-a-key', 'signature',
                  put(MATERIAL + 'publicKey.hint', key('stranger').pem.decode())(
                      managed(managed=key('stranger'), logs=())), root=None, key=TEAM.pem,
                  npm_reads=False)
    for name, pem in [('garbage', b'not a key\n'), ('empty', b''),
                      ('private', b'-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n'),
                      ('truncated', TEAM.pem[:80]), ('certificate', CA.pem)]:
        yield refused('key-' + name, 'bad-key', exit=65, document=managed(logs=()), root=None, key=pem, npm_reads=False)


def policies():
    """What the user asks for beyond a signer."""
    logged = {'key': TEAM.pem, 'options': ('--require-log',), 'npm_reads': False}
    yield verified('team-log-required', managed(), **logged)
    yield verified('team-log-required-rekor2', managed(logs=[2], stamps=[{}]), **logged)
    yield refused('team-log-required-and-missing', 'tlog-none', managed(logs=()), **logged)
    yield refused('team-log-required-unknown', 'tlog-none', managed(), **logged | {
        'root': trusted_root(tlogs=[])})
    yield refused('team-log-of-another-key', 'tlog-mismatch', managed(logs=[(1, {'change_spec': put(
        'signatures.0.verifier', b64(key('stranger').pem))})]), word='key', **logged)
    yield refused('team-log-set-signature', 'set-signature', managed(
        logs=[(1, {'promised_by': key('stranger')})]), **logged)
    # A log that is retired: what it vouches for needs a time that it cannot have made up since.
    retired = {'key': TEAM.pem, 'npm_reads': False, 'root': trusted_root(
        tlogs=[REKOR2.in_root(end='2026-12-31T00:00:00Z')])}
    yield verified('team-log-retired', managed(logs=[2]), **retired)
    yield refused('team-log-required-retired', 'no-timestamp', managed(logs=[2]), **logged | retired)
    yield verified('team-log-required-retired-stamped', managed(logs=[2], stamps=[{}]), **logged | retired)
    stamp = {'options': ('--require-timestamp',), 'npm_reads': False}
    yield verified('timestamp-required', GOOD, **stamp)
    yield refused('timestamp-required-and-missing', 'no-timestamp', bundle(stamps=()), **stamp)
    unlogged = {'options': ('--no-log',), 'npm_reads': False}
    yield verified('log-not-required', bundle(logs=()), **unlogged)
    yield refused('log-not-required-no-time', 'no-timestamp', bundle(logs=(), stamps=()), **unlogged)
    yield refused('log-not-required-but-bad', 'set-signature', bundle(
        logs=[(1, {'promised_by': key('stranger')})]), **unlogged)
    slsa = 'https://slsa.dev/provenance/v1'
    typed = {'options': ('--predicate-type', slsa), 'npm_reads': False}
    # CVE-2022-35929, GHSA-w6c6-c85g-mmv6: an attestation of another type is none of this.
    yield verified('predicate-type-any', with_statement(predicateType='https://spdx.dev/Document'))
    yield verified('predicate-type', with_statement(predicateType=slsa), **typed)
    yield verified('predicate-type-sign', GOOD, **typed)
    for name, type_ in [('other', 'https://spdx.dev/Document'), ('longer', slsa + '/x'), ('shorter', slsa[:-1]),
                        ('case', slsa.upper())]:
        yield refused('predicate-type-' + name, 'predicate-type', with_statement(predicateType=type_), **typed)


def cases():
    for family in (content, key_types, media_types, json_text, statements, keys, policies):
        yield from family()
