"""What the log says: its promise, its tree, its checkpoint, and that it is about this signature."""
import base64

import der
from case import drop, put, refused, verified
from certificates import leaf, uri
from der import NOON
from keys import key, sha256
from logs import Log, b64, canonical
from signing import CA, CT, IDENTITY, LOGS, REKOR1, REKOR2, bundle, raw, statement, trusted_root

ENTRIES = 'verificationMaterial.tlogEntries'
ENTRY = ENTRIES + '.0.'
NPM_PKCS1 = 'npm reads every RSA key as PKCS#1'
STRANGER = Log('rekor.stranger.test', 'p256', 1)
BOTH = (('rekor1', 1), ('rekor2', 2))


def logged(generation, what='dsse', **hooks):
    """A bundle whose only entry has `hooks`; see Log.entry."""
    return bundle(what, logs=[(generation, hooks)])


def in_tree(log, **window):
    return trusted_root(tlogs=[log.in_root(**window)])


def logs():
    """Which log, and when its key counts."""
    yield refused('log-none', 'tlog-none', bundle(logs=()))
    yield refused('log-unknown', 'tlog-none', bundle(logs=[STRANGER]))
    yield verified('log-unknown-beside-known', bundle(logs=[1, STRANGER]),
                   npm_differs='npm wants every entry of a known log')
    yield refused('log-nobody-trusted', 'tlog-none', bundle(), root=trusted_root(tlogs=[]))
    # One entry of a log counts once however often it is shown.
    yield refused('log-entry-twice', 'tlog-duplicate', put(ENTRIES, lambda one: one * 2)(bundle()))
    yield refused('rekor2-entry-twice', 'tlog-duplicate', put(ENTRIES, lambda one: one * 2)(
        bundle(logs=[2])))
    yield refused('log-33-entries', 'too-many', put(ENTRIES, lambda one: one * 33)(bundle()))
    yield refused('log-second-bad', 'set-signature', bundle(
        logs=[2, (1, {'promised_by': STRANGER.key})]))
    now = '2026-03-14T12:00:00'
    for name, reason, window in [
            ('starts-now', None, {'start': now + 'Z'}), ('ends-now', None, {'end': now + 'Z'}),
            ('expired', 'log-validity', {'end': '2026-03-14T11:59:59Z'}),
            ('expired-by-a-fraction', 'log-validity', {'end': '2026-03-14T11:59:59.999Z'}),
            ('not-yet', 'log-validity', {'start': '2026-03-14T12:00:01Z'})]:
        for log_name, log in (('rekor1', REKOR1), ('rekor2', REKOR2)):
            yield (refused if reason else verified)(
                f'{log_name}-key-{name}', *([reason] if reason else []),
                bundle(logs=[log.generation]), root=in_tree(log, **window),
                npm_differs='npm reads the window of a promise only' if reason and log is REKOR2 else '')
    yield refused('rekor1-key-swapped', 'set-signature', bundle(), root=trusted_root(
        tlogs=[STRANGER.in_root() | {'logId': REKOR1.in_root()['logId']}]))
    for kind in ('p256', 'p384', 'rsa2048', 'ed25519'):
        log = Log(kind + '.rekor.test', kind, 2)
        yield verified('rekor2-log-key-' + kind, bundle(logs=[log]), root=in_tree(log),
                       npm_differs=NPM_PKCS1 if kind == 'rsa2048' else '')
    for kind in ('p384', 'rsa2048'):
        log = Log(kind + '.old-rekor.test', kind, 1)
        yield verified('rekor1-log-key-' + kind, bundle(logs=[log]), root=in_tree(log),
                       npm_differs=NPM_PKCS1 if kind == 'rsa2048' else '')


def promises():
    """The first generation's signed entry timestamp."""
    for name, change in [
            ('time', put('integratedTime', der.unix(NOON) + 1)), ('index', put('logIndex', 7)),
            ('log', put('logID', STRANGER.id.hex())), ('body', put('body', b64(b'{}')))]:
        # CVE-2022-23649: a promise for something else.
        yield refused('set-other-' + name, 'set-signature', logged(1, promised=change))
    yield refused('set-other-key', 'set-signature', logged(1, promised_by=STRANGER.key))
    yield refused('set-of-another-entry', 'set-signature', put(
        ENTRY + 'inclusionPromise',
        bundle(logs=[(1, {'index': 3})])['verificationMaterial']['tlogEntries'][0]['inclusionPromise'])(
            bundle()))
    yield refused('set-empty', 'missing-field', put(
        ENTRY + 'inclusionPromise.signedEntryTimestamp', '')(bundle()))
    for name, value in [('moved', str(der.unix(NOON) + 60)), ('zero', '0'), ('negative', '-1')]:
        yield refused('integrated-time-' + name, 'set-signature', put(
            ENTRY + 'integratedTime', value)(bundle()))
    yield refused('index-moved', 'set-signature', put(ENTRY + 'logIndex', '8')(bundle()))


def proofs():
    """The way from the leaf to the root of the tree."""
    for name, generation in BOTH:
        for size, index in [(1, 0), (2, 0), (2, 1), (3, 2), (8, 7), (1000, 999), (1000, 511)]:
            yield verified(f'{name}-tree-{size}-{index}', logged(generation, size=size, index=index))
        hashes = ENTRY + 'inclusionProof.hashes'
        yield verified(name + '-tree-of-one-without-hashes', drop(hashes)(bundle(logs=[(generation, {'size': 1})])))
        made = bundle(logs=[generation])
        yield refused(name + '-hash-corrupted', 'inclusion', put(
            hashes + '.1', b64(sha256(b'corrupt')))(made))
        yield refused(name + '-hashes-reversed', 'inclusion', put(hashes, lambda all_: all_[::-1])(made))
        yield refused(name + '-path-too-short', 'inclusion', put(hashes, lambda all_: all_[:-1])(made))
        yield refused(name + '-path-too-long', 'inclusion', put(
            hashes, lambda all_: all_ + [b64(sha256(b'more'))])(made))
        yield refused(name + '-path-empty', 'inclusion', put(hashes, [])(made))
        yield refused(name + '-hash-too-short', 'inclusion', put(
            hashes + '.0', lambda one: b64(base64.b64decode(one)[:31]))(made))
        yield refused(name + '-no-proof', 'inclusion-missing', drop(ENTRY + 'inclusionProof')(made))
        yield refused(name + '-no-checkpoint', 'missing-field', drop(
            ENTRY + 'inclusionProof.checkpoint')(made))
        # The leaf is a leaf: an inner node's two halves are no entry.
        yield refused(name + '-entry-of-another-tree', 'inclusion', put(
            ENTRY + 'inclusionProof', logged(generation, change_body=lambda body: body + b' ')[
                'verificationMaterial']['tlogEntries'][0]['inclusionProof'])(made))
    proof_index = ENTRY + 'inclusionProof.logIndex'
    for name, value, reason in [('beyond', '11', 'inclusion'), ('far-beyond', '9223372036854775807', 'inclusion'),
                                ('other', '5', 'inclusion'), ('negative', '-1', 'tlog-index')]:
        yield refused('proof-index-' + name, reason, put(proof_index, value)(bundle()))
        yield refused('rekor2-index-' + name, reason, put(
            ENTRY + 'logIndex', '13' if name == 'beyond' else value)(bundle(logs=[2])),
            npm_differs='npm uses the index of the proof')
    unauthenticated = 'npm uses the index of the proof'
    yield verified('rekor2-proof-index-ignored', put(proof_index, '3')(bundle(logs=[2])),
                   npm_differs=unauthenticated)
    yield refused('proof-root', 'checkpoint-root', put(
        ENTRY + 'inclusionProof.rootHash', b64(sha256(b'other')))(bundle()),
        npm_differs='npm does not read the root')
    yield refused('proof-size', 'checkpoint-root', put(
        ENTRY + 'inclusionProof.treeSize', '12')(bundle()), npm_differs='npm does not read the size')


def lines():
    """Who signed the tree's head: a signed note may have more signatures than the log's."""
    witness = {'signer': 'witness.test', 'hint': b'abcd', 'signed_by': key('witness')}
    for name, generation in BOTH:
        forged = {'signed_by': Log('x.test', LOGS[generation].key.kind, 1).key}
        for what, some in [
                ('witness-last', [{}, witness]), ('witness-first', [witness, {}]),
                # A key of the log that we do not know yet.
                ('other-hint-too', [{'hint': b'abcd', 'signed_by': key('witness')}, {}])]:
            yield verified(f'{name}-checkpoint-{what}', logged(generation, lines=some))
        for what, reason, some in [
                ('unsigned', 'checkpoint-format', []), ('other-key', 'checkpoint-signature', [forged]),
                ('second-line-bad', 'checkpoint-signature', [{}, forged]),
                ('other-hint', 'checkpoint-signature', [{'hint': b'abcd'}]),
                ('only-witness', 'checkpoint-origin', [witness]),
                ('other-signer', 'checkpoint-origin', [{'signer': 'rekor.stranger.test'}])]:
            yield refused(f'{name}-checkpoint-{what}', reason, logged(generation, lines=some),
                          npm_differs=CHECKPOINTS.get(what, ''))
        for what, change in [
                ('signature-not-base64', lambda text: text[:-9] + '********\n'),
                ('signature-short', lambda text: text + '\u2014 x AAAA\n'),
                ('junk-line', lambda text: text + 'junk\n')]:
            yield refused(f'{name}-checkpoint-{what}', 'checkpoint-format', logged(
                generation, change_lines=change), npm_differs=CHECKPOINTS.get(what, ''))


def line_of(number, value):
    """A note whose line of that number is another; None: is not there."""
    def change(note):
        all_ = note.split('\n')
        all_[number:number + 1] = [] if value is None else [value]
        return '\n'.join(all_)
    return change


def notes():
    """What the tree's head says, over which the log has signed."""
    for name, generation, log in [('rekor1', 1, REKOR1), ('rekor2', 2, REKOR2)]:
        yield verified(name + '-checkpoint-extension', logged(
            generation, change_note=lambda note: note + 'Timestamp: 1\n'))
        for what, reason, change, proof in [
                ('other-root', 'checkpoint-root' if generation == 1 else 'inclusion',
                 line_of(2, b64(sha256(b'other'))), {}),
                ('size-zero', 'inclusion', line_of(1, '0'), {'treeSize': '0'}),
                ('size-smaller', 'inclusion', line_of(1, '5'), {'treeSize': '5'}),
                ('size-larger', 'inclusion', line_of(1, '999'), {'treeSize': '999'}),
                ('no-origin', 'checkpoint-format', line_of(0, ''), {}),
                ('no-size', 'checkpoint-format', line_of(1, None), {}),
                ('no-root', 'checkpoint-format', line_of(2, None), {}),
                ('size-signed', 'checkpoint-format', line_of(1, '+11'), {}),
                ('size-leading-zero', 'checkpoint-format', line_of(1, '011'), {}),
                ('size-hex', 'checkpoint-format', line_of(1, '0x11'), {}),
                ('size-space', 'checkpoint-format', line_of(1, ' 11'), {}),
                ('size-overflow', 'checkpoint-format', line_of(1, '18446744073709551627'), {}),
                ('root-not-base64', 'checkpoint-format', line_of(2, '*' * 44), {}),
                ('root-short', 'checkpoint-format', line_of(2, b64(b'short')), {}),
                ('origin', 'checkpoint-origin', line_of(0, 'rekor.stranger.test - 1'), {})]:
            yield refused(f'{name}-checkpoint-{what}', reason, logged(
                generation, change_note=change, proof=lambda one, new=proof: one | new),
                npm_differs=CHECKPOINTS.get(what, ''))
        for what, reason, change in [
                ('no-blank-line', 'checkpoint-format', lambda text: text.replace('\n\n', '\n')),
                ('no-last-newline', 'checkpoint-format', lambda text: text[:-1]),
                ('empty', 'missing-field', lambda _: ''),
                ('hyphen', 'checkpoint-format', lambda text: text.replace('\u2014', '-')),
                ('text-not-signed', 'checkpoint-signature',
                 lambda text: text.replace('\n\n', '\nTimestamp: 2\n\n')),
                # Another tree of the same log: signed, and not the proof's.
                ('of-another-tree', 'checkpoint-root' if generation == 1 else 'inclusion',
                 lambda _, generation=generation: other_tree(generation))]:
            yield refused(f'{name}-checkpoint-{what}', reason, logged(generation, envelope=change))


def other_tree(generation):
    entry = logged(generation, size=64)['verificationMaterial']['tlogEntries'][0]
    return entry['inclusionProof']['checkpoint']['envelope']


# npm is looser: what it takes there has a good signature of the log all the same.
CHECKPOINTS = dict.fromkeys(('no-origin', 'origin', 'size-signed', 'size-leading-zero', 'size-space', 'junk-line'),
                            'npm finds what it needs in any text')
CHECKPOINTS['second-line-bad'] = 'one good signature is enough for npm'


def dsse(field, value):
    return logged(1, change_spec=put(field, value))


def other_certificate():
    return bundle(subject_key=key('stranger'))['verificationMaterial']['certificate']


def consistency():
    """The entry is about this signature, this key, and these bytes (CVE-2026-22703)."""
    other = b64(key('leaf p256').sign(b'something else'))
    pem = b64(key('stranger').pem)
    digest = sha256(b'something else').hex()
    hashed = 'hashedRekordV002.'
    for name, generation, what, word, field, value in [
            ('dsse-signature', 1, 'dsse', 'signature', 'signatures.0.signature', other),
            ('dsse-key', 1, 'dsse', 'key', 'signatures.0.verifier', pem),
            ('dsse-payload', 1, 'dsse', 'digest', 'payloadHash.value', digest),
            ('intoto-signature', 1, 'intoto', 'signature', 'content.envelope.signatures.0.sig',
             b64(other.encode())),
            ('intoto-key', 1, 'intoto', 'key', 'content.envelope.signatures.0.publicKey', pem),
            ('intoto-payload', 1, 'intoto', 'digest', 'content.payloadHash.value', digest),
            ('record-signature', 1, 'message', 'signature', 'signature.content', other),
            ('record-key', 1, 'message', 'key', 'signature.publicKey.content', pem),
            ('record-digest', 1, 'message', 'digest', 'data.hash.value', digest),
            ('rekor2-signature', 2, 'dsse', '', hashed + 'signature.content', other),
            ('rekor2-key', 2, 'dsse', '', hashed + 'signature.verifier.x509Certificate',
             other_certificate()),
            ('rekor2-digest', 2, 'dsse', '', hashed + 'data.digest', b64(bytes.fromhex(digest))),
            ('rekor2-message-digest', 2, 'message', '', hashed + 'data.digest',
             b64(bytes.fromhex(digest))),
            ('rekor2-details', 2, 'dsse', '', hashed + 'signature.verifier.keyDetails',
             'PKIX_ECDSA_P384_SHA_384')]:
        yield refused('entry-other-' + name, 'tlog-mismatch', logged(
            generation, what, change_spec=put(field, value)), word=word,
            npm_differs=CONSISTENCY if name.endswith(('key', 'details')) else '')
    # The same key's other certificate, as good as the one that was logged: the entry is not about it.
    for name, generation, what in [('dsse', 1, 'dsse'), ('intoto', 1, 'intoto'), ('record', 1, 'message'),
                                   ('rekor2', 2, 'dsse'), ('rekor2-message', 2, 'message')]:
        again = leaf(CA, CT, names=[uri(IDENTITY)], subject_key=key('leaf p256'))
        yield refused('entry-other-certificate-' + name, 'tlog-mismatch', put(
            'verificationMaterial.certificate', raw(again))(logged(generation, what)), word='key',
            npm_differs=CONSISTENCY)
    # An entry of the same signer's other signature, beside the right one.
    other = bundle(payload=canonical(statement(predicate={'n': 1})))['verificationMaterial']['tlogEntries'][0]
    for name, change in [('instead', lambda _: [other]), ('first', lambda right: [
            put('logIndex', '1')(other), *right]), ('last', lambda right: [*right, put('logIndex', '1')(other)])]:
        yield refused('entry-of-another-signature-' + name, 'tlog-mismatch', put(ENTRIES, change)(bundle()))
    yield refused('entry-intoto-single-base64', 'bad-base64', bundle('intoto', logs=[(1, {
        'change_spec': put('content.envelope.signatures.0.sig', lambda twice: base64.b64decode(
            twice).decode())})]))
    for name, field, value in [('algorithm', 'data.hash.algorithm', 'sha512'),
                               ('payload-algorithm', 'payloadHash.algorithm', 'sha512')]:
        yield refused('entry-' + name, 'tlog-mismatch', logged(
            1, 'message' if name == 'algorithm' else 'dsse', change_spec=put(field, value)),
            npm_differs='npm does not read the algorithm')
    yield refused('entry-two-signatures', 'tlog-mismatch', logged(
        1, change_spec=put('signatures', lambda one: one * 2)))
    yield refused('entry-no-signatures', 'tlog-mismatch', logged(1, change_spec=put('signatures', [])))
    # Text around the certificate is no part of it.
    yield verified('entry-pem-other-text', logged(1, change_spec=put(
        'signatures.0.verifier', lambda good: b64(b'words\n' + base64.b64decode(good).replace(b'\n', b'\r\n')))))
    kind = ENTRY + 'kindVersion.'
    for name, made in [
            ('other-kind', put(kind + 'kind', 'hashedrekord')(bundle())),
            ('other-version', put(kind + 'version', '0.0.2')(bundle())),
            ('body-other-kind', logged(1, change_body=lambda body: body.replace(b'"dsse"', b'"tuf"'))),
            ('body-other-version', logged(1, change_body=lambda body: body.replace(b'0.0.1', b'0.0.3'))),
            ('unknown-kind', bundle(logs=[(1, {
                'change_body': lambda body: body.replace(b'"dsse"', b'"tuf"'),
                'entry': put('kindVersion.kind', 'tuf')})])),
            ('rekor2-dsse', bundle(logs=[(2, {
                'change_body': lambda body: body.replace(b'"hashedrekord"', b'"dsse"'),
                'entry': put('kindVersion.kind', 'dsse')})])),
            ('message-as-dsse', bundle('message', logs=[(1, {
                'change_body': lambda body: body.replace(b'"hashedrekord"', b'"dsse"'),
                'entry': put('kindVersion.kind', 'dsse')})]))]:
        yield refused('entry-' + name, 'tlog-kind', made)
    yield refused('entry-body-not-json', 'parse', logged(1, change_body=lambda _: b'no json'))
    yield refused('entry-body-trailing', 'parse', logged(1, change_body=lambda body: body + b'{}'))
    yield refused('entry-body-duplicate-key', 'duplicate-key', logged(
        1, change_body=lambda body: body.replace(b'"kind":', b'"kind":"x","kind":')),
        npm_differs='npm reads JSON as JavaScript does')
    yield refused('rekor2-body-other-than-rebuilt', 'tlog-mismatch', logged(
        2, change_body=lambda body: body + b' '), npm_differs='npm hashes what is shown')
    yield refused('entry-body-missing', 'missing-field', drop(ENTRY + 'canonicalizedBody')(bundle(logs=[2])))


CONSISTENCY = 'npm does not compare the key that was logged'


def cases():
    for family in (logs, promises, proofs, lines, notes, consistency):
        yield from family()
