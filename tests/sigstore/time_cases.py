"""When it was signed: timestamps of RFC 3161 and the log's own time."""

import der
from case import put, refused, verified
from certificates import CODE_SIGNING, SERVER, TIME_STAMPING, authority, timestamper
from der import MINUTE, NOON, SECOND
from keys import key
from logs import b64
from signing import ROOT, TSA, TSA_ROOT, bundle, chain, trusted_root

NPM_SECONDS = 'npm reads whole seconds only'
STAMPS = 'verificationMaterial.timestampVerificationData.rfc3161Timestamps'
FIRST = STAMPS + '.0.signedTimestamp'

OTHER_TSA_ROOT = authority('tsa root', subject_key=key('other tsa root'))
OTHER_TSA = timestamper(issuer=OTHER_TSA_ROOT)
OTHER_KEY_TSA = timestamper('another tsa', issuer=TSA_ROOT)


def believing(*chains_, **window):
    return trusted_root(timestampAuthorities=[chain(one, **window) for one in chains_])


def stamped(**changes):
    """Only the timestamp says when: the log is of the second generation."""
    return bundle(logs=[2], stamps=[changes])


def good():
    yield verified('tsa-only-time', stamped())
    yield verified('tsa-embedded', stamped(embed=(TSA,)))
    yield verified('tsa-embedded-chain', stamped(embed=(TSA, TSA_ROOT)))
    yield verified('tsa-granted-with-modifications', stamped(status=1))
    for imprint in ('sha384', 'sha512'):
        yield verified('tsa-' + imprint, stamped(imprint=imprint))
    yield verified('tsa-fraction', stamped(time=NOON + SECOND / 2),
                   npm_differs=NPM_SECONDS)
    middle = authority('tsa middle', issuer=TSA_ROOT, extended=(TIME_STAMPING,))
    low = timestamper('low tsa', issuer=middle)
    yield verified('tsa-chain-of-three', stamped(authority_=low), root=believing([low, middle, TSA_ROOT]))
    yield verified('tsa-anchor-is-intermediate', stamped(authority_=low), root=believing([low, middle]),
                   npm_differs='npm wants a self-signed anchor')
    yield verified('tsa-second', stamped(), root=believing([OTHER_TSA, OTHER_TSA_ROOT], [TSA, TSA_ROOT]))
    yield verified('tsa-p384', **other_tsa('p384'))
    yield verified('tsa-rsa', **other_tsa('rsa2048'))
    yield verified('tsa-two-authorities', bundle(logs=[2], stamps=[{}, {'authority_': OTHER_KEY_TSA}]),
                   root=believing([TSA, TSA_ROOT], [OTHER_KEY_TSA, TSA_ROOT]))
    yield verified('log-time-only', bundle(stamps=()))


def other_tsa(kind):
    one = timestamper(kind, TSA_ROOT, kind=kind)
    return {'document': stamped(authority_=one), 'root': believing([one, TSA_ROOT])}


def unknown():
    """A timestamp of an authority that the trusted root does not know, beside what a log says."""
    root = authority('unknown root')
    unknown_ = {'authority_': timestamper('unknown tsa', issuer=root)}
    differs = 'npm wants every timestamp to hold'
    yield verified('tsa-unknown-beside-log-time', bundle(stamps=[unknown_]), npm_differs=differs)
    yield verified('tsa-unknown-embedded-beside-log-time', bundle(stamps=[unknown_ | {'embed': (
        unknown_['authority_'], root)}]), npm_differs=differs)
    yield verified('tsa-unknown-beside-known', bundle(stamps=[unknown_, {}]), npm_differs=differs)
    yield refused('tsa-unknown-alone', 'tsa', bundle(logs=[2], stamps=[unknown_]))
    yield refused('tsa-unknown-where-one-is-asked-for', 'tsa', bundle(stamps=[unknown_]),
                  options=('--require-timestamp',))
    # One that says it is of a known authority must hold.
    yield refused('tsa-forged-beside-log-time', 'tsa', bundle(stamps=[{'authority_': OTHER_TSA}]))
    yield refused('tsa-of-something-else-beside-log-time', 'tsa', bundle(stamp_over=b'something else'))


def missing():
    yield refused('rekor2-no-timestamp', 'no-timestamp', bundle(logs=[2], stamps=()))
    yield refused('rekor2-empty-timestamps', 'no-timestamp', put(STAMPS, [])(stamped()))
    # A time that nobody signed.
    yield refused('log-time-without-promise', 'no-timestamp', bundle(
        logs=[(1, {'promise': False})], stamps=()))
    yield refused('rekor2-integrated-time', 'no-timestamp', bundle(logs=[(2, {
        'entry': lambda one: one | {'integratedTime': str(der.unix(NOON))}})], stamps=()))
    yield refused('rekor2-promise', 'no-timestamp', bundle(logs=[(2, {
        'promise': True, 'entry': lambda one: one | {'integratedTime': str(der.unix(NOON))}})], stamps=()),
        npm_differs='npm believes a promise of either generation')
    yield verified('log-without-promise-and-timestamp', bundle(logs=[(1, {'promise': False})]))


def tokens():
    for name, change in [
            ('untrusted', {'authority_': OTHER_TSA}),
            ('untrusted-embedded', {'authority_': OTHER_TSA, 'embed': (OTHER_TSA, OTHER_TSA_ROOT)}),
            ('other-key-of-the-root', {'authority_': OTHER_KEY_TSA, 'embed': (OTHER_KEY_TSA,)}),
            ('signature', {'corrupt': True}), ('rejected', {'status': 2}),
            ('rejected-without-token', {'status': 2, 'token': False}), ('no-token', {'token': False}),
            ('sha1', {'imprint': 'sha1'}), ('ess-other', {'ess': OTHER_TSA}),
            ('content-type', {'content': '1.2.840.113549.1.7.1'}),
            ('info-swapped', {'signed_info': b'other'}), ('version', {'version': 2}),
            ('trailing', {'after': b'\0'}), ('names-other-signer', {'named': OTHER_KEY_TSA})]:
        yield refused('tsa-' + name, 'tsa', stamped(**change), npm_differs={
            'rejected': 'npm does not read the status',
            'ess-other': 'npm does not read the attribute', 'version': 'npm does not read the version'}.get(name, ''))
    yield refused('tsa-other-signature', 'tsa', bundle(logs=[2], stamp_over=b'another signature'),
                  word='imprint')
    yield refused('tsa-over-payload', 'tsa', bundle(
        'message', logs=[2], stamp_over=b'what is signed\n'), word='imprint')
    yield refused('tsa-garbage', 'tsa', put(FIRST, b64(b'garbage'))(stamped()))
    yield refused('tsa-empty', 'missing-field', put(FIRST, '')(stamped()))
    yield refused('tsa-none-trusted', 'tsa', stamped(), root=trusted_root(timestampAuthorities=[]))
    yield refused('tsa-bad-beside-log-time', 'tsa', bundle(stamps=[{'corrupt': True}]))
    yield refused('tsa-second-bad', 'tsa', bundle(stamps=[{}, {'corrupt': True}]))
    yield refused('tsa-33', 'too-many', bundle(stamps=[{}] * 33))
    yield refused('tsa-33-bytes', 'too-many', put(STAMPS, lambda good_: good_ * 33)(stamped()))


def authorities():
    """The certificate that signs timestamps."""
    for name, change in [('eku-missing', {'extended': (SERVER,)}), ('eku-not-critical', {'critical': False}),
                         ('eku-not-alone', {'extended': (TIME_STAMPING, CODE_SIGNING)})]:
        one = timestamper('tsa ' + name, TSA_ROOT, **change)
        yield refused('tsa-' + name, 'tsa', stamped(authority_=one), root=believing([one, TSA_ROOT]),
                      npm_differs='npm does not read its usage')
    wrong = authority('tsa for code', issuer=TSA_ROOT, extended=(CODE_SIGNING,))
    low = timestamper('tsa below code', issuer=wrong)
    yield refused('tsa-intermediate-eku', 'eku', stamped(authority_=low),
                  root=believing([low, wrong, TSA_ROOT]), npm_differs='npm does not read its usage')
    forged = timestamper('forged tsa', OTHER_TSA_ROOT)
    yield refused('tsa-chain', 'tsa', stamped(authority_=forged), root=believing([forged, TSA_ROOT]))
    for name, window in [('expired', {'end': NOON - SECOND}), ('not-yet', {'start': NOON + SECOND})]:
        one = timestamper('tsa ' + name, TSA_ROOT, **window)
        yield refused('tsa-cert-' + name, 'cert-expired', stamped(authority_=one),
                      root=believing([one, TSA_ROOT]))
        old = authority('tsa root ' + name, **window)
        child = timestamper('tsa child ' + name, old)
        yield refused('tsa-anchor-' + name, 'cert-expired', stamped(authority_=child),
                      root=believing([child, old]))
        old_middle = authority('tsa middle ' + name, issuer=TSA_ROOT, **window)
        child = timestamper('tsa grandchild ' + name, old_middle)
        yield refused('tsa-intermediate-' + name, 'cert-expired', stamped(authority_=child),
                      root=believing([child, old_middle, TSA_ROOT]))
    one = timestamper('tsa ends', TSA_ROOT, start=NOON, end=NOON)
    yield verified('tsa-cert-of-one-second', stamped(authority_=one), root=believing([one, TSA_ROOT]))
    now = '2026-03-14T12:00:00'
    for name, reason, window in [
            ('starts-now', None, {'start': now + 'Z'}), ('ends-now', None, {'end': now + 'Z'}),
            ('expired', 'ca-validity', {'end': '2026-03-14T11:59:59Z'}),
            ('expired-by-a-fraction', 'ca-validity', {'end': '2026-03-14T11:59:59.999Z'}),
            ('not-yet', 'ca-validity', {'start': '2026-03-14T12:00:01Z'}),
            ('not-yet-by-a-fraction', 'ca-validity', {'start': now + '.5Z'})]:
        root = believing([TSA, TSA_ROOT], **window)
        yield (refused if reason else verified)(
            'tsa-window-' + name, *([reason] if reason else []), stamped(), root=root)
    # Half a second after the window: the fraction of the timestamp counts as well.
    yield refused('tsa-window-fraction-of-time', 'ca-validity', stamped(time=NOON + SECOND / 2),
                  root=believing([TSA, TSA_ROOT], end=now + 'Z'))


def signing_time():
    """The certificate against each proved time."""
    late, early = NOON + 10 * MINUTE, NOON - 2 * MINUTE
    yield refused('leaf-expired-at-timestamp', 'cert-expired', stamped(time=late))
    yield refused('leaf-not-yet-at-timestamp', 'cert-expired', stamped(time=early))
    yield verified('leaf-last-second-at-timestamp', stamped(time=NOON + 9 * MINUTE))
    yield refused('leaf-half-second-late', 'cert-expired', stamped(time=NOON + 9 * MINUTE + SECOND / 2))
    yield refused('leaf-expired-at-log-time', 'integrated-time', bundle(logs=[(1, {'time': late})]))
    yield refused('leaf-not-yet-at-log-time', 'integrated-time', bundle(logs=[(1, {'time': early})]))
    yield refused('log-time-only-late', 'integrated-time', bundle(logs=[(1, {'time': late})], stamps=()))
    yield verified('log-time-last-second', bundle(logs=[(1, {'time': NOON + 9 * MINUTE})], stamps=()))
    # One time that fits does not save another that does not.
    yield refused('log-time-good-timestamp-late', 'cert-expired', bundle(stamps=[{'time': late}]))
    yield refused('second-timestamp-late', 'cert-expired', bundle(logs=[2], stamps=[
        {}, {'authority_': OTHER_KEY_TSA, 'time': late}]),
        root=believing([TSA, TSA_ROOT], [OTHER_KEY_TSA, TSA_ROOT]))
    middle = authority('short lived', issuer=ROOT, path_length=0, end=NOON + 3 * MINUTE)
    yield refused('only-leaf-still-valid', 'cert-expired', bundle(
        issuer=middle, logs=[2], stamps=[{'time': NOON + 4 * MINUTE}]),
        root=trusted_root(certificateAuthorities=[chain([middle, ROOT])]))


def cases():
    for family in (good, unknown, missing, tokens, authorities, signing_time):
        yield from family()
