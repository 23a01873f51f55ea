# SPDX-License-Identifier: Apache-2.0
"""Servers and clients that break off, stall, never read, or come by the thousand."""
import ctypes
import os
import resource
import socket
import ssl
import time

from stage import (connect_proxy, contains, curl, equal, gateway_pid, in_tunnel, read_all, read_response,
                   request, stage, tls_tunnel, tunnel, unanswered)


def descriptors():
    return len(os.listdir("/proc/%d/fd" % gateway_pid()))


def resident_mb():
    with open("/proc/%d/status" % gateway_pid()) as status:
        return [int(line.split()[1]) for line in status if line.startswith("VmRSS:")][0] / 1024


def await_descriptors(most):
    for _ in range(2400):
        if descriptors() <= most:
            return
        time.sleep(0.05)
    raise AssertionError("%d descriptors, at most %d expected" % (descriptors(), most))


def sanitized():
    with open("/proc/%d/maps" % gateway_pid()) as maps:
        return "asan" in maps.read()


WAITING = []


def waiting():
    """Clients whose name server says nothing. Their time-out is long: one test begins it, another sees its end."""
    if not WAITING:
        WAITING.extend(connect_proxy() for _ in range(5))
        for connection in WAITING:
            connection.sendall(b"CONNECT silent.wild.example.test:443 HTTP/1.1\r\nHost: x\r\n\r\n")
    return WAITING


def test_a_silent_name_server_holds_nobody_else_up():
    connections = waiting()
    equal(curl("https://dns.example.test/echo").status, 200)
    assert unanswered(connections)


def test_a_server_that_resets_before_its_answer_is_a_bad_gateway():
    answer = curl("https://api.example.test/reset")
    equal(answer.status, 502)
    equal(answer.json()["error"], "upstream_unreachable")
    stage().expect_log("NET:FAIL")


def test_a_server_that_resets_in_its_answer_cuts_the_client_off():
    with tls_tunnel("api.example.test") as connection:
        connection.sendall(request("/reset?late"))
        got = b""
        try:
            while True:
                more = connection.recv(65536)
                if not more:
                    break
                got += more
        except (ssl.SSLError, ConnectionResetError):
            pass
        contains(got, b"Content-Length: 100\r\n")
        assert got.endswith(b"only this"), got


def test_a_port_where_nobody_listens_is_a_bad_gateway():
    _, head = tunnel("api.example.test:9445")
    contains(head, b"502 Bad Gateway")


def test_a_server_that_stalls_in_its_handshake_holds_nobody_else_up():
    before = descriptors()
    stalled = [tls_tunnel("api.example.test", 9444) for _ in range(10)]
    for connection in stalled:
        connection.sendall(request("/echo", host="api.example.test:9444"))
    equal(curl("https://api.example.test/echo").status, 200)
    assert unanswered(stalled)
    for connection in stalled:
        connection.close()
    assert descriptors() < before + 30


def test_a_client_may_finish_sending_and_still_get_its_answer():
    connection, head = tunnel("plain.example.test:80")
    contains(head, b" 200 ")
    connection.sendall(request("/echo", host="plain.example.test"))
    connection.shutdown(socket.SHUT_WR)
    contains(read_all(connection), b"200 OK")
    connection.close()


def test_clients_that_never_read_cost_a_bounded_buffer():
    before = resident_mb()
    deaf = []
    for _ in range(24):
        connection = tls_tunnel("api.example.test")
        connection.sendall(request("/big"))
        deaf.append(connection)
    time.sleep(0.5)
    equal(curl("https://api.example.test/echo").status, 200)
    used = resident_mb() - before
    if not sanitized():
        assert used < 24 * 0.5, "%.1f MB for 24 clients that read nothing of 8 MB each" % used
    for connection in deaf:
        connection.close()


def test_a_thousand_clients_are_served_and_more_than_allowed_are_told():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    held = []
    # Fifty at a time: nothing watches connect(2) here, so each owner is looked for among all descriptors.
    for _ in range(20):
        more = [connect_proxy() for _ in range(50)]
        for connection in more:
            connection.sendall(b"CONNECT api.example.test:443 HTTP/1.1\r\nHost: api.example.test:443\r\n\r\n")
        for connection in more:
            connection.settimeout(120)
            contains(connection.recv(100), b"HTTP/1.1 200 ")
        held += more
    context = ssl.create_default_context(cafile=stage().folder + "/ca.pem")
    for index in range(0, 1000, 50):
        held[index] = context.wrap_socket(held[index], server_hostname="api.example.test")
        held[index].sendall(request("/echo"))
    for index in range(0, 1000, 50):
        contains(read_response(held[index])[0], b"200 OK")
    if not sanitized():
        assert resident_mb() < 60, "%.1f MB" % resident_mb()
    held += [connect_proxy() for _ in range(30)]
    held[-1].settimeout(120)
    answer = held[-1].recv(100)
    for connection in held:
        connection.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    contains(answer, b"HTTP/1.1 503 ")
    for _ in range(1200):
        if curl("https://api.example.test/echo").status == 200:
            return
        time.sleep(0.1)
    raise AssertionError("the gateway does not recover")


def one_round():
    """Connections of every kind, good and bad."""
    for _ in range(8):
        with tls_tunnel("api.example.test") as connection:
            for _ in range(3):
                connection.sendall(request("/echo"))
                contains(read_response(connection)[0], b"200 OK")
        contains(in_tunnel(request("/forbidden", method="DELETE")), b" 403 ")
        in_tunnel(b"nonsense\r\n\r\n")
        equal(curl("https://api.example.test/reset").status, 502)
        connection, _ = tunnel("l4.example.test:9000")
        connection.close()
        connection, _ = tunnel("untrusted.example.test:8443")
        connection.close()
        connection = connect_proxy()
        connection.sendall(b"GET http://plain.example.test/echo HTTP/1.1\r\nHost: plain.example.test\r\n\r\n")
        contains(read_all(connection), b"200 OK")
        connection.close()
        connection = connect_proxy()
        connection.sendall(b"CONN")
        connection.close()


def test_an_answer_that_ends_its_connection_arrives_whole_however_late_it_is_read():
    for path, least in (("/big", 8000000), ("/echo", 1)):
        connection, _ = tunnel("api.example.test:443")
        context = ssl.create_default_context(cafile=stage().folder + "/ca.pem")
        with context.wrap_socket(connection, server_hostname="api.example.test", suppress_ragged_eofs=False) as secure:
            secure.sendall(request(path, "Connection: close"))
            time.sleep(0.5)
            head, _, body = b"".join(iter(lambda: secure.recv(65536), b"")).partition(b"\r\n\r\n")
        length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        equal(len(body), int(length[0].split(b":")[1]))
        assert len(body) >= least, len(body)


def test_no_connection_leaves_a_descriptor_or_memory_behind():
    one_round()
    await_descriptors(200)
    time.sleep(0.3)
    open_before, used_before = descriptors(), resident_mb()
    for _ in range(4):
        one_round()
    await_descriptors(open_before + 4)
    if not sanitized():
        assert resident_mb() < used_before + 2, "%.1f MB, %.1f before" % (resident_mb(), used_before)


def test_connections_to_a_server_are_kept_and_shared():
    ports = set()
    for _ in range(4):
        with tls_tunnel("api.example.test") as connection:
            connection.sendall(request("/peer"))
            ports.add(read_response(connection)[1])
            time.sleep(0.3)
    equal(len(ports), 1)


def test_a_raw_tunnel_is_shared_with_nobody():
    ports = []
    context = ssl.create_default_context(cafile=stage().folder + "/trusted.pem")
    for _ in range(2):
        connection, _ = tunnel("skip.example.test:443")
        with context.wrap_socket(connection, server_hostname="skip.example.test") as secure:
            secure.sendall(request("/peer", host="skip.example.test"))
            ports.append(read_response(secure)[1])
    assert ports[0] != ports[1], ports


def test_a_client_resumes_its_tls_session_with_the_same_host_only():
    context = ssl.create_default_context(cafile=stage().folder + "/ca.pem")

    def exchange(host, session):
        connection, _ = tunnel(host + ":443")
        with context.wrap_socket(connection, server_hostname=host, session=session) as secure:
            for _ in range(2):  # The ticket comes with the second answer.
                secure.sendall(request("/echo", host=host))
                contains(read_response(secure)[0], b"200 OK")
            return secure.session, secure.session_reused
    session, reused = exchange("api.example.test", None)
    equal(reused, False)
    session, reused = exchange("api.example.test", session)
    equal(reused, True)
    _, reused = exchange("slash.example.test", session)
    equal(reused, False)


def test_clients_of_either_version_and_of_any_group_are_served():
    for version in ("1.2", "1.3"):
        for groups in ("X25519:P-256", "P-256", "P-384:P-256", "P-521:P-256"):
            options = ("--tlsv" + version, "--tls-max", version, "--curves", groups)
            answer = curl("https://api.example.test/echo", *options)
            equal((options, answer.code, answer.status), (options, 0, 200))


class OwnTls:
    """TLS by the system's libssl, whose keys can be changed at any time (Python's ssl cannot)."""

    def __init__(self, connection, host):
        self.lib = ctypes.CDLL("libssl.so.3")
        for name in ("TLS_client_method", "SSL_CTX_new", "SSL_new"):
            getattr(self.lib, name).restype = ctypes.c_void_p
        self.connection = connection
        self.context = ctypes.c_void_p(self.lib.SSL_CTX_new(ctypes.c_void_p(self.lib.TLS_client_method())))
        self.tls = ctypes.c_void_p(self.lib.SSL_new(self.context))
        self.lib.SSL_ctrl(self.tls, 55, 0, ctypes.c_char_p(host.encode()))  # SSL_set_tlsext_host_name.
        self.lib.SSL_set_fd(self.tls, connection.fileno())
        equal(self.lib.SSL_connect(self.tls), 1)

    def change_keys(self):
        """Both sides' keys, at once."""
        equal(self.lib.SSL_key_update(self.tls, 1), 1)
        equal(self.lib.SSL_do_handshake(self.tls), 1)

    def send(self, data):
        equal(self.lib.SSL_write(self.tls, data, len(data)), len(data))

    def receive(self, size):
        data = ctypes.create_string_buffer(size)
        got = self.lib.SSL_read(self.tls, data, size)
        return data.raw[:max(got, 0)]

    def close(self):
        self.lib.SSL_free(self.tls)
        self.lib.SSL_CTX_free(self.context)
        self.connection.close()


def test_a_client_may_change_keys_while_the_gateway_waits_to_write():
    connection, _ = tunnel("api.example.test:443")
    connection.settimeout(None)
    tls = OwnTls(connection, "api.example.test")
    tls.change_keys()
    tls.send(request("/echo"))
    contains(tls.receive(65536), b"200 OK")
    tls.send(request("/big"))
    time.sleep(0.5)  # The gateway's socket is full now.
    for _ in range(20):
        tls.change_keys()
    time.sleep(0.2)
    got = 0
    while got < 8000000:
        piece = tls.receive(65536)
        assert piece, "the answer ends after %d bytes" % got
        got += len(piece)
    tls.close()
    equal(curl("https://api.example.test/echo").status, 200)


def test_a_name_that_nobody_answers_for_is_a_bad_gateway():
    for connection in waiting():
        connection.settimeout(120)  # More than kResolveTimeout.
        contains(read_all(connection), b"HTTP/1.1 502 ")
        connection.close()
    WAITING.clear()
