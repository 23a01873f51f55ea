# SPDX-License-Identifier: Apache-2.0
"""A Sigstore instance on loopback: a certificate authority, logs of both generations and a timestamp authority, which check what they
are sent as the real ones do.

    with Instance(DIRECTORY) as instance:
        instance.signing_config(log=2)   # a file: the services, for who signs
        instance.trusted_root            # a file: what to trust, for who verifies
        instance.token(subject, claims)  # an identity as CI gives it to a job

Certificates, logs and their trees are those of tests/sigstore; timestamps are made by OpenSSL.
"""
import base64
import datetime
import hashlib
import http.server
import json
import pathlib
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'sigstore'))
# pylint: disable=wrong-import-position
import certificates  # noqa: E402
import der  # noqa: E402
import signing  # noqa: E402
from cryptography import x509  # noqa: E402
from cryptography.hazmat.primitives import hashes, serialization  # noqa: E402
from cryptography.hazmat.primitives.asymmetric import ec, utils  # noqa: E402
from keys import key, sha256  # noqa: E402
from logs import Log, b64, canonical  # noqa: E402

ISSUER = 'https://issuer.test'
IDENTITY = 'https://github.com/acme/site/.github/workflows/agent.yml@refs/heads/main'
TSA_CONFIG = '''
[tsa]
default_tsa = tsa1
[tsa1]
serial = {0}/serial
crypto_device = builtin
signer_cert = {0}/tsa.pem
certs = {0}/tsa-chain.pem
signer_key = {0}/tsa.key
signer_digest = sha256
default_policy = 1.3.6.1.4.1.57264.2
digests = sha256
accuracy = secs:1
'''


def base64url(text):
    return base64.urlsafe_b64encode(text).rstrip(b'=').decode()


def issued_by(authority):
    """The extension that names the key of who issued a certificate: some verifiers ask for it."""
    return certificates.AUTHORITY_KEY, der.sequence(der.implicit(0, sha256(authority.key.spki)[:20]))


class HeldKey:
    """Somebody else's public key, as `certificates` needs it of a subject."""

    def __init__(self, public):
        self.public = public
        self.spki = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        self.details = 'PKIX_ECDSA_P256_SHA_256'
        self.pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


class Instance:
    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        now = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
        start, end = now - datetime.timedelta(days=1), now + datetime.timedelta(days=30)
        self.start = start.strftime('%Y-%m-%dT%H:%M:%SZ')
        self.root = certificates.authority('attest root', start=start, end=end)
        self.ca = certificates.authority('attest ca', issuer=self.root, path_length=0, start=start, end=end,
                                         extended=(certificates.CODE_SIGNING,), extra=(issued_by(self.root),))
        self.tsa_root = certificates.authority('attest tsa root', start=start, end=end)
        usage = (certificates.EXTENDED_USAGE, certificates.usages(certificates.TIME_STAMPING), True)
        self.tsa = certificates.issue('attest tsa', key('attest tsa'), self.tsa_root, [
            (certificates.KEY_USAGE, certificates.DIGITAL_SIGNATURE, True), usage, issued_by(self.tsa_root)], start, end)
        self.ct = key('attest ct')
        self.logs = {1: Log('rekor.attest.test', 'p256', 1), 2: Log('log2026-1.rekor.attest.test', 'ed25519', 2)}
        self.requests, self.faults = [], {}
        self.identity, self.fulcio = IDENTITY, {}  # Of the tokens that a job asks for: with Fulcio's claims by their numbers.
        self.trusted_root = self.directory / 'trusted_root.json'
        self.trusted_root.write_text(json.dumps(self.describe_root()))
        for name, text in (('tsa.pem', self.tsa.pem), ('tsa-chain.pem', self.tsa_root.pem), ('tsa.key', self.tsa.key.private_pem),
                           ('serial', b'01'), ('openssl.cnf', TSA_CONFIG.format(self.directory).encode())):
            (self.directory / name).write_bytes(text)
        self.lock = threading.Lock()  # Of OpenSSL's file of serial numbers.

    def __enter__(self):
        instance = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers['content-length']))
                instance.requests.append((self.path, dict(self.headers), body))
                fault = instance.faults.get(self.path)
                status, kind, answer = fault or instance.answer(self.path, self.headers, body)
                self.send_response(status)
                self.send_header('content-type', kind)
                self.send_header('content-length', str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def do_GET(self):
                """The forge's own service of identities."""
                instance.requests.append((self.path, dict(self.headers), b''))
                answer = json.dumps({'value': instance.token(instance.identity, fulcio=instance.fulcio)}).encode()
                self.send_response(200)
                self.send_header('content-length', str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *words):
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.url = 'http://127.0.0.1:%d' % self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def describe_root(self):
        log = self.logs.values()
        return {'mediaType': 'application/vnd.dev.sigstore.trustedroot+json;version=0.1',
                'tlogs': [one.in_root(start=self.start) for one in log],
                'certificateAuthorities': [signing.chain([self.ca, self.root], start=self.start)],
                'ctlogs': [signing.certificate_log(self.ct, start=self.start)],
                'timestampAuthorities': [signing.chain([self.tsa, self.tsa_root], start=self.start)]}

    def describe_config(self, log, stamps=True):
        def service(url, version=1):
            return {'url': url, 'majorApiVersion': version, 'validFor': {'start': self.start}, 'operator': 'attest.test'}
        return {'mediaType': 'application/vnd.dev.sigstore.signingconfig.v0.2+json', 'caUrls': [service(self.url)],
                'oidcUrls': [service(self.url)],
                'rekorTlogUrls': [service(self.url, log)] if log else [], 'rekorTlogConfig': {'selector': 'ANY'},
                'tsaUrls': [service(self.url + '/api/v1/timestamp')] if stamps else [], 'tsaConfig': {'selector': 'ANY'}}

    def signing_config(self, log=2, stamps=True):
        path = self.directory / f'signing-{log}-{stamps}.json'
        path.write_text(json.dumps(self.describe_config(log, stamps)))
        return path

    def token(self, identity=IDENTITY, **claims):
        body = {'iss': ISSUER, 'aud': 'sigstore', 'sub': 'repo:acme/site', 'identity': identity, **claims}
        return '.'.join(base64url(json.dumps(part).encode()) for part in ({'alg': 'none'}, body)) + '.c2ln'

    def answer(self, path, headers, body):
        if path == '/api/v2/signingCert':
            return self.certify(headers, json.loads(body))
        if path == '/api/v1/log/entries':
            return self.log_first(json.loads(body))
        if path == '/api/v2/log/entries':
            return self.log_second(json.loads(body))
        if path == '/api/v1/timestamp':
            return self.stamp(headers, body)
        return 404, 'text/plain', b'no such place'

    def certify(self, headers, asked):
        token = asked['credentials']['oidcIdentityToken']
        assert headers['authorization'] == 'Bearer ' + token
        part = token.split('.')[1]
        claims = json.loads(base64.urlsafe_b64decode(part + '=' * (-len(part) % 4)))
        if claims['aud'] != 'sigstore':
            return 400, 'application/json', b'{"message": "error processing the identity token"}'
        request = x509.load_pem_x509_csr(base64.b64decode(asked['certificateSigningRequest']))
        assert request.is_signature_valid
        now = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
        numbered = {int(arc): der.utf8(text) for arc, text in claims.get('fulcio', {}).items()}
        made = certificates.leaf(self.ca, self.ct, subject_key=HeldKey(request.public_key()), names=[certificates.uri(claims['identity'])],
                                 claims={1: ISSUER.encode(), 8: der.utf8(ISSUER), **numbered}, scts=({'time': now},), extra=(issued_by(self.ca),),
                                 start=now - datetime.timedelta(seconds=5), end=now + datetime.timedelta(minutes=10))
        chain = [one.pem.decode() for one in (made, self.ca, self.root)]
        return 200, 'application/json', json.dumps({'signedCertificateEmbeddedSct': {'chain': {'certificates': chain}}}).encode()

    def log_first(self, asked):
        assert asked['kind'] == 'dsse' and asked['apiVersion'] == '0.0.1'
        content = asked['spec']['proposedContent']
        envelope = json.loads(content['envelope'])
        pem, = (base64.b64decode(one) for one in content['verifiers'])
        signature = base64.b64decode(envelope['signatures'][0]['sig'])
        payload = base64.b64decode(envelope['payload'])
        public = (x509.load_pem_x509_certificate(pem).public_key() if b'CERTIFICATE' in pem
                  else serialization.load_pem_public_key(pem))
        public.verify(signature, signing.pae(payload, envelope['payloadType']), ec.ECDSA(hashes.SHA256()))
        made = self.logs[1].entry('dsse', '0.0.1', {
            'envelopeHash': {'algorithm': 'sha256', 'value': sha256(content['envelope'].encode()).hex()},
            'payloadHash': {'algorithm': 'sha256', 'value': sha256(payload).hex()},
            'signatures': [{'signature': b64(signature), 'verifier': b64(pem)}]},
            time=datetime.datetime.now(datetime.timezone.utc))
        proof = made['inclusionProof']
        hexadecimal = lambda text: base64.b64decode(text).hex()  # noqa: E731
        entry = {'body': made['canonicalizedBody'], 'integratedTime': int(made['integratedTime']),
                 'logID': hexadecimal(made['logId']['keyId']), 'logIndex': int(made['logIndex']),
                 'verification': {'signedEntryTimestamp': made['inclusionPromise']['signedEntryTimestamp'],
                                  'inclusionProof': {'checkpoint': proof['checkpoint']['envelope'],
                                                     'hashes': [hexadecimal(one) for one in proof['hashes']],
                                                     'logIndex': int(proof['logIndex']), 'rootHash': hexadecimal(proof['rootHash']),
                                                     'treeSize': int(proof['treeSize'])}}}
        return 201, 'application/json', json.dumps({hashlib.sha256(canonical(entry)).hexdigest(): entry}).encode()

    def log_second(self, asked):
        request = asked['hashedRekordRequestV002']
        signature = base64.b64decode(request['signature']['content'])
        verifier = request['signature']['verifier']
        assert verifier['keyDetails'] == 'PKIX_ECDSA_P256_SHA_256'
        raw = base64.b64decode((verifier.get('x509Certificate') or verifier['publicKey'])['rawBytes'])
        public = (x509.load_der_x509_certificate(raw).public_key() if 'x509Certificate' in verifier
                  else serialization.load_der_public_key(raw))
        digest = base64.b64decode(request['digest'])
        public.verify(signature, digest, ec.ECDSA(utils.Prehashed(hashes.SHA256())))
        made = self.logs[2].entry('hashedrekord', '0.0.2', {'hashedRekordV002': {
            'data': {'algorithm': 'SHA2_256', 'digest': request['digest']},
            'signature': {'content': request['signature']['content'], 'verifier': verifier}}})
        return 201, 'application/json', json.dumps(made).encode()

    def stamp(self, headers, body):
        assert headers['content-type'] == 'application/timestamp-query'
        with self.lock:
            query = self.directory / 'query'
            query.write_bytes(body)
            done = subprocess.run(['openssl', 'ts', '-reply', '-config', self.directory / 'openssl.cnf', '-queryfile', query, '-out',
                                   self.directory / 'reply'], capture_output=True, text=True, check=False)
            if done.returncode:
                return 500, 'text/plain', done.stderr.encode()
            return 201, 'application/timestamp-reply', (self.directory / 'reply').read_bytes()
