#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Credentials in real runs: what the agent sees, what services are asked with, what is refused, and that
no value is in anything that a run writes.

credentials_test.py AGENTIC_CI [unittest arguments]
"""
import base64
import hashlib
import hmac
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from upstream import Upstream  # noqa: E402

BINARY = os.path.abspath(sys.argv.pop(1))
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
HOST, OTHER = "host.openshell.internal", "host.docker.internal"

# Every value that must be seen nowhere but at its service.
ANTHROPIC = "sk-ant-" + "api03-5ecretValue0123456789abcdef"
TOKEN = 't0ken-5ecret"\\&='
AWS_ID, AWS_KEY, AWS_SESSION = "AKIAQWERTYUIOPASDFGH", "aws/5ecret+Key/abcdefghijklmnopqrstuvwx", "aws-5ession-token"
REFRESH, CLIENT = "refresh-5ecret-token", "client-5ecret-value"
SECRETS = [ANTHROPIC, TOKEN, json.dumps(TOKEN)[1:-1], urllib.parse.quote(TOKEN, safe=""), AWS_KEY, AWS_SESSION,
           REFRESH, CLIENT, "granted-t0ken-", "5ecret"]

POLICY = """version: 1
network_policies:
  services:
    endpoints:
      - {{host: HOST, port: {anthropic}, protocol: rest, enforcement: enforce, access: full}}
      - {{host: HOST, port: {plain}, protocol: rest, enforcement: enforce, access: full}}
      - {{host: HOST, port: {elsewhere}, protocol: rest, enforcement: enforce, access: full}}
      - {{host: HOST, port: {rewrite}, protocol: rest, enforcement: enforce, access: full,
         request_body_credential_rewrite: true}}
      - {{host: HOST, port: {signed}, protocol: rest, enforcement: enforce, access: full,
         credential_signing: "sigv4:body", signing_service: bedrock, signing_region: eu-west-1}}
      - {{host: HOST, port: {unsigned}, protocol: rest, enforcement: enforce, access: full,
         credential_signing: "sigv4:no_body", signing_service: s3, signing_region: eu-west-1}}
      - {{host: HOST, port: {vertex}, protocol: rest, enforcement: enforce, access: full}}
      - {{host: HOST, port: {echo}, protocol: rest, enforcement: enforce, access: read-only}}
      - {{host: OTHER, port: {redacted}, protocol: rest, enforcement: enforce, access: full}}
    binaries: [{{path: "/**"}}]
network_middlewares:
  keys:
    middleware: openshell/regex
    config: {{mode: redact}}
    endpoints: {{include: [OTHER]}}
""".replace("HOST", HOST).replace("OTHER", OTHER)


def marker(name):
    return "openshell:resolve:env:" + name


class Run:
    """Runs that share their services. `send` collects requests, `go` has an agent send them."""

    def __init__(self):
        # Not beneath /tmp: the sandbox has one of its own.
        self.folder = tempfile.mkdtemp(prefix="credentials-test-", dir="/var/tmp")
        os.chmod(self.folder, 0o755)
        self.upstream = Upstream(self.folder)
        self.ports = {name: self.upstream.listen() for name in (
            "anthropic", "plain", "elsewhere", "rewrite", "signed", "unsigned", "vertex", "redacted")}
        self.ports["echo"] = self.upstream.listen(self.upstream.echo)
        self.token_port = self.upstream.listen(self.upstream.grant)
        self.requests = []
        self.written = {}  # Everything that runs wrote, by file.

    def send(self, name, service, path="/v1/x", method="GET", headers=(), pieces=(), chunked=False, host=HOST,
             sleep=0, length=None):
        self.requests.append({
            "name": name, "host": host, "port": self.ports[service], "path": path, "method": method,
            "headers": [["X-Case", name], *map(list, headers)], "chunked": chunked, "sleep": sleep, "length": length,
            "pieces": [base64.b64encode(piece).decode() for piece in pieces]})

    def go(self, label, arguments, variables, policy=POLICY, agent="inside.py"):
        base = os.path.join(self.folder, label)
        checkout, report = base + "/checkout", base + "/report"
        os.makedirs(checkout)
        for name in {"inside.py", agent}:
            shutil.copy(HERE + "/" + name, checkout)
        with open(checkout + "/requests.json", "w") as out:
            json.dump(self.requests, out)
        with open(base + "/policy.yml", "w") as out:
            out.write(policy.format(**self.ports))
        self.requests = []
        done = subprocess.run(
            [BINARY, "run", "--workdir", checkout, "--policy", base + "/policy.yml", "--report-dir", report,
             "--ca-file", self.folder + "/ca.pem", "--timeout", "60s", *arguments, "--", PYTHON, agent],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=600,
            # Short: the environment is printed, and a line of output ends at 2,000 characters.
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": base, **variables})
        self.written[label + "/stdout"], self.written[label + "/stderr"] = done.stdout, done.stderr
        for directory, _, names in os.walk(report):
            for name in names:
                with open(os.path.join(directory, name), errors="replace") as text:
                    self.written[label + "/" + name] = text.read()
        answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
        return done, {name: (head, body) for name, head, body in answers}

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)


RUN = None


def setUpModule():
    global RUN
    RUN = Run()


def tearDownModule():
    # Behind every run, with everything that was refused in it.
    try:
        for name, text in RUN.written.items():
            for secret in SECRETS:
                assert secret not in text, "%s has %r in it" % (name, secret)
        services = RUN.written.get("services/events.log")  # A part of the cases may have been asked for.
        assert services is None or services.count("DENIED") > 10
    finally:
        RUN.close()


class Services(unittest.TestCase):
    """One run with every kind of credential; each case is one request of its agent."""

    maxDiff = None

    @classmethod
    def setUpClass(cls):
        send = RUN.send
        bearer = [("Authorization", "Bearer " + marker("SERVICE_TOKEN"))]
        form = [("Content-Type", "application/x-www-form-urlencoded")]
        typed = [("Content-Type", "application/json")]
        # Anthropic's key, from its provider.
        send("own key", "anthropic", "/v1/messages", headers=[("Authorization", "Bearer mine"), ("x-api-key", "m")])
        send("no key", "anthropic", "/v1/messages")
        send("placeholder", "anthropic", headers=[("x-api-key", marker("ANTHROPIC_API_KEY"))])
        send("revision", "anthropic", headers=[("x-api-key", marker("v7_ANTHROPIC_API_KEY"))])
        send("good id", "anthropic", headers=[("X-Request-ID", "run-7.a")])
        send("bad id", "anthropic", headers=[("X-Request-ID", "run 7 <a>")])
        send("environment to a model", "anthropic", method="POST", headers=typed,
             pieces=[b'{"saw": "' + marker("ANTHROPIC_API_KEY").encode() + b'"}'])
        # A secret bound by hand to the host.
        send("bearer", "plain", headers=bearer)
        send("basic", "plain", headers=[
            ("Authorization", "Basic " + base64.b64encode(("u:" + marker("SERVICE_TOKEN")).encode()).decode())])
        send("query", "plain", "/v1/x?k=" + urllib.parse.quote(marker("SERVICE_TOKEN")))
        send("path", "plain", "/v1/" + marker("PATH_TOKEN") + "/x")
        send("alias", "plain", headers=[("Authorization", "Bearer tok-OPENSHELL-RESOLVE-ENV-SERVICE_TOKEN")])
        # Refused.
        send("other port", "elsewhere", headers=[("x-api-key", marker("ANTHROPIC_API_KEY"))])
        send("unknown name", "plain", headers=[("Authorization", "Bearer " + marker("NOBODY"))])
        send("misplaced", "plain", headers=[("X-Any", "a=" + marker("SERVICE_TOKEN"))])
        send("unsafe in a path", "plain", "/v1/" + marker("SLASHED"))
        for number, token in enumerate(("ghp_" + "a1B2" * 9, "sk-ant-" + "x1Y2z" * 5, "AKIA" + "QW3R" * 4,
                                        "-----BEGIN%20RSA%20PRIVATE%20KEY-----")):
            send("token in query %d" % number, "plain", "/v1/x?t=" + token)
            send("token in path %d" % number, "plain", "/v1/" + token)
        send("token in a signed address", "plain", "/v1/x?X-Amz-Credential=AKIA" + "QW3R" * 4 + "%2F2026")
        send("body", "plain", method="POST", pieces=[b"begin " + marker("SERVICE_TOKEN").encode()])
        send("body in pieces", "plain", method="POST", chunked=True,
             pieces=[b"begin openshell:re", b"solve:env:SERVICE_TOKEN"])
        send("body as a form", "plain", method="POST", headers=form,
             pieces=[b"t=openshell%3Aresolve%3Aenv%3ASERVICE_TOKEN"])
        send("clean body", "plain", method="POST", pieces=[b"x" * 100000], headers=bearer)
        # Bodies rewritten.
        json_body = b'{"t": "' + marker("SERVICE_TOKEN").encode() + b'", "n": 1.50}'
        send("json", "rewrite", method="POST", headers=typed, pieces=[json_body])
        send("json in chunks", "rewrite", method="POST", headers=typed, chunked=True,
             pieces=[json_body[:20], json_body[20:]])
        send("form", "rewrite", method="POST", headers=form, pieces=[b"a=1&t=" + marker("SERVICE_TOKEN").encode()])
        send("unknown in json", "rewrite", method="POST", headers=typed, pieces=[b'"' + marker("NO").encode() + b'"'])
        send("too long", "rewrite", method="POST", headers=typed, pieces=[b'"' + b"x" * 262143 + b'"'])
        send("length of 2^63", "rewrite", method="POST", headers=typed, pieces=[b"{"], length=(1 << 63) - 1)
        send("binary", "rewrite", method="POST", headers=[("Content-Type", "application/octet-stream")],
             pieces=[marker("SERVICE_TOKEN").encode()])
        # Signed anew.
        mine = [("Authorization", "AWS4-HMAC-SHA256 Credential=%s/x, Signature=y" % marker("AWS_ACCESS_KEY_ID")),
                ("X-Amz-Date", "20200101T000000Z"), ("X-Amz-Security-Token", "mine")]
        send("signed", "signed", "/model/a%20b/invoke?b=2&a=1", "POST", [*typed, *mine], [b'{"a": 1}'])
        send("unsigned", "unsigned", "/bucket/key", "PUT", mine, [b"x" * 70000, b"y"])
        send("too long to sign", "signed", "/x", "POST", typed, [b"x" * 10000, b"x" * (10 * 1024 * 1024)])
        # Redacted.
        send("redacted", "redacted", method="POST", host=OTHER, pieces=[b'{"k": "sk-01234567', b'89abcdefXYZ"}'])
        send("not utf-8", "redacted", method="POST", host=OTHER, pieces=[b"\xff\xfe"])
        cls.done, cls.answers = RUN.go("services", [
            "--provider", "anthropic", "--secret", "SERVICE_TOKEN=CI_TOKEN@" + HOST, "--secret", "PATH_TOKEN@" + HOST,
            "--secret", "SLASHED@" + HOST, *[argument for name in (
                "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
                for argument in ("--secret", name + "@" + HOST)]], {
            "ANTHROPIC_API_KEY": ANTHROPIC,
            "ANTHROPIC_BASE_URL": "https://%s:%d" % (HOST, RUN.ports["anthropic"]),
            "CI_TOKEN": TOKEN, "PATH_TOKEN": "path-5ecret", "SLASHED": "../5ecret",
            "AWS_ACCESS_KEY_ID": AWS_ID, "AWS_SECRET_ACCESS_KEY": AWS_KEY, "AWS_SESSION_TOKEN": AWS_SESSION})
        if cls.done.returncode != 0:
            raise AssertionError(cls.done.stderr[-3000:] + cls.done.stdout[-3000:])

    def asked(self, name):
        self.assertIn(" 200 ", self.answers[name][0], (name, self.answers[name]))
        return RUN.upstream.asked[name]

    def refused(self, name, status, error, detail=None):
        head, body = self.answers[name]
        self.assertIn(" %d " % status, head.split("\r\n")[0], (name, head, body))
        self.assertEqual(json.loads(body)["error"], error, name)
        if detail is not None:
            self.assertEqual(json.loads(body)["detail"], detail)
        self.assertNotIn(name, RUN.upstream.asked)

    def test_the_agent_sees_placeholders_and_the_address(self):
        environment = self.answers["environment"][0]
        self.assertIn("'ANTHROPIC_API_KEY': 'openshell:resolve:env:ANTHROPIC_API_KEY'", str(environment))
        self.assertIn("'SERVICE_TOKEN': 'openshell:resolve:env:SERVICE_TOKEN'", str(environment))
        self.assertIn("'ANTHROPIC_BASE_URL': 'https://%s:" % HOST, str(environment))
        self.assertNotIn("CI_TOKEN'", str(environment))

    def test_programs_are_told_of_the_proxy_and_the_authority(self):
        """OpenShell 6.7 #152 and #154; the files are read through by every client of this suite."""
        environment = self.answers["environment"][0]
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "grpc_proxy"):
            self.assertEqual(environment[name], "http://10.200.0.1:3128", name)
        for name in ("NO_PROXY", "no_proxy"):
            self.assertEqual(environment[name].split(",")[:3] + environment[name].split(",")[-1:],
                             ["127.0.0.1", "localhost", "::1", "sandbox"], name)
        for name in ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "DENO_CERT",
                     "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "npm_config_cafile", "PIP_CERT", "CARGO_HTTP_CAINFO", "COMPOSER_CAFILE",
                     "BUNDLE_SSL_CA_CERT", "CONDA_SSL_VERIFY", "MAMBA_SSL_VERIFY", "HEX_CACERTS_PATH", "AWS_CA_BUNDLE",
                     "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE"):
            self.assertRegex(environment[name], "^/etc/openshell-tls/", name)
            self.assertIn(environment[name], self.answers["files"][0], name)

    def test_a_clients_own_key_is_replaced_by_the_bound_one(self):
        for name in ("own key", "no key"):
            asked = self.asked(name)
            self.assertEqual(asked.field("x-api-key"), [ANTHROPIC])
            self.assertEqual(asked.field("authorization"), [])

    def test_placeholders_of_every_form_become_the_value(self):
        for name in ("placeholder", "revision"):
            self.assertEqual(self.asked(name).field("x-api-key"), [ANTHROPIC])
        for name in ("bearer", "alias"):
            self.assertEqual(self.asked(name).field("authorization"), ["Bearer " + TOKEN])
        self.assertEqual(self.asked("basic").field("authorization"),
                         ["Basic " + base64.b64encode(("u:" + TOKEN).encode()).decode()])
        self.assertEqual(self.asked("query").target, "/v1/x?k=" + urllib.parse.quote(TOKEN, safe=""))
        self.assertEqual(self.asked("path").target, "/v1/path-5ecret/x")

    def test_a_request_id_that_is_none_is_replaced(self):
        self.assertEqual(self.asked("good id").field("x-request-id"), ["run-7.a"])
        self.assertRegex(self.asked("bad id").field("x-request-id")[0], "^[0-9a-f]{32}$")
        self.assertEqual(self.asked("no key").field("x-request-id"), [])

    def test_a_placeholder_elsewhere_is_refused(self):
        self.refused("other port", 403, "credential_endpoint_mismatch",
                     "credential ANTHROPIC_API_KEY is bound to another port")
        self.refused("unknown name", 500, "credential_unavailable", "credential NOBODY is unknown")
        self.refused("misplaced", 500, "credential_unavailable")
        self.refused("unsafe in a path", 500, "credential_unavailable", "credential cannot be part of a path")

    def test_a_token_in_an_address_is_refused_and_not_written_down(self):
        kinds = ("github-token", "anthropic-key", "aws-key", "private-key")
        for number, kind in enumerate(kinds):
            for where in ("query", "path"):
                self.refused("token in %s %d" % (where, number), 403, "credential_in_url",
                             kind + " in the URL of a request")
        self.asked("token in a signed address")
        for name, text in RUN.written.items():
            if name != "services/stdout":
                self.assertNotIn("ghp_a1B2", text, name)

    def test_a_placeholder_in_a_body_is_refused_unless_it_goes_to_a_model(self):
        for name in ("body", "body in pieces", "body as a form"):
            self.refused(name, 500, "credential_unavailable", "placeholder in a request body")
        self.assertEqual(len(self.asked("clean body").body), 100000)
        self.assertIn(b"openshell:resolve", self.asked("environment to a model").body)

    def test_bodies_are_rewritten_where_the_policy_says_so(self):
        for name in ("json", "json in chunks"):
            asked = self.asked(name)
            self.assertEqual(asked.body, b'{"t": %s, "n": 1.50}' % json.dumps(TOKEN).encode())
            self.assertEqual(asked.field("content-length"), [str(len(asked.body))])
            self.assertEqual(asked.field("transfer-encoding"), [])
        self.assertEqual(self.asked("form").body, b"a=1&t=" + urllib.parse.quote(TOKEN, safe="").encode())
        self.refused("unknown in json", 500, "credential_unavailable", "credential NO is unknown")
        self.refused("too long", 413, "request_body_too_large")
        self.refused("length of 2^63", 413, "request_body_too_large")  # At once: OpenShell 6.5 #136.
        self.refused("binary", 500, "credential_unavailable")

    def verify(self, asked, service, payload_hash):
        """The signature, computed anew as AWS would: from what arrived."""
        (value,) = asked.field("authorization")
        date = asked.field("x-amz-date")[0]
        names = value.split("SignedHeaders=")[1].split(",")[0]
        scope = "%s/eu-west-1/%s/aws4_request" % (date[:8], service)
        self.assertIn("Credential=%s/%s" % (AWS_ID, scope), value)
        self.assertEqual(asked.field("x-amz-security-token"), [AWS_SESSION])
        self.assertEqual(asked.field("x-amz-content-sha256"), [payload_hash])
        path, _, query = asked.target.partition("?")
        path = path if service == "s3" else urllib.parse.quote(path, safe="/~")
        canonical = "\n".join([asked.method, path, "&".join(sorted(query.split("&"))),
                               *("%s:%s" % (name, asked.field(name)[0]) for name in names.split(";")), "", names,
                               payload_hash])
        key = ("AWS4" + AWS_KEY).encode()
        for part in scope.split("/"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        text = "AWS4-HMAC-SHA256\n%s\n%s\n%s" % (date, scope, hashlib.sha256(canonical.encode()).hexdigest())
        self.assertTrue(value.endswith("Signature=" + hmac.new(key, text.encode(), hashlib.sha256).hexdigest()))

    def test_requests_are_signed_anew(self):
        signed = self.asked("signed")
        self.assertEqual(signed.body, b'{"a": 1}')
        self.verify(signed, "bedrock", hashlib.sha256(signed.body).hexdigest())
        unsigned = self.asked("unsigned")
        self.assertEqual(len(unsigned.body), 70001)
        self.verify(unsigned, "s3", "UNSIGNED-PAYLOAD")
        self.refused("too long to sign", 413, "request_body_too_large")

    def test_keys_are_written_over_where_a_middleware_says_so(self):
        self.assertEqual(self.asked("redacted").body, b'{"k": "[REDACTED]"}')
        self.refused("not utf-8", 503, "middleware_failed")


class Vertex(unittest.TestCase):
    """Tokens that the gateway fetches itself."""

    def run_with(self, label, credentials, requests):
        RUN.upstream.tokens.clear()
        for name, sleep in requests:
            RUN.send(name, "vertex", "/v1/models", headers=[("Authorization", "Bearer mine")], sleep=sleep)
        base = "https://%s:%d" % (HOST, RUN.ports["vertex"])
        done, answers = RUN.go(label, ["--provider", "vertex"], {
            "GCLOUD_CREDENTIALS": json.dumps(credentials), "ANTHROPIC_VERTEX_BASE_URL": base})
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return answers

    def tokens(self, *names):
        return [RUN.upstream.asked[name].field("authorization") for name in names]

    def address(self, path):
        return "https://%s:%d%s" % (HOST, RUN.token_port, path)

    def user(self):
        return {"type": "authorized_user", "client_id": "id", "client_secret": CLIENT, "refresh_token": REFRESH,
                "token_uri": self.address("/token")}

    def test_a_token_is_fetched_once_and_used(self):
        self.run_with("user", self.user(), [("first", 0), ("second", 0)])
        self.assertEqual(self.tokens("first", "second"), [["Bearer granted-t0ken-1"]] * 2)
        self.assertEqual([asked.target for asked in RUN.upstream.tokens], ["/token"])
        self.assertIn(b"refresh_token=" + REFRESH.encode(), RUN.upstream.tokens[0].body)
        # The gateway's own traffic, and not refused.
        own = [line for line in RUN.written["user/events.log"].splitlines() if "/token" in line]
        self.assertEqual(len(own), 1)
        self.assertIn("ALLOWED", own[0])
        self.assertIn("[policy:gateway engine:credentials]", own[0])

    def test_a_token_that_ends_is_fetched_anew_during_the_run(self):
        RUN.upstream.token_lifetime = 2  # Used for three quarters of it.
        self.addCleanup(setattr, RUN.upstream, "token_lifetime", 3600)
        self.run_with("renewed", self.user(), [("early", 0), ("late", 1.8)])
        self.assertEqual(self.tokens("early", "late"), [["Bearer granted-t0ken-1"], ["Bearer granted-t0ken-2"]])

    def test_a_service_account_asks_with_a_signed_assertion(self):
        key = subprocess.run(["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
                             capture_output=True, text=True, check=True).stdout
        self.run_with("service-account", {"type": "service_account", "client_email": "a@p.example",
                                          "private_key": key, "token_uri": self.address("/token")}, [("account", 0)])
        self.assertEqual(self.tokens("account"), [["Bearer granted-t0ken-1"]])
        form = urllib.parse.parse_qs(RUN.upstream.tokens[0].body.decode())
        head, claims, signature = form["assertion"][0].split(".")
        decoded = json.loads(base64.urlsafe_b64decode(claims + "=="))
        self.assertEqual((decoded["iss"], decoded["aud"]), ("a@p.example", self.address("/token")))
        for name, text in RUN.written.items():
            self.assertNotIn(key.splitlines()[1], text, name)
            self.assertNotIn(signature, text, name)

    def test_a_workload_identity_is_exchanged_for_an_account(self):
        self.run_with("workload", {
            "type": "external_account", "audience": "//iam/pools/p", "token_url": self.address("/sts"),
            "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
            "service_account_impersonation_url": self.address("/account"),
            "credential_source": {"url": self.address("/subject?audience=x"),
                                  "headers": {"Authorization": "Bearer ci-5ecret"},
                                  "format": {"type": "json", "subject_token_field_name": "value"}}}, [("pool", 0)])
        self.assertEqual(self.tokens("pool"), [["Bearer granted-t0ken-3"]])
        subject, exchange, account = RUN.upstream.tokens
        self.assertEqual(subject.field("authorization"), ["Bearer ci-5ecret"])
        self.assertIn(b"subject_token=subject-jwt-5ecret", exchange.body)
        self.assertEqual(account.field("authorization"), ["Bearer granted-t0ken-2"])

    def test_a_refused_token_is_a_bad_gateway(self):
        RUN.upstream.refuse_tokens = True
        self.addCleanup(setattr, RUN.upstream, "refuse_tokens", False)
        answers = self.run_with("refused", self.user(), [("sorry", 0), ("again", 0)])
        for name in ("sorry", "again"):
            head, body = answers[name]
            self.assertIn(" 502 ", head)
            self.assertEqual(json.loads(body), {"error": "token_grant_failed",
                                                "detail": "the token service responded with 400 invalid_grant"})
            self.assertNotIn(name, RUN.upstream.asked)
        self.assertEqual(len(RUN.upstream.tokens), 1)  # The second did not ask again at once.


class Echoed(unittest.TestCase):
    """An allowed host tells a secret back, and the agent repeats it: nothing that a run writes or prints has it. That no
    file of these runs has a value as it is, tearDownModule sees."""

    def leak(self, label, arguments, variables, path="/v1/x", headers=()):
        RUN.send(label, "echo", path, headers=headers)
        return RUN.go(label, arguments, variables, agent="leak.py")[0]

    def assert_masked(self, label, done, value, patch=True):
        log = RUN.written[label + "/agent.log"]
        self.assertIn("length %d" % len(value), log, done.stderr)  # The control: it was told the value.
        for kind in ("plain", "bearer Bearer", "url", "base64", "hex", "pieces", "hidden"):
            self.assertRegex(log, r"(?m)^%s \[CREDENTIAL\]=*$" % kind)
            self.assertRegex(done.stdout, r"(?m)^%s \[CREDENTIAL\]=*$" % kind)
        for kind in ("json", "json twice"):
            self.assertRegex(log, r'(?m)^%s .*\[CREDENTIAL\]\\*"' % kind)
        forms = [base64.b64encode(value.encode()).decode().rstrip("="), value.encode().hex(), value.lower(),
                 base64.b64encode(b"user:" + value.encode()).decode()[8:-4],
                 base64.urlsafe_b64encode(b"x" + value.encode()).decode()[4:-4]]
        for name, text in RUN.written.items():
            if name.startswith(label + "/") and not name.endswith(".py"):
                for form in forms:
                    self.assertNotIn(form, text, name)

    def test_a_secret_is_masked_in_all_that_a_run_writes(self):
        done = self.leak("echoed", ["--secret", "SERVICE_TOKEN@" + HOST], {"SERVICE_TOKEN": TOKEN},
                         headers=[("Authorization", "Bearer " + marker("SERVICE_TOKEN"))])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_masked("echoed", done, TOKEN)
        record = json.loads(RUN.written["echoed/run.json"])
        self.assertIn("/refused/[CREDENTIAL]", [denied["path"] for denied in record["denials"]])
        self.assertIn("+a line", RUN.written["echoed/changes.patch"])

    def test_a_patch_with_a_secret_is_refused_and_withheld(self):
        done = self.leak("filed", ["--secret", "SERVICE_TOKEN@" + HOST], {"SERVICE_TOKEN": TOKEN}, path="/v1/file",
                         headers=[("Authorization", "Bearer " + marker("SERVICE_TOKEN"))])
        self.assertEqual(done.returncode, 77, done.stderr)
        finding = json.loads(RUN.written["filed/run.json"])["findings"][0]
        self.assertEqual((finding["rule"], finding["path"], finding["line"]), ("secrets", "new.txt", 2))
        self.assertEqual(RUN.written["filed/changes.patch"], "")

    def test_a_token_that_was_fetched_is_masked_too(self):
        RUN.upstream.tokens.clear()
        credentials = {"type": "authorized_user", "client_id": "id", "client_secret": CLIENT, "refresh_token": REFRESH,
                       "token_uri": "https://%s:%d/token" % (HOST, RUN.token_port)}
        done = self.leak("granted", ["--provider", "vertex"], {
            "GCLOUD_CREDENTIALS": json.dumps(credentials),
            "ANTHROPIC_VERTEX_BASE_URL": "https://%s:%d" % (HOST, RUN.ports["echo"])})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_masked("granted", done, "granted-t0ken-1")
        denials = json.loads(RUN.written["granted/run.json"])["denials"]
        self.assertIn("[CREDENTIAL].example.com", [denied["host"] for denied in denials])

    def test_a_short_secret_is_not_masked_and_that_is_told(self):
        RUN.send("short", "echo", headers=[("Authorization", "Bearer " + marker("PIN"))])
        done, answers = RUN.go("short", ["--secret", "PIN@" + HOST], {"PIN": "fin"})
        self.assertIn("Bearer fin", answers["short"][1])
        self.assertIn("a secret is too short to be masked name=PIN", done.stderr)


class Memory(unittest.TestCase):
    @staticmethod
    def name(pid):
        with open("/proc/%s/comm" % pid) as text:
            return text.read().strip()

    @staticmethod
    def in_memory(pid, value):
        """Whether `value` is in what this process can write to."""
        with open("/proc/%s/maps" % pid) as maps, open("/proc/%s/mem" % pid, "rb", 0) as memory:
            for line in maps:
                area, rights = line.split()[:2]
                if rights[1] != "w":
                    continue
                begin, end = (int(border, 16) for border in area.split("-"))
                memory.seek(begin)
                try:
                    if value in memory.read(end - begin):
                        return True
                except OSError:
                    pass  # Not to be read: [vvar] and the like.
        return False

    def test_no_process_of_a_run_shows_a_value_or_can_leave_a_core(self):
        checkout = os.path.join(RUN.folder, "memory")
        os.mkdir(checkout)
        with open(checkout + "/policy.yml", "w") as out:
            out.write(POLICY.format(**RUN.ports))
        run = subprocess.Popen(
            [BINARY, "run", "--workdir", checkout, "--policy", checkout + "/policy.yml", "--report-dir",
             RUN.folder + "/memory-report", "--ca-file", RUN.folder + "/ca.pem", "--provider", "generic", "--",
             "sh", "-c", "echo started; sleep 20"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
            env={"PATH": os.environ["PATH"], "HOME": RUN.folder, "API_TOKEN": "5ecret-token", "PLAIN": "control",
                 "API_BASE_URL": "https://api.example.com"})
        try:
            limits, environments = {}, []
            while not run.stdout.readline().startswith("started"):
                self.assertIsNone(run.poll())
            with open("/proc/%d/task/%d/children" % (run.pid, run.pid)) as text:
                children = text.read().split()
            for pid in [str(run.pid), *children]:
                with open("/proc/%s/comm" % pid) as text:
                    name = text.read().strip()
                with open("/proc/%s/limits" % pid) as text:
                    limits[name] = [line for line in text if line.startswith("Max core file size")][0].split()[4]
                try:
                    with open("/proc/%s/environ" % pid) as text:
                        environments.append(text.read())
                except PermissionError:
                    pass  # Of the gateway, to anybody but root.
            self.assertEqual(limits["gateway"], "0")
            self.assertTrue(any("PLAIN=control" in text for text in environments))  # The supervisor's own.
            for text in environments:
                self.assertNotIn("5ecret", text)
            # The supervisor keeps the value, to mask it; what it started has no copy. Root may look.
            if os.geteuid() == 0:
                with open("/proc/%d/task/%d/children" % (run.pid, run.pid)) as text:
                    init = [pid for pid in text.read().split() if self.name(pid) != "gateway"]
                self.assertEqual(len(init), 1)
                self.assertTrue(self.in_memory(run.pid, b"5ecret-token"))
                self.assertFalse(self.in_memory(init[0], b"5ecret-token"))
        finally:
            run.terminate()
            run.wait(120)
            run.stdout.close()


class Bound(unittest.TestCase):
    """`credential_binding`: the policy says where a provider without an address goes."""

    def policy(self, provider):
        return POLICY.replace("port: {plain}, protocol: rest",
                              "port: {plain}, credential_binding: {{provider: %s}}, protocol: rest" % provider)

    def run_with(self, arguments, variables, provider="generic"):
        return RUN.go("bound%d" % len(RUN.written), arguments, variables, self.policy(provider))

    def test_the_credential_goes_there_and_nowhere_else(self):
        RUN.send("bound", "plain")
        RUN.send("not bound", "elsewhere")
        done, answers = self.run_with(["--provider", "generic"], {"API_TOKEN": TOKEN})
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("bound", "not bound"):
            self.assertIn(" 200 ", answers[name][0])
        self.assertEqual(RUN.upstream.asked["bound"].field("authorization"), ["Bearer " + TOKEN])
        self.assertEqual(RUN.upstream.asked["not bound"].field("authorization"), [])

    def test_a_provider_that_is_not_attached_or_has_addresses_is_told(self):
        done, _ = self.run_with([], {"API_TOKEN": TOKEN})
        self.assertEqual(done.returncode, 78, done.stderr)
        self.assertRegex(done.stderr, r"policy.yml:\d+:\d+: error: the provider 'generic' is not enabled for this run")
        self.assertIn("--provider generic", done.stderr)
        done, _ = self.run_with(["--provider", "anthropic"], {"ANTHROPIC_API_KEY": ANTHROPIC}, "anthropic")
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertRegex(done.stderr, r"policy.yml:\d+:\d+: error: the provider 'anthropic' defines its own addresses")


class Untrusted(unittest.TestCase):
    def run_with(self, arguments, variables):
        return RUN.go("none%d" % len(RUN.written), arguments, variables)[0]

    def test_a_fork_gets_no_provider(self):
        event = os.path.join(RUN.folder, "event.json")
        repository = {"full_name": "o/r", "id": 1}
        with open(event, "w") as out:
            json.dump({"pull_request": {"number": 1, "head": {"sha": "a" * 40, "ref": "x", "repo": {
                "full_name": "evil/r", "id": 2, "fork": True}}, "base": {"sha": "b" * 40, "ref": "main",
                                                                         "repo": repository}},
                       "repository": repository, "sender": {"login": "x"}, "action": "opened"}, out)
        fork = {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": "pull_request", "GITHUB_EVENT_PATH": event,
                "GITHUB_REPOSITORY": "o/r", "GITHUB_SERVER_URL": "https://github.example"}
        done = self.run_with(["--provider", "anthropic"], {"ANTHROPIC_API_KEY": ANTHROPIC, **fork})
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("such runs get no secrets", done.stderr)

    def test_a_provider_without_a_value_and_an_unknown_one_are_told(self):
        done = self.run_with(["--provider", "anthropic"], {})
        self.assertIn("the provider anthropic has no credential: ANTHROPIC_API_KEY is not set", done.stderr)
        self.assertIn("export ANTHROPIC_API_KEY=...", done.stderr)
        done = self.run_with(["--provider", "antropic"], {})
        self.assertEqual(done.returncode, 64)
        self.assertIn("unknown provider", done.stderr)

    def test_git_and_gh_have_nothing_to_tell(self):
        script = ("printf 'protocol=https\\nhost=github.com\\n\\n' | git credential fill; echo \"git $?\";"
                  "printf '%s\\n' \"$GH_TOKEN\"; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n' | grep TOKEN=")
        checkout = os.path.join(RUN.folder, "tell")
        os.mkdir(checkout)
        with open(checkout + "/policy.yml", "w") as out:
            out.write(POLICY.format(**RUN.ports))
        done = subprocess.run(
            [BINARY, "run", "--workdir", checkout, "--policy", checkout + "/policy.yml", "--report-dir",
             RUN.folder + "/tell-report", "--ca-file", RUN.folder + "/ca.pem", "--provider", "github", "--",
             "sh", "-c", script], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600,
            env={"PATH": os.environ["PATH"], "HOME": RUN.folder, "GITHUB_TOKEN": "gh-5ecret-token"})
        self.assertIn("git 128", done.stdout, done.stderr)
        self.assertIn(marker("GH_TOKEN"), done.stdout)
        self.assertNotIn("5ecret", done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
