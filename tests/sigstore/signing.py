"""What a signer, a certificate authority, a log and a timestamp authority make together: bundles,
legacy layers and the trusted root that believes them. A case changes one field of one layer; every
layer above is signed over the changed one, so that nothing else is wrong."""
import hashlib
import json

from certificates import CODE_SIGNING, authority, leaf, timestamp, timestamper, uri
from keys import key, sha256
from logs import Log, b64, canonical, unchanged

ARTIFACT = b'what is signed\n'
DIGEST = sha256(ARTIFACT).hex()
IDENTITY = 'https://github.com/o/r/.github/workflows/w.yml@refs/heads/main'
ISSUER = 'https://issuer.test'
MEDIA_TYPE = 'application/vnd.dev.sigstore.bundle.v0.3+json'
IN_TOTO = 'application/vnd.in-toto+json'
SIGN = 'https://sigstore.dev/cosign/sign/v1'
START = '2026-01-01T00:00:00Z'

ROOT = authority('root')
CA = authority('intermediate', issuer=ROOT, path_length=0, extended=(CODE_SIGNING,))
TSA_ROOT = authority('tsa root')
TSA = timestamper(issuer=TSA_ROOT)
CT = key('certificate log')
REKOR1 = Log('rekor.fixture.test', 'p256', 1)
REKOR2 = Log('log2026-1.rekor.fixture.test', 'ed25519', 2)
LOGS = {1: REKOR1, 2: REKOR2}

# A public key infrastructure that nobody trusts, with the same names.
OTHER_ROOT = authority('root', subject_key=key('other root'))
OTHER_CA = authority('intermediate', issuer=OTHER_ROOT, path_length=0, extended=(CODE_SIGNING,),
                     subject_key=key('other intermediate'))


def raw(certificate):
    return {'rawBytes': b64(certificate.der)}


def chain(certificates_, start=START, end=None):
    """CertificateAuthority of sigstore_trustroot.proto."""
    window = {'start': start, **({'end': end} if end else {})}
    return {'subject': {'organization': 'fixture', 'commonName': 'fixture'},
            'uri': 'https://authority.test', 'validFor': window,
            'certChain': {'certificates': [raw(one) for one in certificates_]}}


def certificate_log(log_key=CT, start=START, end=None):
    return {'baseUrl': 'https://ct.test', 'hashAlgorithm': 'SHA2_256',
            'publicKey': {'rawBytes': b64(log_key.spki), 'keyDetails': log_key.details,
                          'validFor': {'start': start, **({'end': end} if end else {})}},
            'logId': {'keyId': b64(sha256(log_key.spki))}}


def trusted_root(**changes):
    return {'mediaType': 'application/vnd.dev.sigstore.trustedroot+json;version=0.1',
            'tlogs': [REKOR1.in_root(), REKOR2.in_root()],
            'certificateAuthorities': [chain([CA, ROOT])], 'ctlogs': [certificate_log()],
            'timestampAuthorities': [chain([TSA, TSA_ROOT])], **changes}


def statement(**changes):
    return {'_type': 'https://in-toto.io/Statement/v1', 'subject': [{'digest': {'sha256': DIGEST}}],
            'predicateType': SIGN, 'predicate': {}, **changes}


def pae(payload, payload_type):
    kind = payload_type.encode()
    return b'DSSEv1 %d %s %d %s' % (len(kind), kind, len(payload), payload)


def entry_of(log, what, hash_name, content, **hooks):
    """What `log` keeps of a signature: `content` has `signed` (the bytes), `payload` (a DSSE one),
    `signature`, `key` and `certificate` (None for a bare key)."""
    pem = content['certificate'].pem if content['certificate'] else content['key'].pem
    signature = content['signature']
    if log.generation == 2:
        verifier = {'keyDetails': content['key'].details}
        verifier |= ({'x509Certificate': raw(content['certificate'])} if content['certificate']
                     else {'publicKey': {'rawBytes': b64(content['key'].spki)}})
        data = {'algorithm': 'SHA2_' + hash_name[3:],
                'digest': b64(hashlib.new(hash_name, content['signed']).digest())}
        return log.entry('hashedrekord', '0.0.2', {'hashedRekordV002': {
            'data': data, 'signature': {'content': b64(signature), 'verifier': verifier}}}, **hooks)
    payload_hash = {'algorithm': 'sha256', 'value': sha256(content['payload'] or b'').hex()}
    if what == 'old intoto':
        return log.entry('intoto', '0.0.1', {
            'content': {'hash': {'algorithm': 'sha256', 'value': sha256(content['envelope']).hex()}},
            'publicKey': b64(pem)}, **hooks)
    if what == 'dsse':
        return log.entry('dsse', '0.0.1', {
            'envelopeHash': {'algorithm': 'sha256', 'value': '0' * 64}, 'payloadHash': payload_hash,
            'signatures': [{'signature': b64(signature), 'verifier': b64(pem)}]}, **hooks)
    if what == 'intoto':
        return log.entry('intoto', '0.0.2', {'content': {
            'envelope': {'payloadType': IN_TOTO, 'signatures': [
                {'sig': b64(b64(signature).encode()), 'publicKey': b64(pem)}]},
            'hash': {'algorithm': 'sha256', 'value': '0' * 64}, 'payloadHash': payload_hash}}, **hooks)
    return log.entry('hashedrekord', '0.0.1', {
        'data': {'hash': {'algorithm': hash_name,
                          'value': hashlib.new(hash_name, content['signed']).hexdigest()}},
        'signature': {'content': b64(signature), 'publicKey': {'content': b64(pem)}}}, **hooks)


def bundle(what='dsse', logs=(1,), stamps=({},), certificate=None, managed=None, kind='p256',
           hash_name=None, payload=None, payload_type=IN_TOTO, signed_type=None, signature=unchanged,
           shown=None, change=unchanged, stamp_over=None, artifact=ARTIFACT, **leaf_changes):
    """A bundle of v0.3 (as a dict). `what`: dsse, intoto (the same, logged as Rekor once did) or
    message. `logs`: 1 or 2 for each entry, or (1 or 2 or a Log, hooks of Log.entry). `stamps`: for each
    timestamp, what differs (see certificates.timestamp). `managed`: the bare key that signs. The rest
    is about the certificate, see certificates.leaf; `certificate`: a ready one instead; `shown`: one
    that the bundle shows where another signed. `signature` changes the signature before it is logged
    and stamped, `change` the finished bundle."""
    signer = managed or (certificate.key if certificate else key('leaf ' + kind, kind))
    if not managed and not certificate:
        options = {'names': [uri(IDENTITY)], 'issuer': CA, 'ct_log': CT, 'subject_key': signer}
        certificate = leaf(**options | leaf_changes)
    hash_name = hash_name or ('sha256' if what == 'message' else signer.hash)
    payload = canonical(statement()) if payload is None and what != 'message' else payload
    signed = artifact if what == 'message' else pae(payload, signed_type or payload_type)
    made = signature(signer.sign(signed, hash_name))
    shown = shown or certificate
    content = {'signed': signed, 'payload': payload, 'signature': made, 'key': signer,
               'certificate': None if managed else shown}
    entries = []
    for log in logs:
        log, hooks = log if isinstance(log, tuple) else (log, {})
        entries.append(entry_of(LOGS.get(log, log), what, hash_name, content, **hooks))
    material = {'certificate': raw(shown)} if not managed else {'publicKey': {'hint': 'a hint'}}
    material['tlogEntries'] = entries
    if stamps:
        tokens = [timestamp(stamp_over or made, **{'authority_': TSA, **one}) for one in stamps]
        material['timestampVerificationData'] = {
            'rfc3161Timestamps': [{'signedTimestamp': b64(token)} for token in tokens]}
    result = {'mediaType': MEDIA_TYPE, 'verificationMaterial': material}
    if what == 'message':
        result['messageSignature'] = {
            'messageDigest': {'algorithm': 'SHA2_' + hash_name[3:],
                              'digest': b64(hashlib.new(hash_name, artifact).digest())},
            'signature': b64(made)}
    else:
        result['dsseEnvelope'] = {'payload': b64(payload), 'payloadType': payload_type,
                                  'signatures': [{'sig': b64(made)}]}
    return change(result)


def with_chain(made, *more):
    """The bundle as of v0.2, with hints of a chain."""
    material = dict(made['verificationMaterial'])
    material['x509CertificateChain'] = {'certificates': [material.pop('certificate'), *map(raw, more)]}
    return made | {'mediaType': 'application/vnd.dev.sigstore.bundle+json;version=0.2',
                   'verificationMaterial': material}


PREFIX = {'signature': 'dev.cosignproject.cosign/', 'certificate': 'dev.sigstore.cosign/',
          'chain': 'dev.sigstore.cosign/', 'bundle': 'dev.sigstore.cosign/',
          'rfc3161timestamp': 'dev.sigstore.cosign/'}


def simple_signing(**changes):
    return {'critical': {'identity': {'docker-reference': 'registry.test/app'},
                         'image': {'docker-manifest-digest': 'sha256:' + DIGEST},
                         'type': 'cosign container image signature'}, 'optional': None, **changes}


def legacy(payload=None, managed=None, log={}, stamp={}, shown_chain=(CA, ROOT), certificate=None,
           signature=unchanged, rekor_bundle=unchanged, change=unchanged, kind='p256', dsse=None,
           stamp_signature=False, payload_type=IN_TOTO, hash_name='sha256',
           logged_as=None, **leaf_changes):
    """One layer of cosign's tag format, as `verify-bundle --legacy-layer` reads it. `log`: hooks of
    Log.entry, None for no entry; `stamp`: changes of the timestamp, None for none; `rekor_bundle`
    changes the log's annotation before it is text, `change` the finished layer. `dsse`: a statement to
    attest instead; its timestamp is over the whole envelope, unless `stamp_signature`."""
    signer = managed or (certificate.key if certificate else key('leaf ' + kind, kind))
    if not managed and not certificate:
        options = {'names': [uri(IDENTITY)], 'issuer': CA, 'ct_log': CT, 'subject_key': signer}
        certificate = leaf(**options | leaf_changes)
    payload = canonical(simple_signing()) if payload is None else payload
    signed = pae(dsse, payload_type) if dsse else payload
    made = signature(signer.sign(signed, hash_name))
    if dsse:
        payload = canonical({'payload': b64(dsse), 'payloadType': payload_type,
                             'signatures': [{'keyid': '', 'sig': b64(made)}]})
    annotations = {'signature': '' if dsse else b64(made)}
    if certificate:
        annotations['certificate'] = certificate.pem.decode()
        annotations['chain'] = b''.join(one.pem for one in shown_chain).decode()
    if log is not None:
        entry = entry_of(REKOR1, logged_as or ('dsse' if dsse else 'hashedrekord'), hash_name, {
            'signed': signed, 'payload': dsse, 'envelope': payload, 'signature': made, 'key': signer,
            'certificate': certificate}, **log)
        annotations['bundle'] = json.dumps(rekor_bundle({
            'SignedEntryTimestamp': entry['inclusionPromise']['signedEntryTimestamp'],
            'Payload': {'body': entry['canonicalizedBody'],
                        'integratedTime': int(entry['integratedTime']),
                        'logIndex': int(entry['logIndex']), 'logID': REKOR1.id.hex()}}))
    if stamp is not None:
        token = timestamp(payload if dsse and not stamp_signature else made, **{'authority_': TSA, **stamp})
        annotations['rfc3161timestamp'] = json.dumps({'SignedRFC3161Timestamp': b64(token)})
    return change({'payload': b64(payload), 'annotations': {
        PREFIX[name] + name: value for name, value in annotations.items()}})
