# SPDX-License-Identifier: Apache-2.0
"""Where this program means to differ from OpenShell, and why. `looser`: it allows what OpenShell refuses."""
import collections
import re

Difference = collections.namedtuple('Difference', 'reason applies looser', defaults=[False])
# What OpenShell's documentation says of its generations. `here`, `in_00`, `in_01`: what each does. `page`: where 0.1's is from. `tried`:
# whether what 0.0 does was seen. `file`: a policy that is refused here if `here` begins with that word, and else is taken.
Documented = collections.namedtuple('Documented', 'subject here in_00 in_01 page tried file', defaults=[''])


def target(pattern):
    return lambda request: re.search(pattern, request.target) is not None


def body(pattern):
    return lambda request: re.search(pattern, request.body) is not None


def key(names, pattern='.*'):
    """A file in which the value of one of these keys is written like this."""
    return lambda file: re.fullmatch(f'(?:{names}): (?:{pattern})', file.what) is not None


def rule(pattern):
    """A generated file."""
    return lambda file: file.what == 'generated' and re.search(pattern, file.policy) is not None


REQUESTS = (
    Difference('a method is in capitals', lambda request: request.method != request.method.upper()),
    Difference('a zero byte in a query is refused', target(r'\?.*%00')),
    Difference('an overlong form of UTF-8 in a path is refused', target('%C0%AF')),
    Difference('a dot segment with a backslash is refused', target(r'\.\.%5C')),
    Difference('a key that some server reads as the one of the rule has to match, too', target(r'[?&](T|t\[\]|\+t|%20t)=|;t=')),
    Difference('a backslash in a path is judged as a slash, too', target('%5C')),
    Difference('an encoded slash meets deny rules as a slash, too', target('%2F')),
    Difference('a member twice in a message is refused: servers differ in which they take', body('"method".*"method"')),
    Difference('params of MCP are an object', body('"params": 1')),
    Difference('a dot at the end of a host changes nothing', lambda request: request.host.endswith('.'), looser=True),
)
FILES = (
    Difference('text does not begin or end with a blank', key('.*', r'\W*" .*|.* "')),
    Difference('a value that is empty is not a value that is absent', key('path|method|operation_name', '""|null')),
    Difference('a list or mapping that is empty is not one that is absent', key('query|allowed_ips|fields', r'\{\}|\[\]')),
    Difference('a pattern can be read', key('path', r'"/[\[{].*')),
    Difference('a host is a name', key('host', 'http://a|a b|null')),
    Difference('a tool is named', key('tool', 'null')),
    Difference('a value is one of those listed', key('access|enforcement|tls', 'write|strict|off')),
    Difference('an address can be read', key('allowed_ips', r'\[x\]')),
    Difference('an address of the machine itself is refused when the policy is read', key('allowed_ips', r'\[127.0.0.1\]')),
    Difference("Azure's metadata address is one of metadata", key('allowed_ips', r'\[168.63.129.16\]')),
    Difference('the version is 1', key('version', '2')),
    Difference('a key is in a mapping once', key('query', r'\{t: a, t: b\}')),
    Difference('a file has no anchors (`&a`) and no aliases', key('path', '&a .*')),
    Difference('a file has no tags (`!!str`, `!x`)', key('path', '!.*')),
    Difference('a text has no NUL, a path included', key('path|read_only', r'.*\\0.*')),
    Difference('a number is written in decimal digits, not as `0x1` or `0o1`', key('port|version', '0[xo].*')),
    Difference('`/.` is the root directory, which cannot be written to', key('read_write', r'\[/\.\]')),
    Difference('a number with a leading zero is not text', key('query', r'\{t: 012\}')),
    Difference("documented there and refused by its engine: operation_type '*'", rule(r'"operation_type": "\*"'), looser=True),
)
GUIDE, SCHEMA, NETWORK, PROFILES = 'upgrade guide to 0.1.0', 'policy schema', 'network rules', 'provider profiles'
SELECTOR = 'network_middlewares: {m: {middleware: openshell/regex, endpoints: {include: ["a.example.com:443"]}}}\n'


def with_endpoint(text, program='path: /usr/bin/git'):
    return f'version: 1\nnetwork_policies: {{a: {{endpoints: [{text}], binaries: [{{{program}}}]}}}}\n'


DOCUMENTED = (
    Documented('`harness` of a program', 'refused', 'ignored', 'refused', GUIDE, False,
               with_endpoint('{host: a.example.com, port: 443}', program='path: /usr/bin/git, harness: true')),
    Documented('another word as `enforcement`, `access` or `tls`', 'refused', 'its default holds', 'refused', SCHEMA, True,
               with_endpoint('{host: a.example.com, port: 443, protocol: rest, access: full, enforcement: strict}')),
    Documented('`tls: terminate` and `passthrough`', 'the default, not written by `export`', 'the default', 'refused', GUIDE, False,
               with_endpoint('{host: a.example.com, port: 443, tls: passthrough}')),
    Documented('no `enforcement`', 'enforces', 'only records', 'only records', SCHEMA, True,
               with_endpoint('{host: a.example.com, port: 443, protocol: rest, access: full}')),
    Documented('`access` without `protocol`', 'enforced, written as `rest`', 'nothing', 'nothing', SCHEMA, True,
               with_endpoint('{host: a.example.com, port: 443, access: full}')),
    Documented('`operation_type: "*"`', 'any operation, written as all three', 'refused', 'refused', SCHEMA, True,
               with_endpoint('{host: a.example.com, port: 443, protocol: graphql, rules: [{allow: {operation_type: "*"}}]}')),
    Documented('a WebSocket on an endpoint with `protocol: rest`', 'refused, also in audit', 'opens where the GET is allowed',
               'refused since 0.1.8, also in audit', 'release notes of 0.1.8', False),
    Documented('`websocket_credential_rewrite` with `rest`', 'refused', 'taken', 'refused since 0.1.8', 'release notes of 0.1.8', False,
               with_endpoint('{host: a.example.com, port: 443, protocol: rest, access: full, websocket_credential_rewrite: true}')),
    Documented('a private address, as such, under a wildcard host', 'refused without `allowed_ips`', 'allowed where the host matches',
               'refused without `allowed_ips` since 0.1.9', 'release notes of 0.1.9', False),
    Documented("a port in a middleware's selector", 'refused', 'taken', 'refused since 0.1.9', 'release notes of 0.1.9', False,
               with_endpoint('{host: a.example.com, port: 443, protocol: rest, access: full}') + SELECTOR),
    Documented('`allowed_ips` over loopback or link-local addresses', 'refused when the policy is read', 'refused when connecting',
               'refused when the policy is read', SCHEMA, True,
               with_endpoint('{host: a.example.com, port: 443, allowed_ips: [127.0.0.1]}')),
    Documented('a wildcard behind the first label of a host', 'taken', 'taken', 'refused, or taken as a whole label: pages differ', SCHEMA, False,
               with_endpoint('{host: "a.*.example.com", port: 443}')),
    Documented('`protocol: sql`', 'taken with `enforcement: audit`', 'taken', 'not among those that are listed', SCHEMA, False,
               with_endpoint('{host: a.example.com, port: 443, protocol: sql, enforcement: audit, rules: [{allow: {command: "*"}}]}')),
    Documented('`mcp.versions`', 'refused; any revision of MCP passes', 'no such key',
               'the revisions that pass; 2025-11-25 alone where it is absent', SCHEMA, False,
               with_endpoint('{host: a.example.com, port: 443, protocol: mcp, mcp: {versions: ["2025-11-25"]}, rules: [{allow: {method: ping}}]}')),
    Documented("servers on the gateway's loopback, at `host.openshell.internal`", 'reached', 'not reached', 'reached on Linux', NETWORK, True,
               with_endpoint('{host: host.openshell.internal, port: 80}')),
    Documented('where a credential without placement is put', "wherever its placeholder is in the request's head",
               "wherever its placeholder is in the request's head",
               'in `Authorization` alone since 0.1.8; `auth_style` of its profile says otherwise', 'release notes of 0.1.8', False),
    Documented('profiles of providers', "a run's own, made for it", 'some are built in', "none is built in; a run's own, made for it", PROFILES,
               True),
)
