"""Whom to believe: trusted_root.json, which is the user's and still may be wrong."""
import json

from case import drop, put, refused, text, verified
from keys import key
from logs import Log, b64
from signing import bundle, certificate_log, trusted_root

GOOD = bundle()
MEDIA = 'application/vnd.dev.sigstore.trustedroot'


def rooted(*changes):
    root = trusted_root()
    for change in changes:
        root = change(root)
    return root


def lines(*roots):
    return ''.join(json.dumps(root) + '\n' for root in roots)


def good():
    for name, media in [('v0.1-parameter', '+json;version=0.1'), ('v0.1', '.v0.1+json'),
                        ('v0.2', '.v0.2+json')]:
        yield verified('root-' + name, GOOD, root=trusted_root(mediaType=MEDIA + media))
    yield verified('root-null-end', GOOD, root=rooted(put('tlogs.0.publicKey.validFor', lambda window: window | {
        'end': None})))
    yield verified('root-authority-without-window', GOOD, root=rooted(
        drop('certificateAuthorities.0.validFor'), drop('timestampAuthorities.0.validFor')))
    yield verified('root-future-log', GOOD, root=rooted(put(
        'tlogs.1.publicKey.validFor.start', '2036-01-01T00:00:00Z')))
    yield verified('root-operator', GOOD, root=rooted(
        put('tlogs.0', lambda log: log | {'operator': 'o'}), put('mediaType', MEDIA + '.v0.2+json')))
    # A log of the second generation is known by its address, which its checkpoints have.
    yield verified('root-rekor1-without-address', GOOD, root=rooted(drop('tlogs.0.baseUrl')), npm_reads=False)
    yield refused('root-rekor2-without-address', 'checkpoint-origin', bundle(logs=[2]), root=rooted(
        drop('tlogs.1.baseUrl')), npm_reads=False)
    own = trusted_root(tlogs=[Log('rekor.own.test', 'p256', 1).in_root()])
    for name, some in [('first', [trusted_root(), own]), ('last', [own, trusted_root()])]:
        yield verified('root-lines-' + name, GOOD, root=lines(*some), npm_reads=False)
    # One instance's certificate in another's log is in none.
    yield refused('root-lines-mixed', 'chain', GOOD, root=lines(
        own, trusted_root(certificateAuthorities=[])), npm_reads=False)
    rsa = key('rsa', 'rsa2048')
    staging = certificate_log(rsa)
    staging['publicKey'] |= {'rawBytes': b64(rsa.pkcs1), 'keyDetails': 'PKCS1_RSA_PKCS1V5'}
    yield verified('root-pkcs1', bundle(scts=[{'log': rsa}]), root=trusted_root(ctlogs=[staging]))


def malformed():
    for case in malformations():
        case.exit = 65  # A malformed input of the user's, not a bad signature.
        yield case
    # Keys are read when they are needed.
    yield refused('root-key-garbage', 'trust-root', GOOD, root=rooted(
        put('tlogs.0.publicKey.rawBytes', b64(b'garbage'))), npm_reads=False)


def malformations():
    window = 'publicKey.validFor'
    for name, change in [
            # proto3 writes UTC only.
            ('time-with-zone', put(f'tlogs.0.{window}.start', '2026-01-01T00:00:00+02:00')),
            ('ends-before-start', put(f'tlogs.0.{window}.end', '2025-01-01T00:00:00Z')),
            ('bad-time', put(f'tlogs.0.{window}.start', 'yesterday')),
            ('time-of-day-25', put(f'tlogs.0.{window}.start', '2026-01-01T25:00:00Z')),
            ('time-without-zone', put(f'tlogs.0.{window}.start', '2026-01-01T00:00:00')),
            ('february-30', put(f'tlogs.0.{window}.start', '2026-02-30T00:00:00Z')),
            ('log-no-start', drop(f'tlogs.0.{window}.start')), ('log-no-window', drop(f'tlogs.0.{window}')),
            ('log-null-start', put(f'tlogs.0.{window}.start', None)),
            ('unused-log-no-start', drop(f'tlogs.1.{window}.start')),
            ('ctlog-no-start', drop(f'ctlogs.0.{window}.start'))]:
        yield refused('root-' + name, 'trust-root-validity', GOOD, root=rooted(change),
                      npm_differs='' if name in ('ends-before-start', 'bad-time', 'time-of-day-25')
                      else 'npm takes a missing start for the beginning of time')
    log, authority_ = 'tlogs.0.', 'certificateAuthorities.0.certChain.certificates'
    for name, reason, change in [
            ('media-type', 'trust-root', put('mediaType', MEDIA + '+json;version=0.9')),
            ('no-media-type', 'missing-field', drop('mediaType')),
            ('unknown-field', 'unknown-field', lambda root: root | {'extra': []}),
            ('log-hash', 'trust-root', put(log + 'hashAlgorithm', 'SHA2_512')),
            ('key-bad-base64', 'bad-base64', put(log + 'publicKey.rawBytes', '****')),
            ('no-key', 'missing-field', drop(log + 'publicKey')),
            ('no-log-id', 'missing-field', drop(log + 'logId')),
            ('log-twice', 'trust-root', put('tlogs', lambda logs: logs * 2)),
            ('certificate-garbage', 'trust-root', put(authority_ + '.0.rawBytes', b64(b'garbage'))),
            ('no-chain', 'missing-field', drop('certificateAuthorities.0.certChain')),
            ('empty-chain', 'trust-root', put(authority_, [])),
            ('tsa-empty-chain', 'trust-root', put('timestampAuthorities.0.certChain.certificates', []))]:
        yield refused('root-' + name, reason, GOOD, root=rooted(change), npm_reads=False)
    # A key of a kind that is not known yet is a log that nobody believes, and no reason to believe none.
    yield verified('root-unused-key-of-unknown-kind', GOOD, root=rooted(
        put('tlogs.1.publicKey.keyDetails', 'ML_DSA_65')), npm_reads=False)
    whole = json.dumps(trusted_root())
    for name, reason, root in [
            ('truncated', 'parse', whole[:-1]), ('trailing', 'parse', whole + 'x'), ('empty', 'parse', ''),
            ('array', 'parse', '[]'), ('second-line-bad', 'missing-field', whole + '\n{}\n'),
            ('duplicate-key', 'duplicate-key', text(trusted_root(), '"tlogs"', '"tlogs": [], "tlogs"'))]:
        yield refused('root-' + name, reason, GOOD, root=root, npm_reads=False)


def private():
    """Roots of one's own."""
    own = Log('rekor.own.test', 'p256', 1)
    root = trusted_root(tlogs=[own.in_root()])
    yield verified('root-own', bundle(logs=[own]), root=root)
    yield refused('root-own-for-public', 'tlog-none', GOOD, root=root)
    yield refused('root-of-somebody-else', 'tlog-none', GOOD, root=None, npm_reads=False)


def cases():
    for family in (good, malformed, private):
        yield from family()
