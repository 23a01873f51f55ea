"""Who may sign: the certificate, its chain, the log that saw it, and the identity it gives."""
import base64

import der
from case import put, refused, verified
from certificates import (ALTERNATIVE_NAME, BASIC_CONSTRAINTS, CODE_SIGNING, DIGITAL_SIGNATURE,
                          EXTENDED_USAGE, FULCIO, KEY_USAGE, NAME_CONSTRAINTS, SCT_LIST, SERVER, authority,
                          basic_constraints, email, issue, leaf, sct_list, uri, usages, user_name)
from der import DAY, MINUTE, NOON, SECOND
from keys import key
from signing import (CA, CT, IDENTITY, ISSUER, OTHER_CA, OTHER_ROOT, ROOT, bundle, certificate_log, chain,
                     trusted_root, with_chain)

SELF_SIGNED = 'npm wants a self-signed anchor'
NPM_PKCS1 = 'npm reads every RSA key as PKCS#1'
STRICT_CHAIN = 'npm does not look at it'


def believing(*chains, **rest):
    return trusted_root(certificateAuthorities=[chain(one) for one in chains], **rest)


def signed_by(*chain_, **rest):
    """A case's bundle and root where `chain_`, nearest first, issued the certificate."""
    return {'document': bundle(issuer=chain_[0], **rest), 'root': believing(chain_)}


def chains():
    tall = authority('tall root', path_length=3)
    middle = authority('middle', issuer=tall, path_length=2, extended=(CODE_SIGNING,))
    low = authority('low', issuer=middle, path_length=0)
    yield verified('chain-of-four', **signed_by(low, middle, tall))
    yield verified('chain-root-only', **signed_by(ROOT))
    yield verified('chain-anchor-is-intermediate', **signed_by(CA), npm_differs=SELF_SIGNED)
    p384 = authority('root384', 'p384')
    yield verified('chain-p384', **signed_by(authority('below384', issuer=p384, path_length=0), p384))
    yield verified('chain-p384-intermediate', **signed_by(
        authority('i384', 'p384', ROOT, 0), ROOT))
    rsa_root = authority('rsa root', subject_key=key('rsa', 'rsa2048'))
    yield verified('chain-rsa', **signed_by(authority('below rsa', issuer=rsa_root), rsa_root))
    rsa_issuer = authority('rsa issuer', issuer=ROOT, subject_key=key('rsa', 'rsa2048'))
    yield verified('chain-rsa-issuer', **signed_by(rsa_issuer, ROOT))
    yield verified('authority-second', bundle(), root=believing([OTHER_CA, OTHER_ROOT], [CA, ROOT]))
    yield verified('authority-renewed', bundle(), root=trusted_root(certificateAuthorities=[
        chain([CA, ROOT], end='2026-02-01T00:00:00Z'), chain([CA, ROOT])]))
    yield refused('chain-stranger', 'chain', bundle(issuer=OTHER_CA))
    yield refused('chain-no-authorities', 'chain', bundle(), root=trusted_root(certificateAuthorities=[]))
    # The same names and key identifiers; only the signature tells.
    yield refused('chain-leaf-signature', 'chain', bundle(signed_by=OTHER_CA.key))
    forged = authority('intermediate', issuer=ROOT, path_length=0, signed_by=OTHER_ROOT.key)
    yield refused('chain-intermediate-signature', 'chain', **signed_by(forged, ROOT))
    short = authority('short', issuer=middle, path_length=0)
    below = authority('below', issuer=short, path_length=0)
    yield refused('chain-path-length', 'chain', **signed_by(below, short, middle, tall))
    plain = leaf(CA, CT, names=[uri(IDENTITY)], subject='not a ca', subject_key=key('not a ca'))
    yield refused('chain-issuer-is-no-ca', 'chain', **signed_by(plain, CA, ROOT))
    signs_nothing = issue('signs nothing', key('signs nothing'), ROOT, [
        (BASIC_CONSTRAINTS, basic_constraints(True), True), (KEY_USAGE, DIGITAL_SIGNATURE, True)])
    yield refused('chain-issuer-may-not-sign', 'chain', **signed_by(signs_nothing, ROOT))
    yield refused('chain-sha1', 'chain', bundle(digest='sha1'))
    yield refused('chain-leaf-is-the-anchor', 'bad-certificate', **anchored_in_itself())
    for name, kind, limit, outside, inside in [
            ('uri', uri, '.other.test', 'https://github.test/x', 'https://a.other.test/x'),
            ('email', email, 'other.test', 'dev@example.test', 'dev@other.test')]:
        limits = der.sequence(der.explicit(0, der.sequence(kind(limit))))
        narrow = authority('narrow ' + name, issuer=ROOT, path_length=0,
                           extra=[(NAME_CONSTRAINTS, limits, True)])
        yield refused('name-constraints-' + name, 'chain', **signed_by(narrow, ROOT, names=[kind(outside)]),
                      identity=outside, npm_differs=STRICT_CHAIN)
        yield verified('name-constraints-met-' + name, **signed_by(narrow, ROOT, names=[kind(inside)]),
                       identity=inside)
    yield refused('critical-unknown-extension', 'chain', bundle(extra=[('1.2.3.4', der.null(), True)]),
                  npm_differs=STRICT_CHAIN)
    yield verified('unknown-extension', bundle(extra=[('1.2.3.4', der.null())]))
    odd = authority('odd', issuer=ROOT, path_length=0, extra=[('1.2.3.4', der.null(), True)])
    yield refused('critical-unknown-in-intermediate', 'chain', **signed_by(odd, ROOT),
                  npm_differs=STRICT_CHAIN)
    servers = authority('servers', issuer=ROOT, path_length=0, extended=(SERVER,))
    yield refused('intermediate-for-servers', 'eku', **signed_by(servers, ROOT), npm_differs=STRICT_CHAIN)
    yield refused('bundle-intermediate-of-stranger', 'chain', with_chain(
        bundle(issuer=OTHER_CA), OTHER_CA))
    # What the bundle brings is no part of a path, were it ever so good: the root has all that counts.
    yield refused('bundle-intermediate-is-not-used', 'chain', with_chain(bundle(), CA), root=believing([ROOT]))


def anchored_in_itself():
    one = leaf(CA, CT, names=[uri(IDENTITY)])
    return {'document': bundle(certificate=one), 'root': believing([one])}


# The same extension twice: whoever reads the first and whoever reads the last would differ.
TWICE = {'eku': 'eku', 'san': 'chain', 'basic-constraints': 'chain'}


def usage():
    yield refused('eku-missing', 'eku', bundle(extended=()), npm_differs=STRICT_CHAIN)
    yield refused('eku-server', 'eku', bundle(extended=(SERVER,)), npm_differs=STRICT_CHAIN)
    yield refused('eku-any', 'eku', bundle(extended=('2.5.29.37.0',)), npm_differs=STRICT_CHAIN)
    yield verified('eku-several', bundle(extended=(SERVER, CODE_SIGNING)))
    yield refused('leaf-is-ca', 'bad-certificate', bundle(ca=True), npm_differs=STRICT_CHAIN)
    for name, again in [('eku', (EXTENDED_USAGE, usages(SERVER))),
                        ('san', (ALTERNATIVE_NAME, der.sequence(uri('https://evil.test')))),
                        ('basic-constraints', (BASIC_CONSTRAINTS, basic_constraints(True)))]:
        yield refused('twice-' + name, TWICE[name], bundle(ca=False, extra=[again]),
                      npm_differs=STRICT_CHAIN)
    yield verified('leaf-says-no-ca', bundle(ca=False))
    yield refused('leaf-not-der', 'bad-certificate', put(
        'verificationMaterial.certificate.rawBytes', 'AAAA')(bundle()))
    yield refused('leaf-trailing-byte', 'bad-certificate', put(
        'verificationMaterial.certificate.rawBytes', with_byte)(bundle()))


def with_byte(encoded):
    return base64.b64encode(base64.b64decode(encoded) + b'\0').decode()


def names():
    other = 'https://github.com/o/r/.github/workflows/other.yml@refs/heads/main'
    yield verified('san-email', bundle(names=[email('dev@example.test')]), identity='dev@example.test')
    yield verified('san-other-name', bundle(names=[user_name('dev!example.test')]),
                   identity='dev!example.test', npm_differs='npm matches the first URI or address only')
    yield verified('san-second', bundle(names=[uri(other), uri(IDENTITY)]),
                   npm_differs='npm matches the first URI or address only')
    yield refused('san-missing', 'bad-certificate', bundle(names=[]))
    yield refused('san-nul', 'bad-certificate', bundle(names=[uri(IDENTITY + '\0.evil.test')]))
    for name, names_ in [
            ('other', [uri(other)]), ('longer', [uri(IDENTITY + 'x')]), ('shorter', [uri(IDENTITY[:-1])]),
            ('case', [uri(IDENTITY.replace('/o/', '/O/'))]), ('prefixed', [uri('x' + IDENTITY)]),
            ('newline', [uri('x\n' + IDENTITY)])]:
        yield refused('san-' + name, 'identity-mismatch', bundle(names=names_), word=names_[0][2:20].decode()
                      if name == 'other' else '')
    # The hint is pasted into a shell: a branch may have any name.
    quote = IDENTITY + "';id;'"
    yield refused('hint-is-quoted', 'identity-mismatch', bundle(names=[uri(quote)]),
                  word="--certificate-identity '" + quote.replace("'", "'\\''") + "'")
    # What is not an identity of Fulcio's: the same words in a name of another kind.
    yield refused('san-other-name-of-another-type', 'bad-certificate', bundle(names=[der.explicit(
        0, der.oid('1.3.6.1.4.1.311.20.2.3') + der.explicit(0, der.utf8(IDENTITY)))]))
    yield refused('san-in-subject', 'identity-mismatch', bundle(names=[uri(other)], subject=IDENTITY))
    yield verified('identity-glob', bundle(), identity='https://github.com/o/r/**', npm_reads=False)
    for name, glob in [('no-separator', 'https://github.com/*'), ('unanchored', '/o/r/**'),
                       ('question', 'https://github.com/?/**/x'), ('empty-match', 'https://github.com/o/')]:
        yield refused('identity-glob-' + name, 'identity-mismatch', bundle(), identity=glob,
                      npm_reads=False)
    yield refused('identity-glob-other', 'identity-mismatch', bundle(),
                  identity='https://github.com/o/other/**', npm_reads=False)
    yield refused('identity-is-no-regex', 'identity-mismatch', bundle(), identity='.*', npm_reads=False)
    yield refused('identity-prefix', 'identity-mismatch', bundle(), identity='https://github.com/o/r/',
                  npm_reads=False)


def issuers():
    yield verified('issuer-v1-only', bundle(claims={1: ISSUER.encode()}))
    yield verified('issuer-v2-only', bundle(claims={8: der.utf8(ISSUER)}))
    yield refused('issuer-missing', 'issuer-mismatch', bundle(claims={}))
    for name, url in [('other', 'https://evil.test'), ('longer', ISSUER + '/'), ('shorter', ISSUER[:-1]),
                      ('case', ISSUER.upper())]:
        yield refused('issuer-' + name, 'issuer-mismatch', bundle(issuer_url=url))
    differ = 'npm reads the second form only'
    yield refused('issuer-conflict', 'issuer-conflict', bundle(
        claims={1: b'https://evil.test', 8: der.utf8(ISSUER)}), npm_differs=differ)
    yield refused('issuer-conflict-reversed', 'issuer-conflict', bundle(
        claims={1: ISSUER.encode(), 8: der.utf8('https://evil.test')}))
    yield refused('issuer-v1-as-der', 'issuer-mismatch', bundle(claims={1: der.utf8(ISSUER)}))
    yield refused('issuer-v2-raw', 'bad-certificate', bundle(claims={8: ISSUER.encode()}))
    yield refused('issuer-v2-trailing', 'bad-certificate', bundle(claims={8: der.utf8(ISSUER) + b'\0'}))
    yield refused('issuer-v2-twice', 'bad-certificate', bundle(
        claims={8: der.utf8(ISSUER)}, extra=[(FULCIO + '8', der.utf8('https://evil.test'))]),
        npm_differs=STRICT_CHAIN)
    yield refused('issuer-nul', 'bad-certificate', bundle(claims={8: der.utf8(ISSUER + '\0.evil')}))


def scts():
    second = key('second certificate log')
    rsa = key('rsa', 'rsa2048')
    two = trusted_root(ctlogs=[certificate_log(), certificate_log(second)])
    unknown = key('unknown certificate log')
    yield verified('sct-two', bundle(scts=[{}, {'log': second}]), root=two)
    yield verified('sct-rsa', bundle(scts=[{'log': rsa}]), root=trusted_root(
        ctlogs=[certificate_log(rsa)]), npm_differs=NPM_PKCS1)
    yield verified('sct-extensions', bundle(scts=[{'extensions': b'\0\0\5hello'}]))
    yield verified('sct-one-unknown', bundle(scts=[{'log': unknown}, {}]),
                   npm_differs='npm wants every certificate log known')
    yield verified('sct-at-start-of-log', bundle(), root=trusted_root(
        ctlogs=[certificate_log(start='2026-03-14T12:00:00Z')]))
    yield verified('sct-at-end-of-log', bundle(), root=trusted_root(
        ctlogs=[certificate_log(end='2026-03-14T12:00:00Z')]))
    yield refused('sct-none', 'sct-missing', bundle(scts=()))
    yield refused('sct-empty-list', 'sct-unverified', bundle(
        sct_extension=lambda _: [(SCT_LIST, sct_list([]))]))
    for name, change in [
            ('unknown-log', {'log': unknown}), ('extensions-added', {
                'extensions': b'\0\0\5hello', 'signed_extensions': b''}),
            ('extensions-altered', {'extensions': b'\0\0\5hello', 'signed_extensions': b'\0\0\5jello'}),
            ('other-issuer', {'issuer_spki': OTHER_CA.key.spki}),
            ('issuer-is-root', {'issuer_spki': ROOT.key.spki}), ('other-certificate', {'over': b'other'}),
            ('version', {'version': 1}), ('sha1', {'digest': 'sha1', 'algorithms': b'\2\3'}),
            ('says-rsa', {'algorithms': b'\4\1'})]:
        yield refused('sct-' + name, 'sct-unverified', bundle(scts=[change]),
                      npm_differs={'sha1': 'npm does as the SCT says',
                                   'says-rsa': 'npm knows the kind from the key'}.get(name, ''))
    for name, window in [('log-expired', {'end': '2026-03-14T11:59:59Z'}),
                         ('log-not-yet', {'start': '2026-03-14T12:00:01Z'})]:
        yield refused('sct-' + name, 'sct-unverified', bundle(),
                      root=trusted_root(ctlogs=[certificate_log(**window)]))
    yield refused('sct-no-logs', 'sct-unverified', bundle(), root=trusted_root(ctlogs=[]))
    yield refused('sct-key-swapped', 'sct-unverified', bundle(), root=trusted_root(ctlogs=[
        certificate_log(second) | {'logId': certificate_log()['logId']}]))
    for name, make in [
            ('trailing', lambda good: [(SCT_LIST, sct_list(good) + b'\0')]),
            ('twice', lambda good: [(SCT_LIST, sct_list(good))] * 2),
            ('truncated', lambda good: [(SCT_LIST, sct_list([good[0][:-3]]))]),
            ('not-octets', lambda good: [(SCT_LIST, sct_list(good)[2:])])]:
        yield refused('sct-list-' + name, 'sct-unverified', bundle(sct_extension=make))


def validity():
    """The certificate's own time, both ends of it included."""
    yield verified('leaf-starts-now', bundle(start=NOON))
    yield verified('leaf-ends-now', bundle(end=NOON))
    yield refused('leaf-not-yet', 'cert-expired', bundle(logs=[2], start=NOON + SECOND))
    yield refused('leaf-expired', 'cert-expired', bundle(logs=[2], end=NOON - SECOND))
    for name, window in [('expired', {'end': NOON - SECOND}), ('not-yet', {'start': NOON + SECOND})]:
        old = authority('old ' + name, issuer=ROOT, path_length=0, **window)
        yield refused('intermediate-' + name, 'cert-expired', **signed_by(old, ROOT, logs=[2]))
        old_root = authority('old root ' + name, **window)
        child = authority('child ' + name, issuer=old_root, path_length=0)
        yield refused('anchor-' + name, 'cert-expired', **signed_by(child, old_root, logs=[2]))
    edge = authority('edge', issuer=ROOT, path_length=0, end=NOON)
    yield verified('intermediate-ends-now', **signed_by(edge, ROOT))
    window = '2026-03-14T12:00:00'
    for name, reason, limits in [
            ('starts-now', None, {'start': window + 'Z'}), ('ends-now', None, {'end': window + 'Z'}),
            ('not-yet', 'ca-validity', {'start': '2026-03-14T12:00:01Z'}),
            ('not-yet-by-a-fraction', 'ca-validity', {'start': window + '.001Z'}),
            ('expired', 'ca-validity', {'end': '2026-03-14T11:59:59Z'}),
            ('expired-by-a-fraction', 'ca-validity', {'end': '2026-03-14T11:59:59.999Z'})]:
        root = trusted_root(certificateAuthorities=[chain([CA, ROOT], **limits)])
        yield (refused if reason else verified)('authority-' + name, *([reason] if reason else []),
                                                bundle(), root=root)
    late = bundle(end=NOON + DAY, logs=[(1, {'time': NOON + MINUTE})])
    yield refused('authority-ends-between-times', 'ca-validity', late, root=trusted_root(
        certificateAuthorities=[chain([CA, ROOT], end=window + 'Z')]))


def cases():
    for family in (chains, usage, names, issuers, scts, validity):
        yield from family()
