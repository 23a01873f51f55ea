#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A gateway of OpenShell that others run, with client certificates and with tokens, and all that can be wrong with it: the outcome is
typed, in time, and what came before is kept.

usage: remote_test.py BINARY TESTBED CACHE [unittest arguments]
"""
import base64
import contextlib
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

from real import SECRET, Case, main, read, wait_until


class Proxy:
    """Another address of a gateway: passes on what comes, later by `delay` seconds, until it stalls or cuts."""

    def __init__(self, port, delay=0.0):
        self.to, self.delay, self.stalled, self.open = port, delay, False, []
        self.listener = socket.create_server(('127.0.0.1', 0), backlog=100)
        self.port = self.listener.getsockname()[1]
        self.url = f'https://127.0.0.1:{self.port}'
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(('127.0.0.1', self.to))
                self.open += [client, server]
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=self.carry, args=ends, daemon=True).start()

    def carry(self, source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                time.sleep(self.delay)
                while self.stalled:
                    time.sleep(0.1)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def close(self):
        self.cut()
        for end in self.open:
            end.close()

    def cut(self):
        self.stop()
        for end in self.open:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def stop(self):
        self.stalled = False
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b'=').decode()


class Issuer:
    """Issues tokens for a gateway, as an OpenID provider does, and refreshes none."""

    def __init__(self, directory):
        self.key = f'{directory}/issuer.key'
        self.openssl('genrsa', '-out', self.key, '2048')
        modulus = bytes.fromhex(self.openssl('rsa', '-in', self.key, '-noout', '-modulus').decode().strip().split('=')[1])
        keys = {'keys': [{'kty': 'RSA', 'kid': 'one', 'alg': 'RS256', 'use': 'sig', 'n': encoded(modulus), 'e': 'AQAB'}]}
        issuer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self, status, body):
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header('Content-Type', 'application/json')
                self.send_header('Content-Length', str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_GET(self):
                url = issuer.url
                self.answer(200, keys if self.path == '/keys' else {
                    'issuer': url, 'jwks_uri': url + '/keys', 'token_endpoint': url + '/token',
                    'authorization_endpoint': url + '/login'})

            def do_POST(self):
                self.answer(400, {'error': 'invalid_grant'})

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.url = f'http://127.0.0.1:{self.server.server_address[1]}'
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def openssl(self, *words, data=b''):
        return subprocess.run(['openssl', *words], input=data, check=True, capture_output=True).stdout

    def token(self, seconds):
        """A login as `openshell gateway login` keeps it; the token is valid for `seconds` from now."""
        claims = {'iss': self.url, 'aud': 'openshell-cli', 'sub': 'someone', 'exp': int(time.time()) + seconds,
                  'iat': int(time.time()) - 7200, 'realm_access': {'roles': ['openshell-admin', 'openshell-user']}}
        text = '.'.join(encoded(json.dumps(part).encode()) for part in ({'alg': 'RS256', 'kid': 'one', 'typ': 'JWT'}, claims))
        signature = encoded(self.openssl('dgst', '-sha256', '-sign', self.key, data=text.encode()))
        return {'access_token': f'{text}.{signature}', 'refresh_token': 'used', 'issuer': self.url, 'client_id': 'openshell-cli'}


class Tokens:
    """Mints credentials as Google's and AWS's services of tokens do, each time others; `asked` has what they are asked."""
    STS = ('<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials><AccessKeyId>ASIAMINTED{0:010}</AccessKeyId>'
           '<SecretAccessKey>minted-secret-{0}</SecretAccessKey><SessionToken>minted-session-{0}</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration>'
           '</Credentials></AssumeRoleResult></AssumeRoleResponse>')

    def __init__(self):
        asked = self.asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                asked.append(self.rfile.read(int(self.headers['Content-Length'])).decode())
                kind, text = 'application/json', json.dumps({'access_token': f'minted-{len(asked)}', 'expires_in': 3600, 'token_type': 'Bearer'})
                if 'Action=AssumeRole' in asked[-1]:
                    kind, text = 'text/xml', Tokens.STS.format(len(asked))
                self.send_response(200)
                self.send_header('Content-Type', kind)
                self.send_header('Content-Length', str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.url = f'http://127.0.0.1:{self.server.server_address[1]}'
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Remote(Case):
    """Its gateway is one that a lasting sandbox has started, reached by its URL with its certificates."""

    @classmethod
    def setUpClass(cls):
        if not cls.INSTALLED:
            raise unittest.SkipTest('testbed: OpenShell cannot run here')

    def setUp(self):
        super().setUp()
        self.own = self.checkout('own')
        self.tokens = Tokens()
        self.addCleanup(self.tokens.close)
        others = pathlib.Path(self.base, 'others')
        others.mkdir()
        (others / 'openshell-gateway').write_text(
            f'#!/bin/sh\nAWS_ENDPOINT_URL_STS={self.tokens.url} exec {self.INSTALLED.programs}/openshell-gateway "$@"\n')
        (others / 'openshell-gateway').chmod(0o755)
        self.call('setup', '--workdir', str(self.own), *self.options('own-report'), PATH=f'{others}:{self.env["PATH"]}')
        self.gateway_state = self.state()
        self.pki = str(self.gateway_state / 'pki')
        entry = json.loads(read(next(self.gateway_state.glob('config/openshell/gateways/*/metadata.json'))))
        self.address = entry['gateway_endpoint']
        self.port = entry['gateway_port']
        self.keeper = json.loads(self.call('sandbox', 'list', '--json'))['sandboxes'][0]['name']

    def tearDown(self):
        if self.keeper:
            self.call('sandbox', 'delete', self.keeper)
        super().tearDown()

    def state_of_run(self):
        found = [state for state in self.states() if state != self.gateway_state]
        self.assertEqual(len(found), 1)
        return found[0]

    def remote(self, address=None, tls=None):
        return ['--gateway', address or self.address, '--gateway-tls', tls or self.pki]

    def openshell(self, *words):
        done = subprocess.run([self.INSTALLED.programs + '/openshell', *words], capture_output=True, text=True, timeout=600,
                              env=self.env | {'XDG_CONFIG_HOME': str(self.gateway_state / 'config')})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def listed(self):
        lines = self.call('sandbox', 'list', '--backend', 'openshell', *self.remote(), '--json')
        return {one['name'] for one in json.loads(lines)['sandboxes']} - {self.gateway_state.name}

    def proxy(self, delay=0.0):
        proxy = Proxy(self.port, delay)
        self.addCleanup(proxy.close)
        return proxy

    def refused(self, report, words, code, said, hint, **env):
        run = self.start('run', *self.options(report), *words, '--', 'echo', 'never', **env)
        output, errors = self.end(run, code)
        self.assertEqual(output, '')
        self.assertIn(said, errors)
        self.assertRegex(errors, 'hint: ' + hint)
        outcome = self.record(report)['outcome']
        self.assertEqual((outcome['kind'], outcome['exit_code']), ('setup-failed', code))

    def check_lost(self, report, code, *kept):
        outcome = self.record(report)['outcome']
        self.assertEqual((outcome['kind'], outcome['exit_code']), ('gateway-lost', code), outcome)
        for text in kept:
            self.assertIn(text, read(f'{self.base}/{report}/agent.log'))
        self.assertEqual(self.record(report)['changes']['complete'], False)

    def begin(self, report, *words, script='echo begun; sleep 100', **env):
        run = self.start('run', *self.options(report), *words, '--', 'sh', '-c', script, **env)
        self.assertEqual(run.stdout.readline(), 'begun\n')
        return run

    def test_certificates(self):
        """What is not the gateway's, or not what it takes, is refused as a setup that is wrong."""
        self.assertEqual(self.call('run', *self.options('control'), *self.remote(), '--', 'echo', 'fine'), 'fine\n')
        others = f'{self.base}/others'
        subprocess.run([self.INSTALLED.programs + '/openshell-gateway', 'generate-certs', '--output-dir', others], check=True,
                       capture_output=True, timeout=600)
        mixed, junk, half = (pathlib.Path(self.base, name) for name in ('mixed', 'junk', 'half'))
        for place in (mixed, junk, half):
            place.mkdir()
            shutil.copy(self.pki + '/ca.crt', place)
        for name in ('tls.crt', 'tls.key'):
            shutil.copy(f'{others}/client/{name}', mixed)
            (junk / name).write_text('junk\n')
        tls = 'hint: --gateway-tls DIR'
        for name, place, code, said in (('others', others, 78, 'invalid peer certificate'), ('mixed', mixed, 78, 'fatal alert'),
                                        ('junk', junk, 78, 'no private key'), ('half', half, 66, 'tls.crt')):
            with self.subTest(name):
                self.refused('r-' + name, self.remote(tls=str(place)), code, said, tls.removeprefix('hint: '))

    def test_its_keys_are_not_uploaded(self):
        """Nor other files of credentials, where they lie in the checkout; and none of them is a change."""
        place = pathlib.Path(self.work, 'tls')
        shutil.copytree(self.pki, place)
        (self.work / 'account.json').write_text(SECRET)
        (self.work / 'new.txt').write_text('new\n')
        output = self.call('run', *self.options('r'), *self.remote(tls='tls'), '--apply', '--', 'sh', '-c', 'ls; echo more >>a.txt',
                           GOOGLE_APPLICATION_CREDENTIALS=str(self.work / 'account.json'))
        self.assertEqual(output.split(), ['a.txt', 'd', 'new.txt'])
        self.assertEqual(self.record('r')['changes']['files'], 1)
        self.assertTrue((place / 'client/tls.key').exists())
        self.assertTrue((self.work / 'account.json').exists())

    def test_tokens(self):
        """Of a gateway that this user has logged in to, by its name: one that is valid, and those that are not."""
        issuer = Issuer(self.base)
        self.addCleanup(issuer.server.server_close)
        self.addCleanup(issuer.server.shutdown)
        with self.token_gateway(issuer) as port:
            config = pathlib.Path(self.base, 'user/openshell')
            entry = config / 'gateways/fleet'
            (entry / 'mtls').mkdir(parents=True)
            shutil.copy(self.pki + '/ca.crt', entry / 'mtls')
            (entry / 'metadata.json').write_text(json.dumps({
                'name': 'fleet', 'gateway_endpoint': f'https://127.0.0.1:{port}', 'is_remote': False, 'gateway_port': port,
                'auth_mode': 'oidc', 'oidc_issuer': issuer.url, 'oidc_client_id': 'openshell-cli'}))
            user = {'XDG_CONFIG_HOME': str(config.parent)}
            fleet = ['--gateway', 'fleet']
            good, late = issuer.token(36000), issuer.token(-36000)
            far, past = int(time.time()) + 36000, int(time.time()) - 36000
            login = entry / 'oidc_token.json'
            login.write_text(json.dumps(good | {'expires_at': far}))
            self.assertEqual(self.call('run', *self.options('control'), *fleet, '--', 'echo', 'fine', **user), 'fine\n')
            for name, token in (('expired', late | {'expires_at': far}), ('stale', late | {'expires_at': past})):
                with self.subTest(name):
                    login.write_text(json.dumps(token))
                    self.refused('r-' + name, fleet, 78, 'refuses the credentials', "openshell gateway login fleet", **user)
            login.unlink()
            self.refused('r-none', fleet, 78, 'openshell status', 'openshell gateway login fleet', **user)
            self.refused('r-unknown', ['--gateway', 'flet'], 66, 'no gateway is registered', 'openshell gateway list', **user)
            # A token that ends half-way.
            login.write_text(json.dumps(good | {'expires_at': far}))
            run = self.begin('r-late', *fleet, script='echo begun; while [ ! -e /tmp/on ]; do sleep 0.1; done; exit 3', **user)
            copied = self.state_of_run() / 'config/openshell/gateways/fleet/oidc_token.json'
            valid = copied.read_text()
            copied.write_text(json.dumps(late | {'expires_at': far}))
            subprocess.run([self.INSTALLED.programs + '/openshell', '--gateway', 'fleet', 'sandbox', 'exec', '-n',
                            self.state_of_run().name, '--no-tty', '--', 'touch', '/tmp/on'], check=True, capture_output=True, timeout=600, env=self.env | user)
            _, errors = self.end(run, 78)
            self.assertIn('later=agentic-ci sandbox delete aci-', errors)
            self.check_lost('r-late', 78, 'begun')
            login.write_text(valid)
            left = self.call('sandbox', 'list', '--backend', 'openshell', *fleet, '--json', **user)
            (name,) = [one['name'] for one in json.loads(left)['sandboxes']]
            self.call('sandbox', 'delete', name, '--backend', 'openshell', *fleet, **user)

    @staticmethod
    def plain(log):
        return re.sub('\x1b\\[[0-9;]*m', '', read(log))

    @contextlib.contextmanager
    def token_gateway(self, issuer):
        """A second gateway beside the first, which takes tokens and no client certificates."""
        with socket.create_server(('127.0.0.1', 0)) as free:
            port = free.getsockname()[1]
        text = read(self.gateway_state / 'gateway.toml')
        text = re.sub(r'bind_address = ".*"', f'bind_address = "127.0.0.1:{port}"', text)
        text = re.sub(r'client_ca_path = .*\n|\[openshell\.gateway\.mtls_auth\]\nenabled = true\n', '', text)
        text = re.sub(r'(sandbox_namespace = ".*)"', r'\1-t"', text)
        pathlib.Path(self.base, 'tokens.toml').write_text(text)
        log = f'{self.base}/tokens.log'
        with open(log, 'w') as file, subprocess.Popen(
                [self.INSTALLED.programs + '/openshell-gateway', '--config', f'{self.base}/tokens.toml', '--oidc-issuer', issuer.url,
                 '--db-url', f'sqlite:{self.base}/tokens.db?mode=rwc'], stdout=file, stderr=file,
                env=self.env | {'XDG_STATE_HOME': self.base + '/state', 'XDG_DATA_HOME': self.base + '/data'}) as gateway:
            try:
                self.assertTrue(wait_until(lambda: f'127.0.0.1:{port} listener' in self.plain(log) or gateway.poll() is not None))
                self.assertIsNone(gateway.poll(), read(log))
                yield port
            finally:
                gateway.kill()

    def test_slow(self):
        """A gateway far away is as any other."""
        out = self.call('run', *self.options('r'), *self.remote(self.proxy(0.1).url), '--', 'sh', '-c', 'echo new >n.txt; echo fine')
        self.assertEqual((out, self.record('r')['changes']['files']), ('fine\n', 1))

    def test_dead_or_silent(self):
        """From the beginning: one that does not listen, and one that listens and says nothing."""
        with socket.create_server(('127.0.0.1', 0)) as closed:
            port = closed.getsockname()[1]
        hint = 'openshell --gateway-endpoint \'https://127.0.0.1'
        self.refused('r-dead', self.remote(f'https://127.0.0.1:{port}'), 75, 'Connection refused', hint)
        proxy = self.proxy()
        proxy.stalled = True
        self.refused('r-silent', self.remote(proxy.url), 75, 'no response in time', hint)

    def test_silent_half_way(self):
        """The run's own limit ends the wait, and what came is kept; the sandbox is found by its label later."""
        proxy = self.proxy()
        run = self.begin('r', *self.remote(proxy.url), '--timeout', '20s')
        proxy.stalled = True
        self.end(run, 75)
        self.check_lost('r', 75, 'begun')
        self.assertEqual(self.controls('r')['removal'], 'unavailable')
        (name,) = self.listed()
        self.call('sandbox', 'delete', name, '--backend', 'openshell', *self.remote())

    def test_cut_half_way(self):
        """Lost at once, and its remains are found by their label and deleted, with their credentials; nothing else is."""
        proxy = self.proxy()
        run = self.begin('r', *self.remote(proxy.url), '--secret', 'TOKEN@host.openshell.internal', TOKEN=SECRET)
        proxy.cut()
        _, errors = self.end(run, 75)
        self.check_lost('r', 75, 'begun')
        (name,) = self.listed()
        self.assertIn(f'later=agentic-ci sandbox delete {name} --backend openshell --gateway {proxy.url} --gateway-tls {self.pki}', errors)
        self.assertIn(name + '-0', self.openshell('provider', 'list', '--names'))
        self.openshell('sandbox', 'create', '--name', 'theirs', '--detach', '--no-tty', '--no-auto-providers', '--from', self.OPTIONS[1],
                       '--', 'sleep', 'infinity')
        self.assertEqual(self.listed(), {name})
        delete = ['sandbox', 'delete', '--backend', 'openshell', *self.remote()]
        self.call(*delete, 'theirs', expect=77)
        self.call(*delete, 'aci-0123456789ab', expect=66)
        self.call(*delete, name)
        self.assertEqual(self.listed(), set())
        self.assertNotIn(name, self.openshell('provider', 'list', '--names'))
        self.call(*delete, name, expect=66)
        self.assertIn('theirs', self.openshell('sandbox', 'list', '--names'))
        self.openshell('sandbox', 'delete', 'theirs')

    def test_creation_fails(self):
        """What was made by then and cannot be deleted is named, with the command that deletes it later."""
        words = ['run', *self.options('r'), *self.remote(), '--secret', 'TOKEN@host.openshell.internal', '--', 'true']
        script = 'case "$1 $2" in "sandbox create") real "$@"; echo "Error: no" >&2; exit 1;; '
        _, errors = self.end(self.start(*words, TOKEN=SECRET, PATH=self.openshell_that(script + 'esac')), 74)
        self.assertNotIn('later=', errors)
        self.assertEqual(self.listed(), set())
        _, errors = self.end(self.start(*words, TOKEN=SECRET, PATH=self.openshell_that(script + '*" delete") no;; esac')), 74)
        (name,) = self.listed()
        later = f'agentic-ci sandbox delete {name} --backend openshell --gateway {self.address} --gateway-tls {self.pki}'
        self.assertIn('later=' + later, errors)
        self.call(*later.split()[1:])
        self.assertEqual(self.listed(), set())
        self.assertNotIn(name, self.openshell('provider', 'list', '--names'))

    def hold_provider(self, name):
        """A provider of the gateway's own, whose credential HELD goes where a policy binds it."""
        profile = pathlib.Path(self.base, name + '.yaml')
        profile.write_text(json.dumps({
            'id': name, 'display_name': name, 'description': 'held', 'category': 'other', 'endpoints': [], 'binaries': [],
            'credentials': [{'name': 'value', 'description': 'held', 'env_vars': ['HELD'], 'required': True}]}))
        self.openshell('provider', 'profile', 'import', '--file', str(profile))
        self.openshell('provider', 'create', '--name', name, '--type', name, '--credential', 'HELD=' + SECRET)

    def test_a_provider_that_the_gateway_holds(self):
        """By its name, without a variable here; it is looked for first, and stays when the run has ended."""
        self.hold_provider('held')
        policy = json.loads(read(self.policy))
        policy['network_policies']['host']['endpoints'][0]['credential_binding'] = {'provider': 'held'}
        pathlib.Path(self.policy).write_text(json.dumps(policy))
        script = f'echo $HELD; curl -sS -m 20 -H "X-Token: $HELD" {self.url("/held")}'
        output = self.call('run', *self.options('r'), *self.remote(), '--gateway-provider', 'held', '--', 'sh', '-c', script)
        self.assertIn('openshell:resolve:env:', output)
        self.assertNotIn(SECRET, output)
        self.assertEqual(self.server.seen, [('/held', SECRET)])
        self.assertEqual(self.record('r')['credentials'], ['held@gateway'])
        self.assertEqual(self.openshell('provider', 'list', '--names').split(), ['held'])
        self.refused('r-bound', self.remote(), 78, "the provider 'held' is not enabled", '--provider held')
        self.refused('r-unknown', [*self.remote(), '--gateway-provider', 'held', '--gateway-provider', 'hled'], 66,
                     "the gateway holds no provider 'hled'", 'openshell .* provider list')
        self.assertEqual(self.openshell('sandbox', 'list', '--names').split(), [self.gateway_state.name])
        for backend in ('openshell', 'native'):  # Without a gateway of others, nothing holds one.
            _, errors = self.end(self.start('run', '--backend', backend, '--gateway-provider', 'held', '--', 'true'), 64)
            self.assertIn('--gateway-provider needs', errors)

    def bind_provider(self, name, **keys):
        policy = json.loads(read(self.policy))
        policy['network_policies']['host']['endpoints'][0] |= {'access': 'read-write', 'credential_binding': {'provider': name}, **keys}
        pathlib.Path(self.policy).write_text(json.dumps(policy))

    def test_a_token_of_google_that_the_gateway_refreshes(self):
        """As its profile google-vertex-ai does; a sandbox that runs is given each new one."""
        key = subprocess.run(['openssl', 'genpkey', '-algorithm', 'RSA'], check=True, capture_output=True, text=True).stdout
        profile = json.loads(self.openshell('provider', 'list-profiles', '-o', 'json'))
        profile = next(one for one in profile if one['id'] == 'google-vertex-ai')
        token = next(one for one in profile['credentials'] if one['name'] == 'service_account_token')
        self.assertEqual(token['refresh']['strategy'], 'google_service_account_jwt')
        token['refresh']['token_url'] = self.tokens.url
        file = pathlib.Path(self.base, 'vertex.yaml')
        file.write_text(json.dumps({name: value for name, value in profile.items() if name != 'source'} | {
            'id': 'acme-vertex', 'endpoints': [], 'credentials': [token], 'discovery': {'credentials': []}}))
        self.openshell('provider', 'profile', 'import', '--file', str(file))
        self.openshell('provider', 'create', '--name', 'acme-vertex', '--type', 'acme-vertex', '--runtime-credentials')
        variable = 'VERTEX_AI_SERVICE_ACCOUNT_TOKEN'
        self.openshell('provider', 'refresh', 'configure', 'acme-vertex', '--credential-key', variable, '--strategy', 'google-service-account-jwt',
                       '--material', 'client_email=ci@acme.example', '--material', f'private_key={key}', '--secret-material-key', 'private_key')
        rotate = ['provider', 'refresh', 'rotate', 'acme-vertex', '--credential-key', variable]
        self.openshell(*rotate)
        self.bind_provider('acme-vertex')
        run = self.begin('r', *self.remote(), '--gateway-provider', 'acme-vertex', script=(
            f'echo begun; while echo "${variable}"; do curl -s -m 20 -H "Authorization: Bearer ${variable}" {self.url("/v")}; sleep 0.2; done'))
        self.assertTrue(wait_until(lambda: ('/v', 'Bearer minted-1') in self.server.seen), self.server.seen)
        self.openshell(*rotate)
        self.assertTrue(wait_until(lambda: ('/v', 'Bearer minted-2') in self.server.seen), self.server.seen)
        run.send_signal(signal.SIGTERM)
        output, _ = self.end(run, 143)
        self.assertNotIn('minted', output)
        self.assertEqual(self.record('r')['credentials'], ['acme-vertex@gateway'])
        self.assertEqual(len(self.tokens.asked), 2)
        self.assertIn('assertion=', self.tokens.asked[0])
        self.assertEqual(self.openshell('provider', 'list', '--names').split(), ['acme-vertex'])

    def test_requests_to_aws_that_the_sandbox_signs(self):
        """With credentials of a role that the gateway takes on and refreshes: those of its profile aws."""
        self.openshell('settings', 'set', '--global', '--key', 'providers_v2_enabled', '--value', 'true', '--yes')
        self.openshell('provider', 'create', '--name', 'role', '--type', 'aws', '--runtime-credentials')
        self.openshell('provider', 'refresh', 'configure', 'role', '--credential-key', 'AWS_ACCESS_KEY_ID', '--strategy', 'aws-sts-assume-role',
                       *(word for pair in ('role_arn=arn:aws:iam::123456789012:role/ci', 'aws_region=us-east-1', 'aws_access_key_id=AKIAEXAMPLE000000001',
                                           f'aws_secret_access_key={SECRET}') for word in ('--material', pair)),
                       '--secret-material-key', 'aws_secret_access_key')
        self.openshell('provider', 'refresh', 'rotate', 'role', '--credential-key', 'AWS_ACCESS_KEY_ID')
        self.bind_provider('role', credential_signing='sigv4', signing_service='bedrock', signing_region='us-east-1')
        signed = f'AWS4-HMAC-SHA256 Credential=%s/20261201/us-east-1/bedrock/aws4_request, SignedHeaders=host;x-amz-date, Signature={"0" * 64}'
        script = 'env | grep AWS; ask() { curl -sS -m 20 -d "{}" -H "$1" "$2"; }; ' + '; '.join(
            f'ask "{field}" {self.url(path)}' for field, path in (
                ('X-Other: 1', '/plain'), ('Authorization: ' + signed % 'AKIADUMMY00000000001', '/signed'),
                ('Authorization: ' + signed % '$AWS_ACCESS_KEY_ID', '/placeholder')))
        output = self.call('run', *self.options('r'), *self.remote(), '--gateway-provider', 'role', '--', 'sh', '-c', script)
        self.assertNotIn('minted', output.lower())
        self.assertIn('credential_injection_failed', output)
        self.assertEqual([path for path, _ in self.server.seen], ['/plain', '/signed'])
        for _, field in self.server.seen:
            self.assertRegex(field, '^AWS4-HMAC-SHA256 Credential=ASIAMINTED0000000001/[0-9]{8}/us-east-1/bedrock/aws4_request, ')
            self.assertNotIn('0' * 64, field)
        self.assertIn('Action=AssumeRole', self.tokens.asked[0])

    def test_the_active_gateway(self):
        """The one that this user has selected is used where none is named; `own` is one of the run's own all the same."""
        shutil.copytree(self.gateway_state / 'config', self.base + '/user')
        user = {'XDG_CONFIG_HOME': self.base + '/user'}
        selected = pathlib.Path(self.base, 'user/openshell/active_gateway')
        name = selected.read_text()
        for words, variables, there in (((), user, 1), (('--gateway', 'own'), user, 0), ((), {}, 0),
                                        ((), user | {'OPENSHELL_GATEWAY': name}, 1)):
            with self.subTest((words, variables)):
                if 'OPENSHELL_GATEWAY' in variables:
                    selected.unlink()
                run = self.begin('r', *words, **variables)
                self.assertEqual(len(self.listed()), there)
                run.send_signal(signal.SIGTERM)
                _, errors = self.end(run, 143)
                self.assertEqual(f'gateway={name}' in errors, bool(there))
                self.assertEqual(self.listed(), set())
        self.refused('r-gone', [], 66, "no gateway is registered as 'gone'", 'openshell gateway list', OPENSHELL_GATEWAY='gone')

    def test_killed(self):
        """What a killed run left on the gateway of others is gone after the next command."""
        run = self.begin('r', *self.remote(), '--secret', 'TOKEN@host.openshell.internal', TOKEN=SECRET)
        self.assertEqual(len(self.listed()), 1)
        run.kill()
        run.communicate(timeout=600)
        self.call('sandbox', 'list')
        self.assertEqual(self.listed(), set())
        self.assertNotIn('aci-', self.openshell('provider', 'list', '--names'))

    def test_gateway_killed(self):
        """Its loss is 75, and the report has what came before; it is the same for the sandbox whose gateway it was."""
        # The control: with the gateway there, the same ends well, and stops nothing that is not its own.
        self.call('run', *self.options('control'), *self.remote(), '--secret', 'TOKEN@host.openshell.internal', '--', 'echo', 'fine',
                  TOKEN=SECRET)
        self.assertNotIn('removal', self.controls('control'))
        self.call('sandbox', 'exec', self.keeper, '--', 'true')
        run = self.begin('r', *self.remote())
        os.kill(self.gateway(), signal.SIGKILL)
        self.end(run, 75)
        self.check_lost('r', 75, 'begun')
        self.assertEqual(self.controls('r')['removal'], 'unavailable')
        # The one whose gateway it was has ended by itself.
        self.assertTrue(wait_until(lambda: os.path.exists(f'{self.base}/own-report/run.json')))
        self.assertEqual(self.record('own-report')['outcome']['exit_code'], 75)
        self.assertTrue(wait_until(lambda: not list(pathlib.Path(self.base, 'agentic-ci').glob('setup-*'))))
        self.keeper = ''


if __name__ == '__main__':
    main(sys.argv)
