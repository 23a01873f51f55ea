# SPDX-License-Identifier: Apache-2.0
"""What gives tokens to the gateway's users."""
import http.server
import json
import ssl
import threading
import urllib.parse


class Issuer:
    """An OpenID provider: it gives each refresh token once, and tokens to the clients whose secrets it knows, {secret: token}. `keys`: a
    directory with a certificate (front.make_certificates), for https."""

    def __init__(self, clients, address='127.0.0.1', keys=None):
        self.valid, self.given, self.refuses, self.forms = 'refresh-0', 0, False, []
        issuer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self, status, body):
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header('Content-Length', str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_GET(self):
                self.answer(200, {'issuer': issuer.url, 'token_endpoint': issuer.url + '/token'})

            def do_POST(self):
                form = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers['Content-Length'])).decode()))
                issuer.forms.append(form)
                token = clients.get(form.get('client_secret'))
                if form.get('grant_type') == 'client_credentials' and token:
                    return self.answer(200, {'access_token': token, 'expires_in': 36000, 'token_type': 'Bearer'})
                if form != {'grant_type': 'refresh_token', 'refresh_token': issuer.valid, 'client_id': 'openshell-cli'} or issuer.refuses:
                    return self.answer(400, {'error': 'invalid_grant'})
                issuer.given += 1
                issuer.valid = f'refresh-{issuer.given}'
                return self.answer(200, {'access_token': 'new', 'refresh_token': issuer.valid, 'expires_in': 36000})

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer((address, 0), Handler)
        if keys:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(f'{keys}/server.crt', f'{keys}/server.key')
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f'{"https" if keys else "http"}://{address}:{self.server.server_address[1]}'
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
