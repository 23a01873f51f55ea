# SPDX-License-Identifier: Apache-2.0
"""Services that exchange a job's identity, as their public documentation says: each checks the token's signature, issuer,
audience and time, and its own fields, and answers as it would. Their addresses differ in the path only.

Sources: Anthropic "Workload identity federation" (reference), OpenAI "Workload identity federation" (API reference), AWS STS
AssumeRoleWithWebIdentity, Microsoft Entra client credentials with a federated credential, Google STS and IAM Credentials, GitHub
"OpenID Connect reference".
"""
import base64
import json
import re
import threading
import time
import urllib.parse

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

ISSUER = 'https://token.actions.githubusercontent.com'
SUBJECT = 'repo:acme/site:pull_request'
POOL = 'projects/123/locations/global/workloadIdentityPools/ci/providers/github'
AUDIENCES = {'anthropic': 'https://api.anthropic.com', 'openai': 'https://api.openai.com/v1', 'aws': 'sts.amazonaws.com',
             'azure': 'api://AzureADTokenExchange', 'google': f'https://iam.googleapis.com/{POOL}'}
GOOGLE_SCOPES = 'https://www.googleapis.com/auth'
BETAS = {'oauth-2025-04-20', 'oidc-federation-2026-04-01'}
# A line of an agent's that asks its model.
ASK = '''curl -sS -o /dev/null -w 'the model: %{http_code}\\n' -H "Authorization: Bearer $ANTHROPIC_AUTH_TOKEN" \\
  "$ANTHROPIC_BASE_URL/v1/messages" -H 'Content-Type: application/json' \\
  -d '{"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}' >status.seen
'''
STS = '''<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult>
<Credentials><SessionToken>%s</SessionToken><SecretAccessKey>%s</SecretAccessKey><Expiration>%s</Expiration><AccessKeyId>%s</AccessKeyId></Credentials>
</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>'''


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b'=').decode()


def unb64(text):
    return base64.urlsafe_b64decode(text + '=' * (-len(text) % 4))


def fill(config, at):
    """The configuration of an example, with what the service takes, and its address `at`."""
    for name, value in (('federation_rule', 'fdrl_1'), ('organization', 'org-1'), ('service_account', 'svac_1'), ('workspace', 'default')):
        config, count = re.subn(rf'({name}: ).+', rf'\1{value}', config)
        assert count == 1, name
    return f'{config}      host: "{at}"\n'


class Refused(Exception):
    """The service's own words for why."""


class Services:
    """What they were asked, and what they are to do wrong."""

    def __init__(self):
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.lock = threading.Lock()
        self.minted = 0
        self.spent = set()
        self.exchanges = []  # The service of each that was taken.
        self.refusals = []
        self.valid = set()  # Tokens that the APIs take.
        self.lifetime = 3600
        self.skew = 0  # Of the services' clock.
        self.failing = []  # Statuses with which the next exchanges are answered.
        self.asked = []  # Every request.
        self.api = []  # (path, fields) of each request to an API.

    def mint(self, audience, seconds=300, subject=SUBJECT, **claims):
        with self.lock:
            self.minted += 1
            number = self.minted
        now = int(time.time())
        claims = {'iss': ISSUER, 'sub': subject, 'aud': audience, 'iat': now, 'nbf': now - 5, 'exp': now + seconds,
                  'jti': f'jti-{number}', **claims}
        signed = b64(json.dumps({'alg': 'RS256', 'kid': 'k1', 'typ': 'JWT'}).encode()) + '.' + b64(json.dumps(claims).encode())
        signature = self.key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return signed + '.' + b64(signature)

    def check(self, jwt, audience, once=False):
        """Raises what is wrong with it."""
        try:
            head, payload, signature = jwt.split('.')
            self.key.public_key().verify(unb64(signature), f'{head}.{payload}'.encode(), padding.PKCS1v15(), hashes.SHA256())
        except Exception as fault:
            raise Refused('signature') from fault
        claims, now = json.loads(unb64(payload)), time.time() + self.skew
        for name, good in (('iss', claims['iss'] == ISSUER), ('aud', claims['aud'] == audience), ('sub', claims['sub'] == SUBJECT),
                           ('exp', claims['exp'] > now - 30), ('nbf', claims['nbf'] < now + 30)):
            if not good:
                raise Refused(name)
        with self.lock:
            if once and claims['jti'] in self.spent:
                raise Refused('jti_reused')
            self.spent.add(claims['jti'])

    def grant(self, service, kind='token'):
        with self.lock:
            self.exchanges.append(service)
            token = f'{kind}-{service}-{len(self.exchanges)}-5ecret'
            self.valid.add(token)
        return token

    def answer(self, asked):
        """(status, body) for an upstream.Asked."""
        path, _, query = asked.target.partition('?')
        self.asked.append(asked)
        if path == '/gh/token':
            return self.github(asked, query)
        if path.startswith('/api/') or path == '/v1/messages':
            return self.serve(asked)
        with self.lock:
            status = self.failing.pop(0) if self.failing else 0
        if status:
            return status, b'{"error": "temporarily_unavailable"}'
        try:
            if path == '/v1/oauth/token':
                return self.anthropic(asked)
            if path == '/oauth/token':
                return self.openai(asked)
            if path == '/' and asked.method == 'POST':
                return self.aws(asked)
            if path == '/tenant-1/oauth2/v2.0/token':
                return self.azure(asked)
            if path == '/v1/token':
                return self.google(asked)
            if path.startswith('/v1/projects/-/serviceAccounts/'):
                return self.impersonate(asked)
        except Refused as why:
            self.refusals.append(str(why))
            return self.refuse(path, str(why))
        return 404, b''

    @staticmethod
    def refuse(path, why):
        if path == '/v1/oauth/token':
            return 401, b'{"type":"error","error":{"type":"authentication_error","message":"Authentication failed"}}'
        if path == '/':
            code = {'exp': 'ExpiredTokenException', 'aud': 'InvalidIdentityToken'}.get(why, 'AccessDenied')
            return 400, f'<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>no</Message></Error></ErrorResponse>'.encode()
        if path.startswith('/tenant'):
            return 401, json.dumps({'error': 'invalid_client', 'error_description': f'AADSTS700213: No matching federated identity record for {SUBJECT}'}).encode()
        return 400, b'{"error":"invalid_grant","error_description":"rejected by the attribute condition"}'

    def github(self, asked, query):
        """The job's own: GET with the request token, and an audience behind the query that is there."""
        values = urllib.parse.parse_qs(query)
        if asked.method != 'GET' or asked.field('authorization') != ['Bearer request-t0ken-5ecret'] or values['api-version'] != ['2.0']:
            return 401, b'{}'
        return 200, json.dumps({'value': self.mint(values['audience'][0])}).encode()

    @staticmethod
    def want(given, wanted, **optional):
        """`optional`: fields that a client may leave out."""
        for name, value in {**optional, **wanted}.items():
            if (name in wanted or name in given) and given.get(name) != value:
                raise Refused(f'{name}: {given.get(name)}')
        if set(given) - set(optional) != set(wanted):
            raise Refused(f'fields {sorted(given)}')

    def anthropic(self, asked):
        body = json.loads(asked.body)
        jwt = body.pop('assertion')
        if not BETAS <= set(','.join(asked.field('anthropic-beta')).replace(' ', '').split(',')):
            raise Refused('anthropic-beta')
        self.want(body, {'grant_type': 'urn:ietf:params:oauth:grant-type:jwt-bearer', 'federation_rule_id': 'fdrl_1',
                         'organization_id': 'org-1', 'service_account_id': 'svac_1', 'workspace_id': 'default'})
        self.check(jwt, AUDIENCES['anthropic'], once=True)
        return self.token('anthropic')

    def openai(self, asked):
        body = json.loads(asked.body)
        jwt = body.pop('subject_token')
        self.want(body, {'grant_type': 'urn:ietf:params:oauth:grant-type:token-exchange', 'identity_provider_id': 'idp_1',
                         'subject_token_type': 'urn:ietf:params:oauth:token-type:jwt', 'service_account_id': 'sa_1'})
        self.check(jwt, AUDIENCES['openai'])
        return self.token('openai')

    def form(self, asked):
        if asked.field('content-type')[0].split(';')[0] != 'application/x-www-form-urlencoded':
            raise Refused('content-type')
        return {name: values[0] for name, values in urllib.parse.parse_qs(asked.body.decode(), strict_parsing=True).items()}

    def aws(self, asked):
        body = self.form(asked)
        jwt = body.pop('WebIdentityToken')
        self.want(body, {'Action': 'AssumeRoleWithWebIdentity', 'Version': '2011-06-15', 'RoleArn': 'arn:aws:iam::123456789012:role/ci',
                         'RoleSessionName': 'agentic-ci'}, DurationSeconds='3600')
        self.check(jwt, AUDIENCES['aws'])
        end = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(time.time() + self.lifetime))
        self.grant('aws')
        return 200, (STS % ('session/5ecret+token==', 'aws/5ecret+Key/abcdefghijklmnopqrstuvwx', end, 'ASIAQWERTYUIOPASDFGH')).encode()

    def azure(self, asked):
        body = self.form(asked)
        jwt = body.pop('client_assertion')
        self.want(body, {'grant_type': 'client_credentials', 'client_id': 'client-1', 'scope': 'https://cognitiveservices.azure.com/.default',
                         'client_assertion_type': 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'})
        self.check(jwt, AUDIENCES['azure'])
        return self.token('azure')

    def google(self, asked):
        body = self.form(asked)
        jwt = body.pop('subject_token')
        if body.pop('scope') not in (f'{GOOGLE_SCOPES}/cloud-platform', f'{GOOGLE_SCOPES}/iam'):
            raise Refused('scope')
        self.want(body, {'grant_type': 'urn:ietf:params:oauth:grant-type:token-exchange', 'audience': f'//iam.googleapis.com/{POOL}',
                         'subject_token_type': 'urn:ietf:params:oauth:token-type:jwt',
                         'requested_token_type': 'urn:ietf:params:oauth:token-type:access_token'})
        self.check(jwt, AUDIENCES['google'])
        return self.token('google')

    def impersonate(self, asked):
        given = asked.field('authorization')[0].removeprefix('Bearer ')
        if given not in self.valid or asked.target != '/v1/projects/-/serviceAccounts/ci@p.iam.gserviceaccount.com:generateAccessToken':
            raise Refused('impersonation')
        self.want(json.loads(asked.body), {'scope': [f'{GOOGLE_SCOPES}/cloud-platform'], 'lifetime': '3600s'}, delegates=None)
        end = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(time.time() + 3600))
        return 200, json.dumps({'accessToken': self.grant('account'), 'expireTime': end}).encode()

    def token(self, service):
        return 200, json.dumps({'access_token': self.grant(service), 'token_type': 'Bearer', 'expires_in': self.lifetime}).encode()

    def serve(self, asked):
        """A service's API: it takes what was granted, and nothing else."""
        fields = {name.lower(): value for name, value in asked.fields}
        with self.lock:
            self.api.append((asked.target, fields))
        given = fields.get('authorization', '')
        if given.startswith('AWS4-HMAC-SHA256 Credential=ASIAQWERTYUIOPASDFGH/'):
            return (200, b'fine') if fields.get('x-amz-security-token') == 'session/5ecret+token==' else (403, b'')
        return (200, b'fine') if given.removeprefix('Bearer ') in self.valid else (401, b'{"error":"invalid token"}')
