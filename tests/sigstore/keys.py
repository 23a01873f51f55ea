"""Private keys by name, made once for a run, and what certificates and logs call them."""
import functools
import hashlib

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa

import der

CURVES = {'p256': ec.SECP256R1, 'p384': ec.SECP384R1, 'p521': ec.SECP521R1}
HASHES = {'sha1': hashes.SHA1, 'sha256': hashes.SHA256, 'sha384': hashes.SHA384, 'sha512': hashes.SHA512}
# The hash that goes with a key in Sigstore's algorithm registry.
HASH_OF = {'p256': 'sha256', 'p384': 'sha384', 'p521': 'sha512', 'rsa': 'sha256', 'ed25519': 'sha512'}
DIGEST_OID = {'sha1': '1.3.14.3.2.26', 'sha256': '2.16.840.1.101.3.4.2.1',
              'sha384': '2.16.840.1.101.3.4.2.2', 'sha512': '2.16.840.1.101.3.4.2.3'}
ECDSA_OID = {'sha1': '1.2.840.10045.4.1', 'sha256': '1.2.840.10045.4.3.2',
             'sha384': '1.2.840.10045.4.3.3', 'sha512': '1.2.840.10045.4.3.4'}
RSA_OID = {'sha1': '1.2.840.113549.1.1.5', 'sha256': '1.2.840.113549.1.1.11',
           'sha384': '1.2.840.113549.1.1.12', 'sha512': '1.2.840.113549.1.1.13'}


def sha256(data):
    return hashlib.sha256(data).digest()


class Key:
    """`kind`: p256, p384, p521, ed25519, or rsa with its bits, as in rsa2048."""

    def __init__(self, kind):
        self.kind = kind
        if kind in CURVES:
            self.private = ec.generate_private_key(CURVES[kind]())
        elif kind == 'ed25519':
            self.private = ed25519.Ed25519PrivateKey.generate()
        else:
            self.private = rsa.generate_private_key(65537, int(kind[3:]))
        self.hash = HASH_OF[kind if not kind.startswith('rsa') else 'rsa']
        self.spki = self._public(serialization.Encoding.DER)
        self.pem = self._public(serialization.Encoding.PEM)

    def _public(self, encoding):
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        return self.private.public_key().public_bytes(encoding, form)

    @property
    def raw(self):
        """The 32 bytes of an Ed25519 key."""
        return self.spki[-32:]

    @property
    def pkcs1(self):
        return self.private.public_key().public_bytes(serialization.Encoding.DER,
                                                      serialization.PublicFormat.PKCS1)

    @property
    def pkcs1_pem(self):
        return self.private.public_key().public_bytes(serialization.Encoding.PEM,
                                                      serialization.PublicFormat.PKCS1)

    @property
    def private_pem(self):
        return self.private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                          serialization.NoEncryption())

    @property
    def details(self):
        """PublicKeyDetails of sigstore_common.proto."""
        if self.kind.startswith('rsa'):
            return f'PKIX_RSA_PKCS1V15_{self.kind[3:]}_SHA256'
        return {'p256': 'PKIX_ECDSA_P256_SHA_256', 'p384': 'PKIX_ECDSA_P384_SHA_384',
                'p521': 'PKIX_ECDSA_P521_SHA_512', 'ed25519': 'PKIX_ED25519'}[self.kind]

    def sign(self, message, digest=None):
        algorithm = HASHES[digest or self.hash]()
        if self.kind in CURVES:
            return self.private.sign(message, ec.ECDSA(algorithm))
        if self.kind == 'ed25519':
            return self.private.sign(message)
        return self.private.sign(message, padding.PKCS1v15(), algorithm)

    def algorithm(self, digest=None):
        """The AlgorithmIdentifier of `sign`."""
        digest = digest or self.hash
        if self.kind in CURVES:
            return der.sequence(der.oid(ECDSA_OID[digest]))
        if self.kind == 'ed25519':
            return der.sequence(der.oid('1.3.101.112'))
        return der.sequence(der.oid(RSA_OID[digest]), der.null())


@functools.lru_cache(maxsize=None)
def made(name, kind):
    del name
    return Key(kind)


def key(name, kind='p256'):
    """The key called `name`: the same at every call. RSA keys take long to make: all but a stranger's
    are one."""
    return made(name if name == 'stranger' or not kind.startswith('rsa') else 'rsa', kind)
