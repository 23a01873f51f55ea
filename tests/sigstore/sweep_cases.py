"""Every field of a good bundle, changed or left out: all that is in it matters, but for what the tables
below name. What the tables of the other files miss shows here."""
import base64
import binascii
import dataclasses
import json

from case import drop, put, refused, verified
from certificates import leaf, uri
from logs import b64
from signing import CA, CT, IDENTITY, TSA, bundle, legacy, with_chain

MATERIAL = 'verificationMaterial.'
PROOF = MATERIAL + 'tlogEntries.0.inclusionProof.'
STAMPS = MATERIAL + 'timestampVerificationData'

# Left out, the rest is still enough.
SPARE = {
    'rekor1': {
        # The log's promise and the timestamp both say when.
        MATERIAL + 'tlogEntries.0.inclusionPromise', STAMPS, STAMPS + '.rfc3161Timestamps',
        STAMPS + '.rfc3161Timestamps.0'},
    # A claim about what is verified anyway.
    'message': {'messageSignature.messageDigest'},
    'chain': {MATERIAL + 'x509CertificateChain.certificates.1'},
}
SPARE['message'] |= SPARE['rekor1']
SPARE['chain'] |= SPARE['rekor1']
# Of the second generation, whose checkpoint says all this, signed: rekor-tiles' CLIENTS.md.
SPARE['rekor2'] = {PROOF + 'logIndex', PROOF + 'rootHash', PROOF + 'treeSize'}


# A certificate that is only a hint.
HINT = MATERIAL + 'x509CertificateChain.certificates.1.rawBytes'


def fields(document, path=''):
    """(path, value) of every member and element, containers included."""
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for name, value in items:
        place = f'{path}{name}'
        yield place, value
        if isinstance(value, (dict, list)):
            yield from fields(value, place + '.')


def flipped(data):
    """`data` with a bit of its first, middle or last byte changed."""
    for at in sorted({0, len(data) // 2, len(data) - 1}):
        yield bytes([*data[:at], data[at] ^ 1, *data[at + 1:]])


def altered(value):
    if value.isdigit():
        yield str(int(value) + 1)
        return
    try:
        data = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        data = b''
    if data:
        yield from map(b64, flipped(data))
    else:
        yield value + 'x'


def every_field():
    for name, made in [('rekor1', bundle()), ('rekor2', bundle(logs=[2])), ('message', bundle('message')),
                       ('chain', with_chain(bundle('intoto'), CA))]:
        for path, value in fields(made):
            spare = path in SPARE[name]
            yield (verified if spare else refused)(
                f'without-{name}-{path}', *([] if spare else ['']), drop(path)(made), npm_reads=False)
            if not isinstance(value, str):
                continue
            ignored = spare and name == 'rekor2' or path == HINT
            for number, other in enumerate(altered(value)):
                if path == HINT and number == 0:
                    continue  # No certificate at all, rather than a useless one.
                yield (verified if ignored else refused)(
                    f'altered-{name}-{path}-{number}', *([] if ignored else ['']), put(path, other)(made),
                    npm_reads=False)


def every_byte_of_a_timestamp():
    path = STAMPS + '.rfc3161Timestamps.0.signedTimestamp'
    made = bundle(logs=[2])
    token = base64.b64decode(made['verificationMaterial']['timestampVerificationData'][
        'rfc3161Timestamps'][0]['signedTimestamp'])
    # Nobody signs the version of the signer's structure, nor the name of the algorithm, which the key decides.
    algorithm = token.index(TSA.key.algorithm('sha256'))
    unsigned = {token.index(TSA.issuer) - 3, *range(algorithm + 4, algorithm + 12)}
    for at in range(0, len(token), 3):
        changed = put(path, b64(bytes([*token[:at], token[at] ^ 1, *token[at + 1:]])))(made)
        name = f'altered-timestamp-byte-{at}'
        yield (verified(name, changed, npm_reads=False) if at in unsigned
               else refused(name, '', changed, npm_reads=False))


def every_byte_of_a_certificate():
    """Logged and stamped as it is shown: only its own signature and its log's promise tell."""
    good = leaf(CA, CT, names=[uri(IDENTITY)])
    for at in range(0, len(good.der), 8):
        changed = dataclasses.replace(good, der=bytes([*good.der[:at], good.der[at] ^ 1, *good.der[at + 1:]]))
        yield refused(f'altered-certificate-byte-{at}', '', bundle(certificate=good, shown=changed),
                      npm_reads=False)


def every_field_of_a_layer():
    good = legacy()
    spare = {'chain', 'rfc3161timestamp'}
    for name, value in good['annotations'].items():
        short = name.rsplit('/', 1)[1]
        without = good | {'annotations': {other: text for other, text in good['annotations'].items()
                                          if other != name}}
        yield (verified if short in spare else refused)(
            'layer-without-' + short, *([] if short in spare else ['']), without, legacy=True, npm_reads=False)
        if short in ('chain', 'certificate', 'signature'):
            continue
        for path, inner in fields(json.loads(value)):
            changes = [drop(path)]
            if isinstance(inner, str):
                changes += [put(path, other) for other in altered(inner)]
            elif isinstance(inner, int):
                changes.append(put(path, inner + 1))
            for number, change in enumerate(changes):
                yield refused(f'layer-altered-{short}-{path}-{number}', '', good | {
                    'annotations': good['annotations'] | {name: json.dumps(change(json.loads(value)))}},
                    legacy=True, npm_reads=False)


def cases():
    for family in (every_field, every_byte_of_a_timestamp, every_byte_of_a_certificate, every_field_of_a_layer):
        yield from family()
