# SPDX-License-Identifier: Apache-2.0
"""Where this program means to differ from OpenShell, and why. `looser`: it allows what OpenShell refuses."""
import collections
import re

Difference = collections.namedtuple('Difference', 'reason applies looser', defaults=[False])


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
