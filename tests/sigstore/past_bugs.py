"""What other verifiers got wrong, or their shared suite does not ask, and which cases of these tables ask it here."""

# Each has a case that is refused for a reason of its own. What a registry does is in tests/registry: endless bodies,
# crowds of referrers and of layers, lookups that fail.
ASKED_BY = {
    # A log's entry that was about another signature, key or artifact.
    'CVE-2022-23649': ['set-of-another-entry', 'set-other-body', 'legacy-entry-of-another', 'legacy-entry-moved-set'],
    'CVE-2022-36056': ['entry-other-record-signature', 'entry-other-record-key', 'entry-other-record-digest',
                       'entry-other-certificate-record', 'leaf-expired-at-log-time'],
    'CVE-2026-22703': ['entry-of-another-signature-instead', 'entry-other-dsse-signature', 'entry-other-dsse-key',
                       'entry-other-dsse-payload', 'entry-other-rekor2-digest', 'legacy-entry-digest'],
    # An attestation of another type.
    'CVE-2022-35929': ['predicate-type-other', 'legacy-attestation-other-predicate'],
    'GHSA-w6c6-c85g-mmv6': ['predicate-type-longer', 'predicate-type-shorter', 'predicate-type-case'],
    # Too much of everything.
    'CVE-2023-46737': ['larger-than-32-mib'],
    'GHSA-88jx-383q-w4qc': ['nested-deep', 'subjects-1025'],
    'GHSA-95pr-fxf5-86gv': ['log-33-entries', 'tsa-33'],
    # Only the leaf's dates were judged.
    'cosign 4663': ['only-leaf-still-valid', 'intermediate-expired', 'anchor-expired', 'tsa-intermediate-expired'],
    'sigstore-go, closed intervals': ['authority-expired-by-a-fraction', 'rekor1-key-expired-by-a-fraction',
                                      'rekor2-key-expired-by-a-fraction', 'tsa-window-expired-by-a-fraction'],
    'sigstore-go, digest of a message': ['message-digest-lies', 'message-other-artifact', 'message-digest-algorithm'],
    'sigstore-go, a body that is not understood': ['rekor2-body-other-than-rebuilt', 'entry-rekor2-dsse'],
    'sigstore-go, when a log is believed': ['rekor1-key-expired', 'rekor2-key-expired', 'rekor1-key-not-yet',
                                            'rekor2-key-not-yet', 'legacy-log-key-expired'],
    # Not in sigstore-conformance.
    'annotations of old layers': ['legacy-entry-signature', 'legacy-entry-key', 'legacy-bundle-garbage',
                                  'legacy-timestamp-untrusted', 'legacy-hostile-chain', 'legacy-signature-base64'],
    'patterns of identities': ['identity-is-no-regex', 'identity-glob-unanchored', 'identity-prefix', 'san-longer'],
    'issuer': ['issuer-other', 'issuer-missing', 'issuer-case', 'issuer-longer'],
    'two extensions for the issuer': ['issuer-conflict', 'issuer-conflict-reversed', 'issuer-v1-as-der',
                                      'issuer-v2-raw'],
    'otherName': ['san-other-name-of-another-type'],
    'extended key usage': ['eku-missing', 'eku-server', 'eku-any', 'intermediate-for-servers', 'tsa-eku-not-alone'],
    'kinds of keys': ['team-other-key-p384', 'team-other-key-p521', 'team-other-key-rsa2048', 'team-other-key-ed25519',
                      'weak-rsa', 'message-ed25519'],
    'name constraints': ['name-constraints-uri', 'name-constraints-email'],
    'a certificate log that has ended': ['sct-log-expired', 'sct-log-not-yet'],
    'one entry twice': ['log-entry-twice', 'rekor2-entry-twice'],
    'subject of a statement': ['subject-other', 'subject-none', 'subject-upper-case', 'subject-in-predicate'],
    'a name twice in JSON': ['duplicate-key', 'duplicate-key-deep', 'duplicate-key-escaped', 'statement-duplicate-key',
                             'root-duplicate-key', 'legacy-payload-duplicate-key', 'entry-body-duplicate-key'],
}


def missing(cases):
    """What of the above no case asks: texts, empty when all is well."""
    reasons = {case.name: case.reason for case in cases}
    return [f'{bug}: no refusal {name}' for bug, names in ASKED_BY.items() for name in names if not reasons.get(name)]
