# SPDX-License-Identifier: Apache-2.0
"""One request after another: judged, sent, answered; forwarded ones and credentials."""
import base64
import gzip
import json
import time

from stage import (CURL, TOKEN, contains, curl, equal, in_tunnel, lacks, proxy_bytes, read_response, request, stage,
                   tls_tunnel)


def test_a_request_that_no_rule_allows_gets_the_documented_answer():
    answer = curl("https://api.example.test/repos/x?token=hidden", "-X", "DELETE")
    equal((answer.code, answer.status), (0, 403))
    contains(answer.headers, "X-OpenShell-Policy: api")
    fields = answer.json()
    equal(fields["error"], "policy_denied")
    equal(fields["policy"], "api")
    equal(fields["rule"], "DELETE /repos/x")
    equal(fields["detail"], "DELETE /repos/x not permitted by policy")
    equal((fields["layer"], fields["protocol"], fields["host"], fields["port"]), ("l7", "rest", "api.example.test", 443))
    equal(fields["rule_missing"]["type"], "rest_allow")
    lacks(answer.body, b"hidden")
    stage().expect_log("HTTP:DELETE [MED] DENIED %s(" % CURL)
    lacks(stage().log(), "hidden")


def test_a_deny_rule_wins():
    fields = curl("https://api.example.test/secret/x").json()
    contains(fields["detail"], "blocked by deny rule")
    equal(curl("https://api.example.test/x/../secret/y", "--path-as-is").status, 403)
    equal(curl("https://api.example.test/%73ecret/y").status, 403)


def test_a_body_that_names_a_method_passes_only_where_all_are_allowed():
    big, packed = stage().folder + "/form", stage().folder + "/packed"
    with open(big, "wb") as out:
        out.write(b"name=\"a_method\"\r\n\r\n" * 100000)
    with open(packed, "wb") as out:
        out.write(gzip.compress(json.dumps({"a": "b" * 70000, "_method": "delete"}).encode()))
    with open(packed + ".fine", "wb") as out:
        out.write(gzip.compress(json.dumps({"a": ["_method"]}).encode()))
    in_json = ("-H", "Content-Type: application/json")
    refused = (
        ("-d", "a=b&_method=delete"), ("-d", "%5fmethod=put"), ("-d", "_method=post"), ("-F", "_method=delete"),
        ("-F", "a=b", "-F", "_method=patch"), ("-F", "f=@" + big, "-F", "_method=delete"), ("-F", "a=name=\"_method\""),
        ("-H", "Content-Type:", "-d", "_method=delete"), ("-H", "Content-Type;", "-d", "_method=delete"),
        ("-d", "[_method]=delete"), ("-F", "[_method]=delete"),
        (*in_json, "-d", '{"a":{},"_method":"delete"}'), (*in_json, "-d", '{"a":{"_method":["delete"]}}'),
        (*in_json, "-H", "Content-Encoding: gzip", "--data-binary", "@" + packed),
        ("-H", "Content-Type: application/json; charset=utf-16", "-d", "{}"), ("-H", "Content-Encoding: br", "-d", "a=b"))
    for body in refused:
        answer = curl("https://api.example.test/post/form", *body)
        equal((body, answer.status), (body, 403))
        equal(answer.json()["detail"], "PUT /post/form not permitted by policy")
        equal((body, curl("https://slash.example.test/post/form", *body).status), (body, 200))  # All methods are allowed.
    for body in (("-d", "a=_method"), ("-F", "method=delete"), ("-F", "f=@" + big), ("-F", "payment_method=x"),
                 ("-H", "Content-Type: application/json; charset=utf-8", "-d", "{}"),
                 (*in_json, "-d", "_method=delete"), (*in_json, "-d", '{"a":"{\\"_method\\":1}"}'),
                 (*in_json, "-H", "Content-Encoding: gzip", "--data-binary", "@" + packed + ".fine"),
                 ("-H", "Content-Type: application/octet-stream", "-H", "Content-Encoding: br", "-d", "a=b")):
        equal((body, curl("https://api.example.test/post/form", *body).status), (body, 200))
    recorded = [e["unmapped"] for e in stage().events() if e["unmapped"].get("path") == "/post/form"
                and e["unmapped"]["decision"] == "denied"]
    equal([(one["method"], one["reason"]) for one in recorded], [("PUT", "PUT /post/form not permitted by policy")] * len(refused))


def test_the_path_that_is_judged_is_the_path_that_is_forwarded():
    for sent, forwarded in (("/a/./b", "/a/b"), ("//public//x", "/public/x"), ("/%70ost/x", "/post/x"),
                            ("/a/caf%c3%a9", "/a/caf%C3%A9"), ("/x;p=1/y", "/x/y")):
        contains(in_tunnel(request(sent, "Connection: close")), b"GET %s HTTP/1.1\r\n" % forwarded.encode())
    for bad in ("/a/../../x", "/a%00b", "/a%2fb", "/%zz", "/a#b"):
        equal(in_tunnel(request(bad)), b"")
    contains(in_tunnel(request("/a%2fb", "Connection: close", host="slash.example.test"), "slash.example.test"),
             b"GET /a%2Fb HTTP/1.1\r\n")


def test_an_audited_endpoint_passes_what_it_would_refuse_and_says_so():
    answer = curl("https://audit.example.test/x", "-X", "DELETE")
    equal((answer.code, answer.status), (0, 200))
    event = [e for e in stage().events() if e["unmapped"].get("host") == "audit.example.test" and "http_request" in e][0]
    equal(event["unmapped"]["decision"], "audited")
    equal(event["action"], "Allowed")
    contains(event["message"], "L7_REQUEST audit DELETE audit.example.test:443/x")


def test_another_host_behind_an_allowed_connection_is_refused():
    text = in_tunnel(request("/echo", host="evil.example.test"))
    contains(text, b"request_authority_mismatch")
    text = in_tunnel(request("http://evil.example.test/", host="api.example.test"))
    contains(text, b"request_authority_mismatch")
    contains(in_tunnel(request("/echo", "Connection: close", host="API.example.test.")), b"HTTP/1.1 200 ")
    contains(in_tunnel(request("/echo", host="api.example.test"), port=9443), b"request_authority_mismatch")
    contains(in_tunnel(request("/echo", "Connection: close", host="api.example.test:9443"), port=9443),
             b"HTTP/1.1 200 ")


def test_smuggled_requests_close_the_connection_and_reach_nobody():
    smuggle = [
        request("/echo", "Content-Length: 5", "Transfer-Encoding: chunked", body=b"0\r\n\r\n"),
        request("/echo", "Transfer-Encoding: chunked", "Content-Length: 5", body=b"0\r\n\r\n"),
        request("/echo", "Content-Length: 0", "Content-Length: 50"),
        request("/echo", "Content-Length: abc"),
        request("/echo", "Content-Length: +5", body=b"hello"),
        request("/echo", "Transfer-Encoding: gzip, chunked"),
        request("/echo", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
        request("/echo", "Transfer-Encoding: xchunked"),
        request("/echo", "X: a\r\n b"),
        request("/echo", "X : a"),
        request("/echo", "X: a\x00b"),
        request("/echo", "X: a\rb"),
        request("/echo", "Host: api.example.test"),
        request("/echo", "Connection: content-length"),
        b"GET /echo HTTP/1.1\r\n\r\n",
        b"GET  /echo HTTP/1.1\r\nHost: api.example.test\r\n\r\n",
        b"GET /echo HTTP/1.1\nHost: api.example.test\n\n",
        b"GET /echo HTTP/3.0\r\nHost: api.example.test\r\n\r\n",
    ]
    for data in smuggle:
        equal((data, in_tunnel(data)), (data, b""))
    stage().expect_log("engine:http-parser")


def test_two_bodies_of_equal_length_are_one():
    text = in_tunnel(request("/post/x", "Content-Length: 2", "Content-Length: 2", "Connection: close", method="POST",
                             body=b"ok"))
    equal(text.count(b"Content-Length: 2\r\n"), 1)


def test_a_chunked_body_is_streamed_and_framed_anew():
    body = b"5;ext=1\r\nhello\r\n6\r\n world\r\n0\r\nX-Trailer: kept\r\nHost: dropped\r\n" \
        b"X-HTTP-Method: dropped\r\nX_Original_Url: dropped\r\nContent_Length: dropped\r\n\r\n"
    text = in_tunnel(request("/post/x", "Transfer-Encoding: chunked", "Connection: close", method="POST", body=body))
    contains(text, b"Transfer-Encoding: chunked\r\n")
    contains(text, b"5\r\nhello\r\n6\r\n world\r\n0\r\nX-Trailer: kept\r\n\r\n")
    lacks(text, b"ext=1")
    lacks(text, b"dropped")


def test_a_malformed_chunk_never_completes_a_request():
    for body in (b"5\nhello\n0\n\n", b"-5\r\nhello\r\n0\r\n\r\n", b"5\r\nhelloworld\r\n0\r\n\r\n", b"0x5\r\nhello\r\n0\r\n\r\n"):
        text = in_tunnel(request("/post/x", "Transfer-Encoding: chunked", method="POST", body=body))
        equal((body, text), (body, b""))


def test_large_bodies_pass_in_both_directions():
    big = stage().folder + "/big"
    with open(big, "wb") as out:
        out.write(b"y" * 6000000)
    answer = curl("https://api.example.test/size", "--data-binary", "@" + big, "-H", "Expect: 100-continue")
    equal(answer.body, b"6000000")
    equal(len(curl("https://api.example.test/big").body), 8000000)


def test_an_early_answer_to_a_large_body_arrives():
    big = stage().folder + "/big2"
    with open(big, "wb") as out:
        out.write(b"y" * 6000000)
    answer = curl("https://api.example.test/early", "--data-binary", "@" + big)
    equal(answer.status, 413)


def test_one_tunnel_carries_many_requests():
    with tls_tunnel("api.example.test") as connection:
        for number in range(5):
            connection.sendall(request("/echo?n=%d" % number))
            head, body = read_response(connection)
            contains(head, b"HTTP/1.1 200 ")
            contains(body, b"GET /echo?n=%d HTTP/1.1" % number)
        connection.sendall(request("/echo?a") + request("/echo?b"))  # Pipelined.
        contains(read_response(connection)[1], b"GET /echo?a ")
        contains(read_response(connection)[1], b"GET /echo?b ")


def test_a_server_that_closed_meanwhile_is_dialled_again():
    with tls_tunnel("api.example.test") as connection:
        for _ in range(3):
            connection.sendall(request("/once"))
            equal(read_response(connection)[1], b"once")
            time.sleep(0.05)


def test_events_arrive_while_they_are_sent():
    with tls_tunnel("api.example.test") as connection:
        connection.sendall(request("/sse"))
        arrived = []
        data = b""
        while not data.endswith(b"0\r\nX-Trailer: kept\r\n\r\n"):
            data += connection.recv(65536)
            arrived.append(time.monotonic())
        lacks(data, b"dropped")
        assert arrived[-1] - arrived[0] > 0.6, "the events came all at once"
        connection.sendall(request("/echo"))
        contains(read_response(connection)[0], b"200 OK")


def test_answers_are_framed_as_http_says():
    equal(curl("https://api.example.test/unframed").body, b"until the end")
    equal(curl("https://api.example.test/nothing").status, 204)
    equal(curl("https://api.example.test/unchanged").status, 304)
    equal(curl("https://api.example.test/hints").body, b"hinted")
    head = curl("https://api.example.test/echo", "-I")
    equal((head.code, head.status), (0, 200))
    contains(head.headers, "Content-Length: 1234")


def test_a_cut_answer_is_seen_to_be_cut():
    equal(curl("https://api.example.test/cut").code, 18)
    equal(curl("https://api.example.test/short").code, 18)


def test_a_contradictory_answer_is_a_bad_gateway():
    answer = curl("https://api.example.test/both")
    equal((answer.status, answer.json()["error"]), (502, "malformed_response"))


def test_switching_protocols_unasked_is_a_bad_gateway():
    answer = curl("https://api.example.test/switch")
    equal((answer.status, answer.json()["error"]), (502, "malformed_response"))


UPGRADE = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
           "Sec-WebSocket-Key: " + base64.b64encode(b"0123456789abcdef").decode())


def test_a_websocket_does_not_open_where_only_requests_are_judged():
    for host in ("api.example.test", "audit.example.test"):
        answer = in_tunnel(request("/ws", *UPGRADE, "Connection: close", host=host), host)
        contains(answer, b"HTTP/1.1 403 ")
        contains(answer, b"are not judged by rest rules")


def test_a_websocket_is_relayed_where_no_request_is_judged():
    with tls_tunnel("l4.example.test") as connection:
        connection.sendall(request("/ws", *UPGRADE, host="l4.example.test"))
        head = b""
        while b"\r\n\r\n" not in head:
            head += connection.recv(1)
        contains(head, b"HTTP/1.1 101 ")
        connection.sendall(b"\x81\x02hi")
        data = b""
        while len(data) < 9:
            data += connection.recv(9)
        equal(data, b"echo:\x81\x02hi")


def test_a_query_is_judged_and_kept():
    contains(curl("https://api.example.test/query?tag=ok%2B1").body, b"GET /query?tag=ok%2B1 ")
    equal(in_tunnel(request("/echo?bad=%2")), b"")


def test_hop_by_hop_fields_stay_here():
    text = in_tunnel(request("/echo", "Connection: close, X-Mine", "X-Mine: 1", "X-Yours: 2", "Proxy-Authorization: x",
                             "TE: trailers", "Keep-Alive: 5"))
    contains(text, b"X-Yours: 2\r\n")
    for gone in (b"X-Mine", b"Proxy-Authorization", b"TE:", b"Keep-Alive"):
        lacks(text, gone)


def test_plain_http_inside_a_tunnel_is_inspected():
    answer = curl("http://plain.example.test/echo", "-p")
    contains(answer.body, b"GET /echo HTTP/1.1\r\nHost: plain.example.test\r\n")
    equal(curl("http://plain.example.test/x", "-p", "-X", "DELETE").status, 403)


# --- Forwarded requests ----------------------------------------------------------------------------


def test_an_absolute_request_is_forwarded_once():
    answer = curl("http://plain.example.test/echo?a=1")
    equal((answer.code, answer.status), (0, 200))
    contains(answer.body, b"GET /echo?a=1 HTTP/1.1\r\nHost: plain.example.test\r\n")
    contains(answer.body, b"Via: 1.1 openshell-sandbox\r\n")
    contains(answer.headers, "Connection: close")
    data = b"GET http://plain.example.test/echo HTTP/1.1\r\nHost: plain.example.test\r\n\r\n"
    equal(proxy_bytes(data + data).count(b"HTTP/1.1 200 OK"), 1)


def test_forwarded_requests_are_judged_like_others():
    equal(curl("http://plain.example.test/x", "-X", "DELETE").json()["detail"],
          "DELETE plain.example.test:80/x denied by L7 policy: DELETE /x not permitted by policy")
    fields = curl("http://example.org/x").json()
    equal(fields, {"error": "policy_denied", "detail": "GET example.org:80/x not permitted by policy"})
    equal(curl("http://api.example.test/").status, 403)
    posted = curl("http://plain.example.test/size", "-d", "12345")
    equal(posted.body, b"5")


def test_malformed_forward_targets_are_told():
    def error(target, host):
        text = proxy_bytes(b"GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (target, host))
        contains(text, b"HTTP/1.1 400 ")
        return text
    contains(error(b"https://api.example.test/", b"api.example.test"), b"CONNECT")
    contains(error(b"ftp://api.example.test/", b"api.example.test"), b"unsupported_proxy_scheme")
    contains(error(b"http://plain.example.test/../x", b"plain.example.test"), b"invalid_request_target")
    text = proxy_bytes(b"GET http://plain.example.test/ HTTP/1.1\r\nHost: other\r\n\r\n")
    contains(text, b"request_authority_mismatch")


# --- Credentials -----------------------------------------------------------------------------------

PLACEHOLDER = "openshell:resolve:env:API_TOKEN"


def test_a_placeholder_becomes_the_secret_for_its_host_only():
    answer = curl("https://api.example.test/echo", "-H", "Authorization: Bearer " + PLACEHOLDER)
    contains(answer.body, b"Authorization: Bearer " + TOKEN.encode() + b"\r\n")
    contains(curl("https://api.example.test/echo", "-H", "X-Api-Key: " + PLACEHOLDER).body, TOKEN.encode())
    basic = curl("https://api.example.test/echo", "-u", "user:" + PLACEHOLDER)
    contains(basic.body, base64.b64encode(b"user:" + TOKEN.encode()))
    query = curl("https://api.example.test/echo?key=openshell%3Aresolve%3Aenv%3AAPI_TOKEN")
    contains(query.body, b"key=tok-5ecret%2F%2Bvalue")
    for host in ("dns", "l4"):
        refused = curl("https://%s.example.test/echo" % host, "-H", "Authorization: Bearer " + PLACEHOLDER)
        equal((refused.status, refused.json()["error"]), (403, "credential_endpoint_mismatch"))


def test_an_unknown_or_unsafe_credential_is_unavailable():
    for name in ("NOBODY", "BAD"):
        answer = curl("https://api.example.test/echo", "-H", "X: openshell:resolve:env:" + name)
        equal((answer.status, answer.json()["error"]), (500, "credential_unavailable"))


def test_a_secret_never_travels_in_the_clear():
    answer = curl("http://plain.example.test/echo", "-H", "X: openshell:resolve:env:PLAIN")
    equal((answer.status, answer.json()["error"]), (403, "credential_endpoint_mismatch"))


def test_records_hold_no_secret_and_no_placeholder():
    equal(curl("https://api.example.test/bot" + PLACEHOLDER + "/x").status, 500)  # It has a slash.
    stage().expect_log("/bot[CREDENTIAL]/x")
    with open(stage().folder + "/events.jsonl") as lines:
        text = lines.read()
    for secret in (TOKEN, "local-secret", "never-in-clear", "openshell:resolve"):
        lacks(text, secret)
        lacks(stage().log(), secret)
