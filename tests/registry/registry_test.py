# SPDX-License-Identifier: Apache-2.0
"""Pulls from a registry that does as it should, and as it should not. Every refusal has a control
that differs in the one thing.

usage: registry_test.py DRIVER
"""
import itertools
import json
import subprocess
import threading

from harness import PASSWORD, SUBJECT, Case, digest_of, main
from registry import BUNDLE, INDEX, LAYER, MANIFEST

BLOB = bytes(range(256)) * 4000


def redirect_to(url, status=307):
    return lambda handler: handler.reply(status, headers={'location': url})


class Tokens(Case):
    def test_an_anonymous_token_is_fetched_when_the_registry_asks_and_used_for_all_that_follows(self):
        registry = self.registry(auth='bearer')
        registry.anonymous = True
        registry.add_image('demo', 'v1', [b'a', b'b', b'c'])
        self.pulls(registry)
        self.assertEqual(len(registry.asked('^/token')), 1)
        self.assertIn('service=tests%2C%20%22quoted%22', registry.asked('^/token')[0][1])

    def test_a_password_goes_to_the_token_service_alone(self):
        registry = self.registry(auth='bearer')
        registry.add_image('demo', 'v1')
        self.pulls(registry, username='robot', password=PASSWORD)
        self.assertEqual(registry.asked('^/token')[0][2]['authorization'], registry.basic())
        for _, _, headers in registry.asked('^/v2/'):
            self.assertFalse(headers.get('authorization', '').startswith('Basic'))
        self.fails('setup', 'there are no credentials', registry)
        self.fails('refused', 'the command line', registry, username='robot', password='wrong')

    def test_basic_is_spoken_where_it_is_asked_for(self):
        registry = self.registry(auth='basic')
        registry.add_image('demo', 'v1')
        self.pulls(registry, username='robot', password=PASSWORD)
        self.fails('setup', 'requires a password', registry)
        self.fails('refused', '401', registry, username='robot', password='wrong')

    def test_a_token_that_is_no_longer_taken_is_renewed_once_for_each_request(self):
        registry = self.registry(auth='bearer')
        registry.anonymous = True
        registry.add_image('demo', 'v1')
        registry.fault('/blobs/', lambda handler: bool(registry.tokens.clear()), times=1)
        self.pulls(registry)
        self.assertEqual(len(registry.asked('^/token')), 2)
        registry.fault('/blobs/', lambda handler: handler.reply(
            401, headers={'www-authenticate': registry.challenge()}))
        before = len(registry.asked('/blobs/'))
        self.fails('setup', '401', registry)
        self.assertEqual(len(registry.asked('/blobs/')) - before, 2)

    def test_threads_whose_token_is_no_longer_taken_share_the_next(self):
        registry = self.registry(auth='bearer')
        registry.anonymous = True
        registry.add_image('demo', 'v1', [b'%d' % number for number in range(8)])
        config = json.loads(registry.manifests['demo', 'v1'][1])['config']['digest']
        registry.fault('/blobs/(?!' + config + ')', lambda handler: bool(registry.tokens.clear()), times=1)
        self.pulls(registry)
        self.assertEqual(len(registry.asked('^/token')), 2)

    def test_an_identity_token_is_exchanged_by_post_and_by_get_where_post_is_unknown(self):
        registry = self.registry(auth='bearer')
        registry.add_image('demo', 'v1')
        auth = json.dumps({'auths': {registry.host: {'identitytoken': PASSWORD, 'username': 'robot'}}})
        self.pulls(registry, env='DOCKER_AUTH_CONFIG=' + auth)
        self.assertEqual([request[0] for request in registry.asked('^/token')], ['POST'])
        registry.fault('^/token$', lambda handler: handler.reply(405))
        self.pulls(registry, env='DOCKER_AUTH_CONFIG=' + auth)
        self.assertEqual([request[0] for request in registry.asked('^/token')], ['POST', 'POST', 'GET'])

    def test_a_realm_elsewhere_gets_nothing(self):
        registry, other = self.registry(auth='bearer'), self.registry(auth='bearer')
        registry.add_image('demo', 'v1')
        for realm, words in (('http://169.254.169.254/token', 'without TLS'), ('https://169.254.169.254/', 'link-local'),
                             (f'http://localhost:{other.host[10:]}/token', 'without TLS'),
                             ('https://localhost/token', 'this machine'), ('https://[::1]/', 'this machine'),
                             ('https://127.2/', 'this machine'), ('https://10.0.0.1/', 'private'), ('ftp://a/', 'not an http'),
                             ('https://0.0.0.0/', 'not a host address')):
            with self.subTest(realm):
                registry.realm = realm
                self.fails('invalid' if realm.startswith('ftp') else 'refused', words, registry,
                           username='robot', password=PASSWORD)
        self.assertEqual(other.requests, [])
        registry.realm = None
        self.pulls(registry, username='robot', password=PASSWORD)

    def test_a_token_service_does_not_lead_elsewhere_with_the_password(self):
        registry, other = self.registry(auth='bearer'), self.registry(auth='bearer')
        registry.add_image('demo', 'v1')
        registry.fault('^/token', redirect_to(f'http://localhost:{other.host[10:]}/token'), times=1)
        self.fails('refused', 'without TLS', registry, username='robot', password=PASSWORD)
        registry.fault('^/token', redirect_to(f'{other.url}/token'), times=1)
        self.fails('refused', 'token service denied', registry, username='robot', password=PASSWORD)
        self.assertNotIn('authorization', other.requests[0][2])

    def test_a_token_service_that_answers_nonsense_is_an_error(self):
        for body, words in (({'token': 'a\r\nx: y'}, 'no token'), ({}, 'no token'), (b'<html>', 'not JSON'),
                            (b'{"token":"' + b'x' * 70000 + b'"}', 'larger than 65536')):
            with self.subTest(words):
                registry = self.registry(auth='bearer')
                registry.add_image('demo', 'v1')
                registry.fault('^/token', lambda handler, body=body: handler.reply(200, body))
                self.fails('invalid', words, registry)

    def test_a_401_without_a_challenge_is_a_refusal(self):
        registry = self.registry()
        registry.fault('/v2/', lambda handler: handler.reply(401))
        self.fails('refused', 'neither Bearer nor Basic', registry)


class Redirects(Case):
    def setUp(self):
        self.origin, self.store = self.registry(auth='bearer'), self.registry()
        self.origin.anonymous = True
        self.origin.add_image('demo', 'v1', [BLOB])
        self.store.blobs = self.origin.blobs

    def test_a_blob_elsewhere_is_fetched_without_the_authorization(self):
        self.origin.fault('/blobs/', lambda handler: handler.reply(
            302, headers={'location': f'{self.store.url}{handler.path}?signature=secret'})
            if 'authorization' in handler.headers else False)
        self.pulls(self.origin)
        self.assertTrue(self.origin.asked('/blobs/')[0][2]['authorization'].startswith('Bearer token-'))
        self.assertEqual(len(self.store.requests), 2)
        for _, _, headers in self.store.requests:
            self.assertNotIn('authorization', headers)

    def test_an_error_behind_a_redirect_does_not_show_the_signed_address(self):
        self.origin.fault('/blobs/', lambda handler: handler.reply(
            302, headers={'location': f'http://{self.store.host}/x?signature={PASSWORD}'}))
        self.store.fault('^/x', lambda handler: handler.reply(403, b'expired'))
        self.fails('setup', '403', self.origin)
        self.store.faults.clear()
        self.store.fault('^/x', lambda handler: handler.reply(200, BLOB * 2))
        self.fails('refused', 'bytes', self.origin)

    def test_what_asks_for_credentials_behind_a_redirect_gets_none(self):
        self.origin.fault('/blobs/', redirect_to(self.store.url + '/x'))
        self.store.fault('^/x', lambda handler: handler.reply(
            401, headers={'www-authenticate': self.origin.challenge()}))
        self.fails('refused', 'requires credentials', self.origin)
        self.assertEqual(len(self.store.requests), 1)

    def test_loops_end_and_places_within_are_not_asked(self):
        for target, words in ((self.origin.url + '/v2/demo/blobs/', 'more than 5 redirects'),
                              ('http://169.254.169.254/latest/meta-data/', 'link-local'),
                              (f'http://localhost:{self.store.host[10:]}/', 'this machine'),
                              (f'http://a.name.localhost:{self.store.host[10:]}/', 'this machine'),
                              ('http://0.0.0.0/', 'not a host address'), ('file:///etc/passwd', 'not an http'),
                              ('http://u:p@127.0.0.1/', 'not an http')):
            with self.subTest(target):
                self.origin.faults.clear()
                self.origin.fault('/blobs/', redirect_to(target))
                code = 'invalid' if words == 'not an http' else 'refused'
                self.fails(code, words, self.origin)
        self.assertEqual(self.store.requests, [])
        self.origin.faults.clear()
        self.pulls(self.origin)

    def test_https_never_becomes_http(self):
        folder = self.folder()
        certificate, key = str(folder / 'cert.pem'), str(folder / 'key.pem')
        subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
                        '-keyout', key, '-out', certificate, '-days', '2', '-subj', '/CN=test', '-addext',
                        'subjectAltName=IP:127.0.0.1'], check=True, capture_output=True)
        secure = self.registry(tls=(certificate, key))
        secure.add_image('demo', 'v1', [BLOB])
        name = f'{secure.host}/demo:v1'
        self.assertNotIn('error', self.ask('pull', name, ca=certificate))
        self.assertEqual(self.ask('pull', name)['code'], 'setup')  # Not a certificate that we know.
        secure.fault('/blobs/', redirect_to(self.store.url + '/x'))
        answer = self.ask('pull', name, ca=certificate)
        self.assertEqual(answer['code'], 'refused')
        self.assertIn('without TLS', answer['error'])
        self.assertEqual(self.store.requests, [])


class Retries(Case):
    def setUp(self):
        self.reg = self.registry()
        self.reg.add_image('demo', 'v1', [BLOB])

    def test_what_passes_is_waited_for(self):
        for status, headers in ((500, {}), (502, {}), (503, {}), (504, {}), (408, {}), (429, {'retry-after': '1'})):
            with self.subTest(status):
                self.reg.fault('/manifests/', lambda h, s=status, a=headers: h.reply(s, b'<html>', a), times=1)
                self.pulls(self.reg)
        self.assertGreater(self.seconds, 1)  # The last one asked for that.

    def test_what_does_not_pass_is_told_with_its_limit(self):
        self.reg.fault('/manifests/', lambda h: h.reply(429, {'errors': [{'message': 'too\nmany pulls'}]},
                                                        {'ratelimit-limit': '100;w=21600'}))
        answer = self.fails('temporary', '429, too many pulls (limit 100;w=21600)', self.reg)
        self.assertIn('docker login', answer['hint'])
        self.assertEqual(len(self.reg.requests), 3)

    def test_a_wait_beyond_reason_is_not_waited(self):
        self.reg.fault('/manifests/', lambda h: h.reply(429, headers={'retry-after': '3600'}))
        self.fails('temporary', '429', self.reg)
        self.assertEqual(len(self.reg.requests), 1)

    def test_nobody_listening_is_temporary(self):
        self.reg.close()
        self.fails('temporary', '/v2/demo/manifests/v1', self.reg)

    def test_a_forbidden_image_is_refused_at_once(self):
        self.reg.fault('/manifests/', lambda h: h.reply(403, {'errors': [{'code': 'DENIED'}]}))
        self.fails('setup', '403, DENIED', self.reg)
        self.assertEqual(len(self.reg.requests), 1)

    def test_an_absent_image_is_not_found(self):
        self.fails('not-found', '404, manifest unknown', self.reg, name='demo:v2')
        self.assertEqual(len(self.reg.requests), 1)


class Bodies(Case):
    def setUp(self):
        self.reg = self.registry()
        self.reg.add_image('demo', 'v1', [BLOB])
        self.blob = '/blobs/' + digest_of(BLOB)

    def short(self, handler, data=BLOB[:300000]):
        handler.reply(200, data, length=len(BLOB))

    def test_a_cut_transfer_goes_on_where_it_was(self):
        self.reg.fault(self.blob, self.short, times=1)
        self.pulls(self.reg)
        self.assertEqual(self.reg.asked(self.blob)[1][2]['range'], 'bytes=300000-')

    def test_a_registry_without_ranges_sends_all_again(self):
        self.reg.fault(self.blob, self.short, times=1)
        self.reg.fault(self.blob, lambda h: h.reply(200, BLOB))
        self.pulls(self.reg)
        self.assertEqual(len(self.reg.asked(self.blob)), 2)

    def test_another_range_than_was_asked_for_is_not_taken(self):
        for answer in ('bytes 0-1023999/1024000', 'bytes 300000-1023999/9', ''):
            with self.subTest(answer):
                self.reg.faults.clear()
                self.reg.fault(self.blob, self.short, times=1)
                self.reg.fault(self.blob, lambda h, a=answer: h.reply(206, BLOB[300000:], {'content-range': a})
                               if h.headers.get('range') else False)
                before = len(self.reg.asked(self.blob))
                self.pulls(self.reg)
                self.assertEqual(len(self.reg.asked(self.blob)) - before, 3)
                self.assertNotIn('range', self.reg.asked(self.blob)[-1][2])

    def test_a_range_that_does_not_exist_starts_again(self):
        self.reg.fault(self.blob, self.short, times=1)
        self.reg.fault(self.blob, lambda h: h.reply(416) if h.headers.get('range') else False)
        self.pulls(self.reg)

    def test_pieces_that_do_not_fit_together_are_fetched_once_more_whole(self):
        self.reg.fault(self.blob, lambda h: self.short(h, b'\xff' * 300000), times=1)
        self.pulls(self.reg)
        self.assertEqual(len(self.reg.asked(self.blob)), 3)

    def test_other_bytes_are_refused_and_not_asked_for_again(self):
        self.reg.fault(self.blob, lambda h: h.reply(200, BLOB[:-1] + b'x'))
        self.fails('refused', 'has the digest sha256:', self.reg)
        self.assertEqual(len(self.reg.asked(self.blob)), 1)

    def test_a_longer_blob_is_refused_at_its_first_surplus_byte(self):
        self.reg.fault(self.blob, lambda h: h.reply(200, BLOB + b'x'))
        self.fails('refused', '1024001 bytes', self.reg)
        self.reg.faults.clear()
        self.reg.fault(self.blob, lambda h: h.chunks(200, itertools.repeat(b'x' * 65536)))
        self.fails('refused', 'longer than the 1024000 bytes', self.reg)
        self.reg.faults.clear()
        self.reg.fault(self.blob, lambda h: h.chunks(200, [BLOB, b'x']))
        self.fails('refused', 'longer than the 1024000 bytes', self.reg)

    def test_a_shorter_blob_is_refused_when_that_is_all_there_is(self):
        self.reg.fault(self.blob, lambda h: h.reply(200, BLOB[:-1]))
        self.fails('refused', '1023999 bytes', self.reg)
        self.reg.faults.clear()
        self.reg.fault(self.blob, lambda h: h.chunks(200, [BLOB[:100]]))
        self.fails('temporary', 'it ended after 100 of 1024000', self.reg, attempts=2)

    def test_a_transfer_that_stands_still_is_tried_anew(self):
        released = threading.Event()
        self.addCleanup(released.set)

        def stall(handler):
            handler.send_response(200)
            handler.send_header('content-length', str(len(BLOB)))
            handler.end_headers()
            handler.wfile.write(BLOB[:1000])
            released.wait()
            handler.close_connection = True
        self.reg.fault(self.blob, stall, times=1)
        self.pulls(self.reg, stall=1)  # And the first transfer still stands.
        self.assertEqual(self.reg.asked(self.blob)[1][2]['range'], 'bytes=1000-')

    def test_an_endless_manifest_ends_at_four_mebibytes(self):
        self.reg.fault('/manifests/', lambda h: h.chunks(200, itertools.repeat(b' ' * 65536),
                                                         [('content-type', MANIFEST)]))
        self.fails('invalid', 'more than 4194304 bytes', self.reg)
        self.assertEqual(len(self.reg.requests), 1)

    def test_an_endless_error_is_cut(self):
        self.reg.fault('/manifests/', lambda h: h.chunks(403, itertools.repeat(b' ' * 65536)))
        self.fails('setup', '403', self.reg)

    def test_a_manifest_has_the_digest_that_was_asked_for(self):
        good = self.reg.manifests['demo', 'v1'][1]
        name = 'demo@' + digest_of(good)
        self.pulls(self.reg, name=name)
        self.reg.manifests['demo', digest_of(good)] = (MANIFEST, good + b' ')
        self.fails('refused', 'has the digest', self.reg, name=name)
        self.reg.fault('/manifests/v1', lambda h: h.reply(200, good, {
            'content-type': MANIFEST, 'docker-content-digest': 'sha256:' + '0' * 64}))
        self.fails('refused', 'the registry claims', self.reg)

    def test_a_document_that_is_not_what_it_came_as_is_refused(self):
        good = json.loads(self.reg.manifests['demo', 'v1'][1])
        for more, content_type, words in (({'manifests': []}, MANIFEST, 'ambiguous'), ({}, INDEX, 'is a manifest'),
                                          ({'mediaType': INDEX}, MANIFEST, 'is a manifest'),
                                          ({'mediaType': BUNDLE}, MANIFEST, 'says that it is'),
                                          ({'schemaVersion': 1}, MANIFEST, 'schema 1')):
            with self.subTest(words):
                self.reg.add_manifest('demo', good | more, 'bad', media_type=content_type)
                self.fails('invalid', words, self.reg, name='demo:bad')
        helm = good | {'config': good['config'] | {'mediaType': 'application/vnd.cncf.helm.config.v1+json'}}
        self.reg.add_manifest('demo', helm, 'helm')
        self.fails('invalid', 'a Helm chart', self.reg, name='demo:helm')

    def test_a_digest_that_is_a_path_is_refused_before_it_is_asked_for(self):
        good = json.loads(self.reg.manifests['demo', 'v1'][1])
        for digest in ('sha256:../../../token', 'sha256:' + 'A' * 64, 'sha512:' + 'a' * 128, digest_of(b'') + '/x'):
            with self.subTest(digest):
                self.reg.add_manifest('demo', good | {'layers': [good['layers'][0] | {'digest': digest}]}, 'bad')
                self.fails('invalid', 'digest is not', self.reg, name='demo:bad')
        self.assertEqual(self.reg.asked('/blobs/'), [])

    def test_a_foreign_layer_is_fetched_from_the_registry_alone(self):
        other = self.registry()
        good = json.loads(self.reg.manifests['demo', 'v1'][1])
        foreign = {'mediaType': LAYER.replace('layer.v1', 'layer.nondistributable.v1'), 'urls': [other.url + '/x']}
        self.reg.add_manifest('demo', good | {'layers': [good['layers'][0] | foreign]}, 'foreign')
        self.pulls(self.reg, name='demo:foreign')
        del self.reg.blobs[digest_of(BLOB)]
        self.fails('not-found', 'blob unknown', self.reg, name='demo:foreign')
        self.assertEqual(other.requests, [])


class Signatures(Case):
    def setUp(self):
        self.reg = self.registry()
        self.subject = self.reg.add_image('demo', 'v1')
        self.name = 'demo@' + self.subject['digest']
        self.tag = 'sha256-' + self.subject['digest'][7:]

    def find(self, name=None):
        answer = self.at(self.reg, 'signatures', name or self.name)
        return answer['candidates'], answer['failures']

    def add_legacy(self, suffix='.sig', count=2):
        layer = self.reg.add_blob(b'{}') | {'mediaType': 'application/vnd.dev.cosign.simplesigning.v1+json',
                                            'annotations': {'dev.cosignproject.cosign/signature': 'eA=='}}
        config = self.reg.add_blob(b'c') | {'mediaType': 'application/vnd.oci.image.config.v1+json'}
        self.reg.add_manifest('demo', {'schemaVersion': 2, 'mediaType': MANIFEST, 'config': config,
                                       'layers': [layer] * count}, self.tag + suffix)

    def test_none_is_none(self):
        self.assertEqual(self.find(), ([], []))
        self.reg.referrers_api = False
        self.assertEqual(self.find(), ([], []))

    def test_tags_and_referrers_are_both_looked_at(self):
        self.add_legacy()
        self.reg.add_signature('demo', self.subject, b'bundle')
        self.assertEqual([where.split()[0] for where in self.find()[0]], ['tag', 'tag', 'referrer'])
        self.assertEqual(self.find()[1], [])

    def test_a_lookup_that_failed_is_never_none(self):
        for pattern, status in itertools.product((r'\.sig', r'\.att', '/referrers/'), (401, 403, 429, 500, 418)):
            with self.subTest(f'{pattern} {status}'):
                self.reg.faults.clear()
                self.reg.fault(pattern, lambda h, s=status: h.reply(s, headers={'retry-after': '999'}))
                self.assertEqual(len(self.find()[1]), 1)

    def test_what_is_listed_and_cannot_be_read_is_a_failure(self):
        bundle = self.reg.add_signature('demo', self.subject, b'bundle')
        self.reg.fault(bundle['digest'], lambda h: h.reply(403))
        self.assertEqual((self.find()[0], len(self.find()[1])), ([], 1))
        self.reg.faults.clear()
        self.reg.fault('/blobs/', lambda h: h.reply(403))
        self.assertEqual((self.find()[0], len(self.find()[1])), ([], 1))
        self.reg.faults.clear()
        self.assertEqual((len(self.find()[0]), self.find()[1]), (1, []))

    def test_a_listed_manifest_that_is_not_there_is_passed_over(self):
        self.reg.referrers[self.subject['digest']] = [
            {'mediaType': MANIFEST, 'digest': SUBJECT, 'size': 3, 'artifactType': BUNDLE}]
        self.reg.add_signature('demo', self.subject, b'bundle')
        self.assertEqual((len(self.find()[0]), self.find()[1]), (1, []))

    def test_registries_without_the_api_have_the_tag(self):
        for status, body, kind in ((404, b'404 page not found\n', 'text/plain'), (400, b'', 'text/plain'),
                                   (406, b'', 'text/plain'), (200, b'<html>', 'text/html')):
            with self.subTest(status):
                # As cosign wrote them on GHCR: another artifact type, or none, and no annotations.
                listed = {'artifactType': 'application/vnd.oci.empty.v1+json'} if status != 400 else {}
                one = self.reg.add_signature('demo', self.subject, b'bundle %d' % status, listed)
                self.reg.add_manifest('demo', {'schemaVersion': 2, 'mediaType': INDEX, 'manifests': [one]},
                                      self.tag, media_type=INDEX)
                self.reg.faults.clear()
                self.reg.fault('/referrers/', lambda h, s=status, b=body, k=kind: h.reply(s, b, {'content-type': k}))
                self.assertEqual(self.find(), ([f'referrer {one["digest"]}, layer 0'], []))

    def test_a_fallback_tag_that_fails_is_a_failure(self):
        self.reg.referrers_api = False
        self.reg.fault(self.tag + '$', lambda h: h.reply(403))
        self.assertEqual(len(self.find()[1]), 1)
        self.reg.faults.clear()
        self.reg.add_manifest('demo', b'{"schemaVersion":2,"manifests":[],"manifests":[]}', self.tag, media_type=INDEX)
        self.assertEqual(len(self.find()[1]), 1)

    def test_pages_are_followed_while_they_end(self):
        for number in range(5):
            self.reg.add_signature('demo', self.subject, b'%d' % number)
        self.reg.page_size = 2
        self.assertEqual((len(self.find()[0]), self.find()[1]), (5, []))
        listed = json.dumps({'schemaVersion': 2, 'manifests': []}).encode()
        for target, words in ((f'/v2/demo/referrers/{self.subject["digest"]}', 'more than 32 pages'),
                              ('http://localhost:1/', 'on another host')):
            self.reg.faults.clear()
            self.reg.fault('/referrers/', lambda h, t=target: h.reply(
                200, listed, {'content-type': INDEX, 'link': f'<{t}>; rel="next"'}))
            self.assertEqual(self.find()[0], [])
            self.assertIn(words, self.find()[1][0])

    def test_a_signature_behind_a_crowd_of_others_is_found(self):
        for number in range(70):
            self.reg.add_signature('demo', self.subject, b'%d' % number, artifact_type='application/spdx+json')
        wanted = self.reg.add_signature('demo', self.subject, b'it')
        candidates, failures = self.find()
        self.assertEqual(candidates[0], f'referrer {wanted["digest"]}, layer 0')
        self.assertEqual(failures, ['referrers: only 64 of 71 were checked'])

    def test_a_crowd_of_layers_is_bounded_and_said(self):
        self.add_legacy(count=70)
        candidates, failures = self.find()
        self.assertEqual((len(candidates), len(failures)), (64, 1))
        self.assertIn('more than 64 signatures', failures[0])

    def test_a_referrer_of_another_image_is_a_failure(self):
        other = self.reg.add_image('demo', 'v2', [b'other'])
        self.reg.referrers[self.subject['digest']] = [self.reg.add_signature('demo', other, b'bundle')]
        candidates, failures = self.find()
        self.assertEqual((candidates, len(failures)), ([], 1))
        self.assertIn('it refers to ' + other['digest'], failures[0])


if __name__ == '__main__':
    main()
