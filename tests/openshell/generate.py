# SPDX-License-Identifier: Apache-2.0
"""Policies, requests and files that are wrong in one place, from a seeded source of chance."""
import collections
import json

Request = collections.namedtuple('Request', 'method host port target binary body protocol')
# A policy, and what is odd in it, if anything.
File = collections.namedtuple('File', 'what policy')

HOSTS = ('api.example.com', 'www.example.com', '*.example.com', '**.example.com', 'api-*.example.com', 'x.y.example.com')
PATHS = ('/**', '/a', '/a/*', '/a/**', '/a/*/c', '/*/b', '/a*', '**', '/{a,b}/c', '/a/[bc]', '/secret/**', '/q')
METHODS = ('GET', 'POST', '*', 'DELETE', 'HEAD', 'get')
BINARIES = ('/usr/bin/curl', '/usr/bin/*', '/**', '/usr/bin/wget', '**/curl')
QUERIES = (None, None, None, {'t': '1'}, {'t': 'a*'}, {'t': {'any': ['1', 'b*']}}, {'t': '1', 'u': '*'})
FIELDS = ('viewer', 'repo*', '*', 'deleteIssue', '{viewer,search}')
CALLS = ('ping', 'sum', 'tools/list', 'tools/call', 'initialize', 'notifications/initialized')
TOOLS = ('read_file', 'read_*', '*', 'write_file', '{read,write}_file')


def _http_rule(dice):
    rule = {'method': dice.choice(METHODS), 'path': dice.choice(PATHS)}
    query = dice.choice(QUERIES)
    if query is not None:
        rule['query'] = query
    return rule


def _graphql_rule(dice):
    rule = {'operation_type': dice.choice(('query', 'mutation', 'subscription', '*'))}
    if dice.random() < 0.3:
        rule['operation_name'] = dice.choice(('View*', 'View', '*'))
    if dice.random() < 0.6:
        rule['fields'] = dice.sample(FIELDS, dice.randint(1, 2))
    return rule


def _rpc_rule(dice):
    return {'method': dice.choice((*CALLS, '*'))}


def _mcp_rule(dice):
    rule = {'method': dice.choice((*CALLS, 'tools/*'))}
    if rule['method'] == 'tools/call' and dice.random() < 0.7:
        rule['tool'] = dice.choice(TOOLS)
    return rule


RULES = {'rest': _http_rule, 'graphql': _graphql_rule, 'json-rpc': _rpc_rule, 'mcp': _mcp_rule}


def _endpoint(dice):
    endpoint = {'host': dice.choice(HOSTS), 'port': dice.choice((443, 443, 8443))}
    if dice.random() < 0.1:
        return endpoint
    protocol = dice.choice(('rest', 'rest', 'rest', 'graphql', 'json-rpc', 'mcp'))
    rule = RULES[protocol]
    endpoint |= {'protocol': protocol, 'enforcement': 'enforce'}
    if protocol in ('rest', 'graphql') and dice.random() < 0.35:
        endpoint['access'] = dice.choice(('read-only', 'read-write', 'full'))
    else:
        endpoint['rules'] = [{'allow': rule(dice)} for _ in range(dice.randint(1, 3))]
    if protocol == 'rest' and dice.random() < 0.3:
        endpoint['deny_rules'] = [{'method': '*', 'path': '/secret/**'}]
    elif dice.random() < 0.4:
        endpoint['deny_rules'] = [rule(dice) for _ in range(dice.randint(1, 2))]
    if protocol == 'rest' and dice.random() < 0.2:
        endpoint['allow_encoded_slash'] = True
    return endpoint


def generated_file(dice):
    """One endpoint on each port: OpenShell refuses or joins overlapping ones."""
    network = {}
    ports = set()
    for n in range(dice.randint(1, 2)):
        endpoint = _endpoint(dice)
        if endpoint['port'] in ports:
            continue
        ports.add(endpoint['port'])
        network[f'p{n}'] = {'endpoints': [endpoint], 'binaries': [{'path': dice.choice(BINARIES)}]}
    return File('generated', json.dumps({'version': 1, 'network_policies': network}))


NAMES = ('api.example.com', 'api.example.com', 'www.example.com', 'API.Example.com', 'api.example.com.', 'x.y.example.com',
         'api-1.example.com', 'example.com', 'evil.test', 'apiexample.com')
TARGETS = ('/', '/a', '/a/', '/a/b', '/a/b/c', '/b', '/a/x/c', '/b/c', '/q', '/secret/x', '/secret', '/A/b', '/a//b', '/a/./b',
           '/a/../secret/x', '/a/%2e%2e/secret/x', '/../a', '/a%2Fb', '/secret%2Fx', '/secret%5Cx', '/a%5Cb', '/a%20b', '/%61',
           '/a;x=1/b', '/a/..%5Csecret', '/a/..%2Fsecret', '/a%00b', '/a%zz', '/a%C0%AFb', '/a/%62')
TAILS = ('', '', '', '?', '?t=1', '?t=2', '?t=abc', '?t=a.b', '?t=1&t=2', '?t=1&u=', '?t=1&u=x.y', '?u=1', '?T=1', '?t=1&T=2',
         '?t[]=2&t=1', '?+t=2&t=1', '?%20t=2&t=1', '?t=1;t=2', '?x;t=2&t=1', '?%74=1', '?t=%31', '?t', '?&&t=1', '?t=1%00',
         '?t=%ff', '?t=%zz')
DOCUMENTS = ('{viewer{login}}', 'query View {viewer{login}}', 'query Other {search{id}}', '{repository(name:"x"){id} viewer{id}}',
             'mutation {deleteIssue{id}}', 'mutation View {deleteIssue{id} viewer{id}}', 'subscription {viewer{id}}', '{viewer',
             '{v:viewer{login}}', '{...F} fragment F on Query {search{id}}', 'query A {viewer{id}} mutation B {deleteIssue{id}}')


def _graphql_body(dice):
    body = {'query': dice.choice(DOCUMENTS)}
    if dice.random() < 0.3:
        body['operationName'] = dice.choice(('View', 'A', 'B', 'Nowhere', ''))
    if dice.random() < 0.1:
        return [body, {'query': dice.choice(DOCUMENTS)}]
    return body


def _call(dice):
    call = {'jsonrpc': '2.0', 'id': 1, 'method': dice.choice((*CALLS, 'rpc.discover'))}
    if call['method'] == 'tools/call':
        call['params'] = {'name': dice.choice(('read_file', 'write_file', 'read_', 'Read_file', 'a.b'))}
    if call['method'].startswith('notifications/'):
        del call['id']
    if dice.random() < 0.2:
        call |= dice.choice(({'jsonrpc': '1.0'}, {'id': None}, {'id': 1.5}, {'id': {}}, {'method': 1}, {'params': 1}, {'method': ''}))
    return call


def _rpc_body(dice):
    if dice.random() < 0.15:
        return [_call(dice) for _ in range(dice.randint(0, 2))]
    return _call(dice)


def _odd(dice, body):
    """The body as text; sometimes no such body, or one of its names twice."""
    text = json.dumps(body)
    chance = dice.random()
    if chance < 0.03:
        return text[:-1]
    if chance < 0.06 and '"method": ' in text:
        return text.replace('"method": ', '"method": "ping", "method": ', 1)
    if chance < 0.08:
        return ''
    return text


BODIES = {'graphql': _graphql_body, 'json-rpc': _rpc_body, 'mcp': _rpc_body}


def requests(dice, file):
    """Most of them are for a place that the policy has, by a program that it names."""
    asked = []
    while len(asked) < 40:
        entry = dice.choice(list(json.loads(file.policy)['network_policies'].values()))
        place = entry['endpoints'][0]
        protocol = place.get('protocol', '')
        host = {'*.example.com': 'www.example.com', '**.example.com': 'x.y.example.com', 'api-*.example.com': 'api-1.example.com'}.get(
            place['host'], place['host'])
        binary = '/usr/bin/wget' if 'wget' in entry['binaries'][0]['path'] else '/usr/bin/curl'
        method = dice.choice(('GET', 'GET', 'GET', 'POST', 'HEAD', 'DELETE', 'get', 'PURGE', 'OPTIONS'))
        target = dice.choice(TARGETS) + dice.choice(TAILS)
        body = ''
        if protocol in BODIES and dice.random() < 0.9:
            method, target, body = 'POST', dice.choice(('/a', '/graphql', '/')), _odd(dice, BODIES[protocol](dice))
        if dice.random() < 0.85:
            asked.append(Request(method, host, place['port'], target, binary, body, protocol))
        else:
            asked.append(Request(method, dice.choice(NAMES), dice.choice((443, 8443)), target,
                                 dice.choice(('/usr/bin/curl', '/usr/bin/wget', '/opt/x/curl')), body, protocol))
    return asked


# Places of a policy, and what may stand there, as YAML. Most of it is wrong.
ODD = {
    'path': ('/x', '" /x"', '"/x "', 'x', '""', '1', 'true', 'null', '"/["', '"/{a"', r'"/\0x"', '!!str /x', '!x /x', '&a /x'),
    'method': ('GET', '" GET"', '""', '1', 'null', 'BREW'),
    'query': ('{t: "1"}', '{t: 1}', '{t: true}', '{t: 1.5}', '{t: " 1"}', '{t: {any: [a, 2]}}', '{t: {any: []}}', '{t: ""}', '{}', '[]',
              '{t: 012}', '{t: 0x1F}', '{t: 0o7}', '{t: 1_000}', '{t: .5}', '{t: 1.}', '{t: +1}', '{t: 1e3}', '{t: 1.0e+3}', '{t: .inf}', '{t: -.INF}',
              '{t: yes}', '{t: 2024-01-01}', '{t: ~}', '{t: 1.2.3}', '{t: e3}', '{t: {glob: 2}}', '{t: {glob: a, any: [b]}}', '{t: a, t: b}'),
    'host': ('a.example.com', '" a.example.com"', '"*.com"', '"*"', '"**"', 'a.*b.example.com', 'http://a', 'a b', '"*.co.uk"',
             'a.**.example.com', '""', 'null'),
    'port': ('443', '"443"', '" 443"', '0', '65536', '-1', 'null', '0x1BB', '0o673', '443, port: 443'),
    'protocol': ('rest', 'REST', '" rest"', 'http', '1'),
    'access': ('full', '" full"', 'write', 'read-only'),
    'enforcement': ('enforce', '" enforce"', 'audit', 'strict'),
    'tls': ('skip', '" skip"', 'terminate', 'off'),
    'allowed_ips': ('[10.0.0.0/16]', '[" 10.0.0.0/16"]', '[127.0.0.1]', '[x]', '[168.63.129.16]', '[]'),
    'allow_encoded_slash': ('true', '"true"', '1', 'null'),
    'unknown': ('1',),
    'version': ('1', '2', '"1"', '" 1"', 'null', '0x1'),
    'run_as_user': ('sandbox', '" sandbox"', 'root', '"0"', '"1000"', '1000'),
    'read_only': ('[/usr]', '[" /usr"]', '[usr]', '[/../x]', r'["/usr/\0x"]'),
    'read_write': ('[/tmp]', '[/]', '[//]', '[/.]', '[/tmp/./x]'),
    'landlock': ('{}', 'null', '{compatibility: best_effort}', '[]'),
    'operation_type': ('query', 'QUERY', '" query"', 'read', '""', '1'),
    'operation_name': ('V*', '""', '1', 'yes', 'null'),
    'fields': ('[viewer]', '[]', '[1]', '[""]', 'viewer'),
    'tool': ('read_*', '""', '[]', '1', 'true', '{any: [a]}', '{any: []}', 'null'),
}
PROTOCOL_OF = {'operation_type': 'graphql', 'operation_name': 'graphql', 'fields': 'graphql', 'tool': 'mcp'}


def odd_files():
    """Policies with one value written in an odd way."""
    return [_odd_file(key, value) for key, values in ODD.items() for value in values]


def _odd_file(key, value):
    rule = {'graphql': {'operation_type': 'query'}, 'mcp': {'method': 'tools/call'}}.get(PROTOCOL_OF.get(key), {'method': 'GET', 'path': '/x'})
    endpoint = {'host': 'a.example.com', 'port': '443', 'protocol': PROTOCOL_OF.get(key, 'rest'), 'enforcement': 'enforce'}
    root = {'version': '1'}
    if key in rule or key in ('query', 'operation_name', 'fields', 'tool'):
        rule[key] = value
    elif key == 'version':
        root['version'] = value
    elif key == 'run_as_user':
        root['process'] = '{run_as_user: %s}' % value
    elif key in ('read_only', 'read_write'):
        root['filesystem_policy'] = '{%s: %s}' % (key, value)
    elif key == 'landlock':
        root['landlock'] = value
    else:
        endpoint[key] = value
    if key != 'access':
        endpoint['rules'] = '[{allow: %s}]' % _flow(rule)
    root['network_policies'] = '{p: {endpoints: [%s], binaries: [{path: /usr/bin/curl}]}}' % _flow(endpoint)
    return File(f'{key}: {value}', ''.join(f'{name}: {text}\n' for name, text in root.items()))


def _flow(mapping):
    return '{%s}' % ', '.join(f'{name}: {text}' for name, text in mapping.items())
