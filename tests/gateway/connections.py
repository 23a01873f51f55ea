# SPDX-License-Identifier: Apache-2.0
"""Who may connect where, and what a connection carries."""
import json
import os
import shutil
import socket
import ssl
import subprocess
import time

from stage import (CURL, PROXY, contains, curl, equal, in_tunnel, lacks, proxy_bytes, read_all, request, run, stage,
                   tls_tunnel, tunnel)


def test_an_allowed_request_reaches_the_server_and_is_recorded():
    answer = curl("https://api.example.test/echo?x=1")
    equal((answer.code, answer.status), (0, 200))
    contains(answer.body, b"GET /echo?x=1 HTTP/1.1\r\nHost: api.example.test\r\n")
    stage().expect_log(" OCSF NET:OPEN [INFO] ALLOWED %s(" % CURL)
    stage().expect_log(" -> api.example.test:443 [policy:api engine:opa]")
    stage().expect_log("-> GET https://api.example.test/echo [policy:api engine:l7]")
    lacks(stage().log(), "x=1")


def test_an_undeclared_host_is_refused_before_it_is_resolved():
    answer = curl("https://example.org/")
    equal(answer.status, 403)
    contains(answer.headers, "403 Forbidden")
    _, head = tunnel("example.org:443")
    contains(head, b"HTTP/1.1 403 Forbidden\r\n")
    denied = [e for e in stage().events() if e["unmapped"].get("host") == "example.org" and "http_request" not in e][0]
    equal(denied["unmapped"]["decision"], "denied")
    equal(denied["unmapped"]["binary"], CURL)
    equal((denied["class_uid"], denied["type_uid"], denied["action"]), (4001, 400105, "Denied"))


def test_the_refusal_of_a_connection_says_why_in_json():
    text = proxy_bytes(b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n")
    head, body = text.split(b"\r\n\r\n", 1)
    contains(head, b"Content-Type: application/json")
    contains(head, b"Connection: close")
    fields = json.loads(body)
    equal(fields["error"], "policy_denied")
    equal(fields["detail"], "CONNECT example.org:443 not permitted by policy")
    assert fields["reason"]


def test_another_port_of_an_allowed_host_is_refused():
    equal(curl("https://api.example.test:8443/").status, 403)


def test_a_program_that_the_policy_does_not_name_is_refused():
    equal(curl("https://other.example.test/").status, 403)
    stage().expect_log("other.example.test:443 [policy:- engine:opa] [reason:binary '%s' not allowed" % CURL)


def test_a_copy_of_an_allowed_program_elsewhere_is_refused():
    copy = stage().folder + "/curl"
    shutil.copy(CURL, copy)
    equal((connect_status(CURL), connect_status(copy)), (b"200", b"403"))
    stage().expect_log("binary '%s' not allowed in policy 'api'" % copy)


def connect_status(program):
    """What the proxy answers to a CONNECT of this copy of curl."""
    return subprocess.run([program, "-s", "-o", "/dev/null", "-w", "%{http_connect}", "-x", "http://%s:%d" % PROXY,
                           "--cacert", stage().folder + "/ca.pem", "https://api.example.test/echo"],
                          stdout=subprocess.PIPE).stdout


def test_a_program_replaced_after_its_first_use_is_refused():
    copy = stage().folder + "/replaced"
    shutil.copy(CURL, copy)
    equal(connect_status(copy), b"200")
    os.unlink(copy)
    shutil.copy(CURL, copy)
    with open(copy, "ab") as out:
        out.write(b"\0changed")
    equal(connect_status(copy), b"403")
    stage().expect_log("Binary integrity violation: " + copy)


def test_loopback_link_local_and_rebound_names_are_refused():
    equal(curl("https://rebound.example.test/").status, 403)
    text = proxy_bytes(b"CONNECT rebound.example.test:443 HTTP/1.1\r\nHost: rebound.example.test:443\r\n\r\n")
    fields = json.loads(text.split(b"\r\n\r\n", 1)[1])
    equal(fields["error"], "ssrf_denied")
    contains(fields["detail"], "CONNECT rebound.example.test:443 blocked: ")
    stage().expect_log("rebound.example.test:443 [policy:api engine:ssrf]")
    equal(curl("https://metadata.wild.example.test/").status, 403)


def test_a_metadata_service_is_refused_in_every_dialect():
    """N26: even where the policy names its address."""
    for url, *fields in (("/latest/meta-data/iam/security-credentials/",),
                         ("/latest/api/token", "-X", "PUT", "-H", "X-aws-ec2-metadata-token-ttl-seconds: 21600"),
                         ("/metadata/instance?api-version=2021-02-01", "-H", "Metadata: true"),
                         ("/computeMetadata/v1/", "-H", "Metadata-Flavor: Google")):
        answer = curl("http://169.254.169.254" + url, *fields)
        equal((answer.status, answer.json()["error"]), (403, "ssrf_denied"))
    equal(curl("http://169.254.169.253/").json()["error"], "policy_denied")


def test_another_name_behind_the_address_of_an_allowed_one_is_refused():
    """N20 and N53: all names of this test have one address."""
    equal(curl("https://other.example.test/echo").status, 403)
    for target, ca in (("api", "ca.pem"), ("skip", "trusted.pem")):
        for name, code in ((target, 0), ("other", 35)):
            answer = curl("https://%s.example.test/echo" % name, "--connect-to", "::%s.example.test:" % target,
                          ca=stage().folder + "/" + ca)
            equal((answer.code, answer.body[:9]), (code, b"GET /echo" if code == 0 else b""))
    stage().expect_log("TLS server name other.example.test on a connection to skip.example.test")


def test_a_wildcard_never_leads_to_a_private_address():
    for name in ("private", "mixed"):
        text = proxy_bytes(b"CONNECT %s.wild.example.test:443 HTTP/1.1\r\nHost: x\r\n\r\n" % name.encode())
        equal(json.loads(text.split(b"\r\n\r\n", 1)[1])["detail"],
              "CONNECT %s.wild.example.test:443 blocked: internal address" % name)


def test_no_name_leads_to_an_address_of_this_machine():
    """But the address itself does, where the policy has it; the server listens on all of them."""
    for name in ("own.wild", "here"):
        answer = curl("http://%s.example.test:18080/" % name)
        equal((answer.status, answer.json()["error"]), (403, "ssrf_denied"))
        contains(answer.json()["detail"], "%s.example.test:18080/ blocked: this machine's own address" % name)
    equal(curl("http://10.77.0.1:18080/").status, 200)


def test_a_name_is_resolved_over_dns():
    answer = curl("https://dns.example.test/echo")
    equal((answer.code, answer.status), (0, 200))


def test_a_name_without_an_address_is_a_bad_gateway():
    text = proxy_bytes(b"CONNECT nowhere.example.test:443 HTTP/1.1\r\nHost: x\r\n\r\n")
    contains(text, b"HTTP/1.1 502 ")
    equal(json.loads(text.split(b"\r\n\r\n", 1)[1])["error"], "upstream_unreachable")
    text = proxy_bytes(b"CONNECT broken.wild.example.test:443 HTTP/1.1\r\nHost: x\r\n\r\n")  # SERVFAIL.
    contains(text, b"HTTP/1.1 502 ")


def test_the_alias_of_this_machine_reaches_its_loopback():
    answer = curl("http://host.openshell.internal:18080/v1/models", "-H",
                  "Authorization: Bearer openshell:resolve:env:LOCAL")
    equal(answer.status, 200)
    contains(answer.body, b"Authorization: Bearer local-secret\r\n")
    equal(curl("http://127.0.0.1:18080/", "--noproxy", "").status, 403)
    equal(curl("http://localhost:18080/", "--noproxy", "").status, 403)


def test_a_connect_head_above_8_kib_is_too_large():
    head = b"CONNECT api.example.test:443 HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * 8192 + b"\r\n\r\n"
    contains(proxy_bytes(head), b"HTTP/1.1 431 ")


def test_malformed_connects_are_bad_requests():
    for target in (b"host", b"host:", b"host:abc", b"host:70000", b"127.1:443", b"ho/st:1", b"user@host:443"):
        contains(proxy_bytes(b"CONNECT " + target + b" HTTP/1.1\r\nHost: x\r\n\r\n"), b"HTTP/1.1 400 ")
    for field in (b"Content-Length: 0", b"Transfer-Encoding: chunked"):
        text = proxy_bytes(b"CONNECT api.example.test:443 HTTP/1.1\r\nHost: x\r\n" + field + b"\r\n\r\n")
        contains(text, b"HTTP/1.1 400 ")
    contains(proxy_bytes(b"GET / HTTP/1.1\nHost: x\n\n"), b"HTTP/1.1 400 ")
    contains(proxy_bytes(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"), b"HTTP/1.1 400 ")
    contains(proxy_bytes(b"\x04\x01\x00\x50\x7f\x00\x00\x01\x00\r\n\r\n"), b"HTTP/1.1 400 ")


# --- Tunnels ---------------------------------------------------------------------------------------


def test_tls_skip_tunnels_the_servers_own_certificate():
    answer = curl("https://skip.example.test/echo", ca=stage().folder + "/trusted.pem")
    equal((answer.code, answer.status), (0, 200))
    equal(curl("https://skip.example.test/echo").code, 60)


def greet(host, server_name, first):
    """Sends the `first` bytes of a ClientHello, a little later the rest; what comes back."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        ssl._create_unverified_context().wrap_bio(incoming, outgoing, server_hostname=server_name).do_handshake()
    except ssl.SSLWantReadError:
        pass
    hello = outgoing.read()
    connection, head = tunnel(host + ":443")
    contains(head, b" 200 ")
    with connection:
        connection.sendall(hello[:first])
        time.sleep(0.25 if first < 40 else 0)
        connection.sendall(hello[first:])
        return connection.recv(3)


def test_a_hello_in_pieces_asks_for_no_other_name():
    for host in ("skip.example.test", "l4.example.test"):
        for first in (1, 2, 3, 40):
            equal(greet(host, host, first)[:2], b"\x16\x03")
            equal(greet(host, "other.example.test", first), b"HTT")  # A refusal.
        stage().expect_log("TLS server name other.example.test on a connection to " + host)


def test_a_credential_bound_to_an_uninspected_host_is_refused():
    text = proxy_bytes(b"CONNECT sealed.example.test:443 HTTP/1.1\r\nHost: x\r\n\r\n")
    equal(json.loads(text.split(b"\r\n\r\n", 1)[1])["error"], "uninspected_credentials")


def test_a_connection_only_endpoint_carries_any_bytes_both_ways():
    connection, head = tunnel("l4.example.test:9000")
    with connection:
        contains(head, b" 200 ")
        equal(connection.recv(100), b"HELLO\n")
        connection.sendall(b"\0\x01binary")
        equal(connection.recv(100), b"\0\x01binary")
        connection.shutdown(socket.SHUT_WR)
        equal(read_all(connection), b"")


def test_a_server_that_finishes_first_still_hears_its_client():
    for greeting in (b"0\n", b"300000\n"):
        connection, _ = tunnel("l4.example.test:9001")
        with connection:
            equal(read_all(connection), greeting)
            connection.sendall(b"x" * 300000)
            connection.shutdown(socket.SHUT_WR)
            time.sleep(0.3)


def test_bytes_that_are_not_http_are_refused_on_an_inspected_endpoint():
    connection, head = tunnel("api.example.test:9000")
    with connection:
        contains(head, b" 200 ")
        connection.sendall(b"\0\x01binary, and more than enough of it")
        contains(read_all(connection), b'"error":"unsupported_l7_protocol"')


def test_tls_on_a_connection_only_endpoint_is_terminated_and_recorded():
    answer = curl("https://l4.example.test/echo", "-X", "DELETE")
    equal((answer.code, answer.status), (0, 200))
    stage().expect_log("HTTP:DELETE [INFO] ALLOWED %s(" % CURL)


def test_an_upstream_certificate_that_is_over_or_another_hosts_is_refused():
    for url, why in (("https://untrusted.example.test:8444/", "certificate has expired"),
                     ("https://of.another.example.test/", "ostname mismatch")):
        answer = curl(url)
        equal(answer.status, 502)
        contains(answer.json()["detail"], why)


def test_a_common_name_is_no_name_of_an_upstream():
    for port in (8445, 8446):
        answer = curl("https://untrusted.example.test:%d/" % port)
        equal(answer.status, 502)
        contains(answer.json()["detail"], "ostname mismatch")


def test_an_upstream_certificate_of_a_stranger_is_refused():
    answer = curl("https://untrusted.example.test:8443/")
    equal(answer.status, 502)
    contains(answer.json()["detail"], "certificate verify failed")
    stage().expect_log("NET:FAIL [LOW] %s(" % CURL)


def test_the_sandbox_certificate_names_the_host_alone():
    with tls_tunnel("api.example.test") as connection:
        certificate = connection.getpeercert()
        equal(certificate["subjectAltName"], (("DNS", "api.example.test"),))
        equal(dict(part[0] for part in certificate["issuer"])["commonName"], "OpenShell Sandbox CA")
        equal(connection.version(), "TLSv1.3")


def test_an_upgrade_to_http2_is_refused_with_an_http1_answer():
    text = in_tunnel(request("/echo", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AA"))
    contains(text, b"HTTP/1.1 403 ")
    contains(text, b"unsupported_l7_protocol")
