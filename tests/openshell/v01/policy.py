# SPDX-License-Identifier: Apache-2.0
"""Policies of OpenShell 0.1 as its documents have them: what is refused when one is loaded, and what a request may do."""
import fnmatch
import hashlib
import ipaddress
import re

from openshell._proto import sandbox_pb2 as pb
from refusal import Refusal, invalid

PROTOCOLS = ('', 'tcp', 'rest', 'websocket', 'graphql', 'json-rpc', 'mcp')
INSPECTED = ('rest', 'websocket', 'graphql', 'json-rpc', 'mcp')
READING = ('GET', 'HEAD', 'OPTIONS')
WRITING = READING + ('POST', 'PUT', 'PATCH')
HOST_LABEL = re.compile(r'(?:[a-z0-9*_](?:[a-z0-9*_-]*[a-z0-9*_])?)\Z', re.IGNORECASE)
ON_MACHINE = 'host.openshell.internal'
RELEASES = ('0.1.5', '0.1.8', '0.1.9', '0.1.10')


def at_least(release, wanted):
    return [int(n) for n in release.split('.')] >= [int(n) for n in wanted.split('.')]


def hash_of(policy):
    return hashlib.sha256(policy.SerializeToString(deterministic=True)).hexdigest()


def ports_of(endpoint):
    return list(endpoint.ports) or ([endpoint.port] if endpoint.port else [])


def _check_host(where, host):
    if not host:
        return
    labels = host.split('.')
    if len(host) > 253 or not all(HOST_LABEL.match(label) for label in labels):
        raise invalid(where + '.host', f'{host!r} is not a host name or pattern')
    if any('*' in label for label in labels[1:]):
        raise invalid(where + '.host', 'only the first label may have a wildcard')
    if '*' in labels[0] and len(labels) < 3:
        raise invalid(where + '.host', 'a wildcard needs two labels behind it')


def _check_addresses(where, texts):
    for text in texts:
        try:
            network = ipaddress.ip_network(text, strict=False)
        except ValueError as error:
            raise invalid(where + '.allowed_ips', str(error)) from error
        blocked = ('127.0.0.0/8', '169.254.0.0/16', '0.0.0.0/32') if network.version == 4 else ('::1/128', 'fe80::/10', '::/128')
        if any(network.overlaps(ipaddress.ip_network(one)) for one in blocked):
            raise invalid(where + '.allowed_ips', f'{text} holds loopback, link-local or unspecified addresses')


def _check_endpoint(where, endpoint, release):
    _check_host(where, endpoint.host)
    if not endpoint.host and not endpoint.allowed_ips:
        raise invalid(where, 'an endpoint needs a host or allowed_ips')
    if not ports_of(endpoint) or any(not 0 < port < 65536 for port in ports_of(endpoint)):
        raise invalid(where + '.ports', 'a port is from 1 to 65535')
    if endpoint.protocol not in PROTOCOLS:
        raise invalid(where + '.protocol', f'unknown protocol {endpoint.protocol!r}')
    if endpoint.tls not in (pb.NETWORK_TLS_MODE_UNSPECIFIED, pb.NETWORK_TLS_MODE_SKIP):
        raise invalid(where + '.tls', 'terminate and passthrough are not supported: skip, or nothing')
    if endpoint.access and endpoint.rules:
        raise invalid(where + '.access', 'access and rules exclude each other')
    if endpoint.protocol in ('', 'tcp') and (endpoint.rules or endpoint.deny_rules):
        raise invalid(where + '.rules', 'rules need a protocol that is inspected')
    if endpoint.protocol in INSPECTED and not (endpoint.access or endpoint.rules or endpoint.mcp.allow_all_known_mcp_methods):
        raise invalid(where + '.rules', 'access or rules are needed')
    if endpoint.tls and endpoint.protocol in INSPECTED:
        raise invalid(where + '.tls', 'skip with a protocol that is inspected')
    for rule in endpoint.rules:
        if rule.allow.operation_type == '*':
            raise invalid(where + '.rules', "operation_type '*': use access: full")
    rewriting = ('websocket',) if at_least(release, '0.1.8') else ('rest', 'websocket')
    if endpoint.websocket_credential_rewrite and endpoint.protocol not in rewriting:
        raise invalid(where + '.websocket_credential_rewrite', 'needs protocol: websocket')
    uninspected = endpoint.protocol not in INSPECTED or endpoint.tls
    if endpoint.HasField('credential_binding') and uninspected and not endpoint.allow_uninspected_credentials:
        raise invalid(where + '.credential_binding', 'an endpoint with credentials needs a protocol that is inspected, and no tls: skip')
    _check_addresses(where, endpoint.allowed_ips)


def check(policy, release):
    """Refuses what 0.1 refuses to load."""
    if policy.version not in (0, 1):
        raise invalid('policy.version', 'the version is 1')
    if policy.landlock.compatibility not in ('', 'best_effort', 'hard_requirement'):
        raise invalid('policy.landlock.compatibility', f'unknown {policy.landlock.compatibility!r}')
    for name in ('read_only', 'read_write'):
        for path in getattr(policy.filesystem, name):
            if not path.startswith('/') or '..' in path.split('/') or '\0' in path:
                raise invalid(f'policy.filesystem.{name}', f'{path!r} is not an absolute path')
    if '/' in policy.filesystem.read_write:
        raise invalid('policy.filesystem.read_write', 'the root directory')
    for name in ('run_as_user', 'run_as_group'):
        if getattr(policy.process, name) in ('root', '0'):
            raise invalid(f'policy.process.{name}', 'root')
    for key, rule in policy.network_policies.items():
        for number, endpoint in enumerate(rule.endpoints):
            _check_endpoint(f'policy.network_policies.{key}.endpoints[{number}]', endpoint, release)
    _check_middlewares(policy, release)


def _check_middlewares(policy, release):
    where = 'policy.network_middlewares'
    if len(policy.network_middlewares) > 10:
        raise invalid(where, 'more than 10')
    orders = [one.order for one in policy.network_middlewares.values()]
    if len(set(orders)) != len(orders):
        raise invalid(where, 'order is not unique')
    for key, one in policy.network_middlewares.items():
        patterns = [*one.endpoints.include, *one.endpoints.exclude]
        if len(one.endpoints.include) > 32 or len(one.endpoints.exclude) > 32:
            raise invalid(f'{where}.{key}', 'more than 32 patterns')
        if at_least(release, '0.1.9') and any(':' in pattern for pattern in patterns):
            raise invalid(f'{where}.{key}.endpoints', 'a selector may not have a port')
        if one.on_error not in ('', 'fail_open', 'fail_closed'):
            raise invalid(f'{where}.{key}.on_error', f'unknown {one.on_error!r}')


def static_change(before, after):
    """The name of a section that is fixed when a sandbox has started and differs; more paths are taken, without effect."""
    if before.filesystem.include_workdir != after.filesystem.include_workdir:
        return 'filesystem'
    for name in ('read_only', 'read_write'):
        if not set(getattr(before.filesystem, name)) <= set(getattr(after.filesystem, name)):
            return 'filesystem'
    return next((name for name in ('landlock', 'process') if getattr(before, name) != getattr(after, name)), '')


def merge(policy, operations):
    """`policy` after these operations of UpdateConfig, as a copy."""
    result = pb.SandboxPolicy()
    result.CopyFrom(policy)
    for operation in operations:
        kind = operation.WhichOneof('operation')
        one = getattr(operation, kind) if kind else None
        rules = result.network_policies
        if kind == 'add_rule':
            rules[one.rule_name].MergeFrom(one.rule)
        elif kind == 'remove_rule':
            if one.rule_name not in rules:
                raise invalid('merge_operations', f'no rule {one.rule_name!r}')
            del rules[one.rule_name]
        elif kind in ('add_allow_rules', 'add_deny_rules'):
            target = one.target
            if not target.rule_name or bool(target.binaries) == target.any_binary:
                raise invalid('merge_operations.target', 'a rule name, and each binary or any_binary, are needed')
            found = [e for e in rules[target.rule_name].endpoints if e.host == target.host and set(target.ports) <= set(ports_of(e))]
            if not found:
                raise invalid('merge_operations.target', 'no such endpoint')
            for endpoint in found:
                if kind == 'add_allow_rules':
                    endpoint.rules.extend(one.rules)
                else:
                    endpoint.deny_rules.extend(one.deny_rules)
        else:
            raise Refusal('UNIMPLEMENTED', f'merge operation {kind}')
    return result


# --- What a connection or a request may do ---

def glob(pattern, text, separator):
    """`*` within a part, `**` across parts."""
    parts = re.split(r'(\*\*|\*|\?)', pattern)
    one = f'[^{re.escape(separator)}]'
    return re.fullmatch(''.join({'**': '.*', '*': one + '*', '?': one}.get(part, re.escape(part)) for part in parts), text,
                        re.DOTALL) is not None


def host_matches(pattern, host):
    return glob(pattern.lower(), host.lower(), '.')


def binary_matches(rule, binary):
    return any(one.path in ('*', '**', '/**') or glob(one.path, binary, '/') for one in rule.binaries)


def endpoints_for(policy, host, port):
    """(name, rule, endpoint) for each endpoint that has this host and port."""
    return [(name, rule, endpoint) for name, rule in sorted(policy.network_policies.items()) for endpoint in rule.endpoints
            if port in ports_of(endpoint) and (not endpoint.host or host_matches(endpoint.host, host))]


def names_host(policy, host):
    return any(not one.host or host_matches(one.host, host) for rule in policy.network_policies.values() for one in rule.endpoints)


def address_reason(endpoint, host, address, release):
    """Why this address may not be contacted for the endpoint; empty if it may. `address`: None for a name of the tests' own."""
    if address is None or (host == ON_MACHINE and endpoint.host == ON_MACHINE and not endpoint.allowed_ips):
        return ''
    ip = ipaddress.ip_address(address)
    if endpoint.allowed_ips:
        inside = any(ip in ipaddress.ip_network(text, strict=False) for text in endpoint.allowed_ips)
        return '' if inside else 'address_not_in_allowed_ips'
    if ip.is_loopback or ip.is_link_local or ip.is_unspecified:
        return 'address_always_blocked'
    if ip.is_private and endpoint.host.lower() != host.lower():
        literal = host == address
        if not literal or at_least(release, '0.1.9'):
            return 'private_address'
    return ''


def query_matches(matchers, query):
    for key, matcher in matchers.items():
        values = [value for name, value in query if name == key]
        globs = [matcher.glob] if matcher.glob else list(matcher.any)
        if not values or not all(any(fnmatch.fnmatchcase(value, one) for one in globs) for value in values):
            return False
    return True


def _rule_matches(rule, method, path, query):
    if rule.method not in ('', '*') and rule.method != method and not (rule.method == 'GET' and method == 'HEAD'):
        return False
    return (not rule.path or glob(rule.path, path, '/')) and query_matches(rule.query, query)


def request_allowed(endpoint, method, path, query):
    """Whether the rules of a `rest` or `websocket` endpoint allow the request; of other protocols, only `access` is looked at."""
    if endpoint.path and not glob(endpoint.path, path, '/'):
        return False
    if any(_rule_matches(rule, method, path, query) for rule in endpoint.deny_rules):
        return False
    if endpoint.access == pb.NETWORK_ACCESS_PRESET_FULL:
        return True
    if endpoint.access == pb.NETWORK_ACCESS_PRESET_READ_WRITE:
        return method in WRITING
    if endpoint.access == pb.NETWORK_ACCESS_PRESET_READ_ONLY:
        return method in READING
    judged = endpoint.protocol in ('rest', 'websocket')
    return judged and any(_rule_matches(rule.allow, method, path, query) for rule in endpoint.rules)
