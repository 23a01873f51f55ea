# SPDX-License-Identifier: Apache-2.0
"""Sigstore's own programs on loopback: Fulcio, TesseraCT as its log, Rekor 2, the timestamp authority and cosign, and an issuer of
identities, which Fulcio takes for GitHub's.

    enter()                            # In a network of its own: no port is taken, and nothing is reached from elsewhere.
    with Programs(INSTALLED, DIRECTORY) as programs:
        programs.signing_config, programs.trusted_root   # files, written by cosign
        programs.token(run_id='77')                      # an identity as GitHub gives it to a job
        programs.cosign('version')
"""
import base64
import http.server
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time
import urllib.request

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

INSIDE = 'ATTEST_TEST_INSIDE'
PORTS = {'issuer': 5550, 'fulcio': 5551, 'fulcio grpc': 5552, 'fulcio metrics': 5553, 'tesseract': 5554, 'rekor': 5555, 'rekor grpc': 5556,
         'rekor metrics': 5557, 'timestamps': 5558}
ISSUER = f'http://127.0.0.1:{PORTS["issuer"]}'
ORIGIN = '127.0.0.1'
WORKFLOW = 'acme/site/.github/workflows/agent.yml@refs/heads/main'
IDENTITY = 'https://github.com/' + WORKFLOW
PASSWORD = 'fulcio'
START_S = 60


def enter():
    """Goes on in a network of its own, as root there."""
    if os.environ.pop(INSIDE, None):
        subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)
        return
    flags = ['--net'] if os.geteuid() == 0 else ['--user', '--map-root-user', '--net']
    os.execvpe('unshare', ['unshare', *flags, sys.executable, *sys.argv], os.environ | {INSIDE: '1'})


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b'=').decode()


class Issuer(http.server.BaseHTTPRequestHandler):
    """What OpenID Connect asks of an issuer: where its keys are, and the keys."""
    key = rsa.generate_private_key(65537, 2048)

    def do_GET(self):
        numbers = self.key.public_key().public_numbers()
        half = {name: base64url(number.to_bytes((number.bit_length() + 7) // 8, 'big')) for name, number in (('n', numbers.n), ('e', numbers.e))}
        answer = json.dumps({'keys': [{'kty': 'RSA', 'alg': 'RS256', 'use': 'sig', 'kid': '1', **half}]} if self.path == '/keys' else
                            {'issuer': ISSUER, 'jwks_uri': ISSUER + '/keys', 'id_token_signing_alg_values_supported': ['RS256']}).encode()
        self.send_response(200)
        self.send_header('content-type', 'application/json')
        self.send_header('content-length', str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *words):
        pass


class Programs:
    def __init__(self, installed, directory):
        self.installed, self.directory = pathlib.Path(installed), pathlib.Path(directory)
        self.directory.mkdir()
        self.running = []

    def __enter__(self):
        try:
            self.start_all()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in self.running:
            process.kill()
            process.wait()
        self.issuer.shutdown()
        self.issuer.server_close()

    def start_all(self):
        self.issuer = http.server.ThreadingHTTPServer(('127.0.0.1', PORTS['issuer']), Issuer)
        threading.Thread(target=self.issuer.serve_forever, daemon=True).start()
        place = self.directory
        # Fulcio's own configuration, in which GitHub's issuer is this one.
        issuers = (self.installed / 'fulcio.yaml').read_text()
        github = 'https://token.actions.githubusercontent.com'
        assert f'  {github}:\n' in issuers
        (place / 'fulcio.yaml').write_text(issuers.replace(f'  {github}:\n', f'  {ISSUER}:\n').replace(f'issuer-url: {github}\n',
                                                                                                    f'issuer-url: {ISSUER}\n'))
        subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-keyout', place / 'fulcio.key', '-passout',
                        'pass:' + PASSWORD, '-out', place / 'fulcio.pem', '-days', '2', '-subj', '/O=attest.test/CN=fulcio', '-addext',
                        'keyUsage=critical,keyCertSign,cRLSign'], check=True, capture_output=True)
        for name, words in (('ct', ['ecparam', '-name', 'prime256v1', '-genkey', '-noout']), ('rekor', ['genpkey', '-algorithm', 'ED25519'])):
            subprocess.run(['openssl', *words, '-out', place / f'{name}.key'], check=True, capture_output=True)
            subprocess.run(['openssl', 'pkey', '-in', place / f'{name}.key', '-pubout', '-out', place / f'{name}.pub'], check=True)
        port = {name: str(number) for name, number in PORTS.items()}
        self.start('fulcio', 'serve', '--host=127.0.0.1', '--port', port['fulcio'], '--grpc-host=127.0.0.1', '--grpc-port', port['fulcio grpc'],
                   '--metrics-port', port['fulcio metrics'], '--legacy-unix-domain-socket', place / 'fulcio.sock', '--ca=fileca', '--fileca-cert',
                   place / 'fulcio.pem', '--fileca-key', place / 'fulcio.key', '--fileca-key-passwd', PASSWORD, '--fileca-watch=false',
                   '--ct-log-url', self.url('tesseract'), '--config-path', place / 'fulcio.yaml')
        self.start('rekor-server', 'serve', '--http-port', port['rekor'], '--grpc-port', port['rekor grpc'], '--http-metrics-port',
                   port['rekor metrics'], '--hostname', ORIGIN, '--storage-dir', place / 'rekor', '--signer-filepath', place / 'rekor.key',
                   '--checkpoint-interval=1s', '--batch-max-age=100ms')
        self.start('timestamp-server', 'serve', '--host=127.0.0.1', '--port', port['timestamps'], '--timestamp-signer=memory',
                   '--disable-ntp-monitoring')
        self.start('tesseract', '--private_key', place / 'ct.key', '--origin', ORIGIN + '/ct', '--storage_dir', place / 'tesseract',
                   '--roots_pem_file', place / 'fulcio.pem', '--ext_key_usages=CodeSigning', '--http_endpoint',
                   '127.0.0.1:' + port['tesseract'], '--checkpoint_interval=1s', '--inmemory_antispam_cache_size=1k')
        (place / 'tsa.pem').write_text(self.get('timestamps', '/api/v1/timestamp/certchain'))
        for name in ('fulcio grpc', 'fulcio', 'tesseract', 'rekor grpc', 'rekor'):
            self.wait(name)
        self.describe()

    def describe(self):
        """The files of a client, as cosign writes them."""
        place = self.directory
        self.trusted_root, self.signing_config = place / 'trusted_root.json', place / 'signing_config.json'
        start = 'start-time=' + time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(time.time() - 60))
        stamps = self.url('timestamps') + '/api/v1/timestamp'
        self.cosign('trusted-root', 'create', '--out', self.trusted_root,
                    '--fulcio', f'url={self.url("fulcio")},certificate-chain={place}/fulcio.pem',
                    '--ctfe', f'url={self.url("tesseract")},public-key={place}/ct.pub,{start}',
                    '--rekor', f'url={self.url("rekor")},public-key={place}/rekor.pub,{start},origin={ORIGIN}',
                    '--tsa', f'url={stamps},certificate-chain={place}/tsa.pem')
        service = f'{start},operator=attest.test'
        self.cosign('signing-config', 'create', '--out', self.signing_config,
                    '--fulcio', f'url={self.url("fulcio")},api-version=1,{service}', '--oidc-provider', f'url={ISSUER},api-version=1,{service}',
                    '--rekor', f'url={self.url("rekor")},api-version=2,{service}', '--rekor-config=ANY',
                    '--tsa', f'url={stamps},api-version=1,{service}', '--tsa-config=ANY')

    def url(self, name):
        return f'http://127.0.0.1:{PORTS[name]}'

    def start(self, name, *words):
        with open(self.directory / f'{name}.log', 'wb') as log:
            self.running.append(subprocess.Popen([self.installed / name, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                 env={'HOME': str(self.directory), 'PATH': '/usr/bin'}))

    def wait(self, name):
        end = time.monotonic() + START_S
        while True:
            try:
                return socket.create_connection(('127.0.0.1', PORTS[name])).close()
            except ConnectionRefusedError:
                if any(process.poll() is not None for process in self.running) or time.monotonic() > end:
                    raise RuntimeError(name + ' does not answer:\n' + '\n'.join(
                        f'{log.name}: {log.read_text()[-2000:]}' for log in self.directory.glob('*.log'))) from None
                time.sleep(0.05)

    def get(self, name, path):
        self.wait(name)
        with urllib.request.urlopen(self.url(name) + path) as answer:
            return answer.read().decode()

    def token(self, **changes):
        """What GitHub says of a job, and signs."""
        sha, now = 'a' * 40, int(time.time())
        claims = {'iss': ISSUER, 'aud': 'sigstore', 'sub': 'repo:acme/site:ref:refs/heads/main', 'iat': now, 'nbf': now, 'exp': now + 600,
                  'event_name': 'workflow_dispatch', 'sha': sha, 'workflow': 'agent', 'repository': 'acme/site', 'ref': 'refs/heads/main',
                  'job_workflow_ref': WORKFLOW, 'job_workflow_sha': sha, 'runner_environment': 'github-hosted', 'repository_id': '1',
                  'repository_owner': 'acme', 'repository_owner_id': '2', 'workflow_ref': WORKFLOW, 'workflow_sha': sha, 'run_id': '77',
                  'run_attempt': '1', 'repository_visibility': 'public', **changes}
        signed = '.'.join(base64url(json.dumps(part).encode()) for part in ({'alg': 'RS256', 'kid': '1', 'typ': 'JWT'}, claims))
        return signed + '.' + base64url(Issuer.key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))

    def cosign(self, *words, expect=0):
        """What cosign says."""
        done = subprocess.run([self.installed / 'cosign', *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              env={'HOME': str(self.directory), 'PATH': '/usr/bin'})
        if (done.returncode == 0) != (expect == 0):
            raise AssertionError(f'cosign {words[0]} ended with {done.returncode}:\n{done.stdout}{done.stderr}')
        return done.stdout + done.stderr
