"""Transparency logs: Rekor's two generations, with trees, checkpoints and promises."""
import base64
import json

import der
from der import NOON
from keys import key, sha256


def b64(data):
    return base64.b64encode(data).decode()


def canonical(value):
    """RFC 8785, for what has no floating point numbers."""
    return json.dumps(value, sort_keys=True, separators=(',', ':'), ensure_ascii=False).encode()


def unchanged(value):
    return value


def leaf_hash(data):
    return sha256(b'\0' + data)


def tree_hash(leaves):
    """RFC 6962 2.1."""
    if len(leaves) == 1:
        return leaves[0]
    half = 1 << (len(leaves) - 1).bit_length() - 1
    return sha256(b'\1' + tree_hash(leaves[:half]) + tree_hash(leaves[half:]))


def audit_path(index, leaves):
    """RFC 6962 2.1.1."""
    if len(leaves) == 1:
        return []
    half = 1 << (len(leaves) - 1).bit_length() - 1
    if index < half:
        return audit_path(index, leaves[:half]) + [tree_hash(leaves[half:])]
    return audit_path(index - half, leaves[half:]) + [tree_hash(leaves[:half])]


class Log:
    """A log of either generation. Its `entry` has a hook for each layer: what a hook returns is what
    the layers above it hash and sign."""

    def __init__(self, host, kind, generation):
        self.host, self.generation, self.key = host, generation, key(host, kind)
        self.origin = host if generation == 2 else f'{host} - 1193050959916656506'
        self.signer = host
        if generation == 1 or kind.startswith('p'):
            self.id = sha256(self.key.spki)
        elif kind == 'ed25519':
            self.id = sha256(host.encode() + b'\n\x01' + self.key.raw)
        else:
            self.id = sha256(host.encode() + b'\n\xffPKIX-RSA-PKCS#1v1.5' + self.key.spki)
        self.hint = self.id[:4]

    def in_root(self, start=None, end=None):
        """TransparencyLogInstance of sigstore_trustroot.proto."""
        window = {'start': start or '2026-01-01T00:00:00Z', **({'end': end} if end else {})}
        return {'baseUrl': 'https://' + self.host, 'hashAlgorithm': 'SHA2_256',
                'publicKey': {'rawBytes': b64(self.key.spki), 'keyDetails': self.key.details,
                              'validFor': window},
                'logId': {'keyId': b64(self.id)}}

    def note_line(self, text, signer=None, hint=None, signed_by=None):
        """One signature of a note, https://c2sp.org/signed-note."""
        signature = (signed_by or self.key).sign(text.encode(), 'sha256')
        return f'\u2014 {signer or self.signer} ' + b64((hint or self.hint) + signature) + '\n'

    def entry(self, kind, version, spec, time=NOON, size=None, index=None, change_spec=unchanged,
              change_body=unchanged, promised=unchanged, promised_by=None, change_note=unchanged,
              change_lines=unchanged, lines=({},), envelope=unchanged, proof=unchanged,
              promise=None, entry=unchanged):
        """TransparencyLogEntry of sigstore_rekor.proto for a body of `kind` and `version`.

        Hooks, lowest layer first: `change_spec` and `change_body` make what is logged; `promised` what
        the promise signs (`promised_by`: another key); `change_note` the text of the checkpoint, each
        of `lines` one signature of it (see `note_line`), `change_lines` their text, `envelope` the
        whole note; `proof` and `entry` the parts of the result, signed by nobody."""
        size = size or (11 if self.generation == 1 else 13)
        index = min(6, size - 1) if index is None else index
        body = change_body(canonical({'apiVersion': version, 'kind': kind, 'spec': change_spec(spec)}))
        leaves = [leaf_hash(b'filler%d' % i) for i in range(size)]
        leaves[index] = leaf_hash(body)
        root = tree_hash(leaves)
        note = change_note(f'{self.origin}\n{size}\n{b64(root)}\n')
        signatures = change_lines(''.join(self.note_line(note, **line) for line in lines))
        result = {
            'logIndex': str(index), 'logId': {'keyId': b64(self.id)},
            'kindVersion': {'kind': kind, 'version': version}, 'canonicalizedBody': b64(body),
            'inclusionProof': proof({
                'logIndex': str(index), 'rootHash': b64(root), 'treeSize': str(size),
                'hashes': [b64(step) for step in audit_path(index, leaves)],
                'checkpoint': {'envelope': envelope(note + '\n' + signatures)}})}
        if promise is None:
            promise = self.generation == 1
        if self.generation == 1:
            result |= {'logIndex': str(1000 + index), 'integratedTime': str(der.unix(time))}
        if promise:
            signed = canonical(promised({
                'body': b64(body), 'integratedTime': der.unix(time), 'logID': self.id.hex(),
                'logIndex': int(result['logIndex'])}))
            result['inclusionPromise'] = {
                'signedEntryTimestamp': b64((promised_by or self.key).sign(signed, 'sha256'))}
        return entry(result)
