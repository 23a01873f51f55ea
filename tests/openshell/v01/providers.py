# SPDX-License-Identifier: Apache-2.0
"""Provider profiles and providers, as the gateway keeps them."""
import re

from openshell._proto import datamodel_pb2
from openshell._proto import openshell_pb2 as pb
import policy as rules
from refusal import Refusal, invalid, missing

ID = re.compile(r'[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\Z')
VARIABLE = re.compile(r'[A-Za-z_][A-Za-z0-9_]*\Z')
RESERVED = re.compile(r'v[0-9]+_', re.IGNORECASE)
STYLES = ('', 'bearer', 'basic', 'header', 'query', 'path')


def lint(profile, release):
    """[(field, message)]: why this profile is refused."""
    found = []
    if not ID.match(profile.id):
        found.append(('id', f'{profile.id!r} is not an id: a-z, 0-9 and -'))
    if not profile.display_name:
        found.append(('display_name', 'is missing'))
    for number, credential in enumerate(profile.credentials):
        where = f'credentials[{number}]'
        if not credential.name:
            found.append((where + '.name', 'is missing'))
        for variable in credential.env_vars:
            if not VARIABLE.match(variable) or RESERVED.match(variable):
                found.append((where + '.env_vars', f'{variable!r} is not a variable, or reserved'))
        if credential.auth_style not in STYLES:
            found.append((where + '.auth_style', f'unknown {credential.auth_style!r}'))
        needs = {'header': 'header_name', 'query': 'query_param', 'path': 'path_template'}.get(credential.auth_style)
        if needs and not getattr(credential, needs):
            found.append((f'{where}.{needs}', f'is needed by auth_style: {credential.auth_style}'))
        if credential.auth_style == 'path' and credential.path_template.count('{credential}') != 1:
            found.append((where + '.path_template', 'has {credential} once'))
    if len({credential.name for credential in profile.credentials}) != len(profile.credentials):
        found.append(('credentials', 'a name is there twice'))
    policy = rules.pb.SandboxPolicy()
    policy.network_policies['profile'].endpoints.extend(profile.endpoints)
    try:
        rules.check(policy, release)
    except Refusal as refusal:
        found.append(('endpoints', refusal.message))
    return found


class Providers:
    """`used(workspace, name)`: whether a sandbox has this provider."""

    def __init__(self, release, used):
        self.release, self.used, self.profiles, self.providers = release, used, {}, {}

    def profile(self, workspace, name):
        """The workspace's profile, else the platform's ('')."""
        return self.profiles.get((workspace, name)) or self.profiles.get(('', name))

    def diagnose(self, items):
        result = []
        for item in items:
            for field, message in lint(item.profile, self.release):
                result.append(pb.ProviderProfileDiagnostic(source=item.source, profile_id=item.profile.id, field=field, message=message,
                                                           severity='error'))
        return result

    def import_profiles(self, workspace, items):
        if not items:
            raise invalid('profiles', 'is empty')
        found = self.diagnose(items)
        for item in items:
            if (workspace, item.profile.id) in self.profiles:
                found.append(pb.ProviderProfileDiagnostic(source=item.source, profile_id=item.profile.id, field='id',
                                                          message='already exists', severity='error'))
        if found:
            return pb.ImportProviderProfilesResponse(diagnostics=found, imported=False)
        made = []
        for item in items:
            profile = pb.ProviderProfile()
            profile.CopyFrom(item.profile)
            profile.resource_version, profile.scope = 1, 'workspace' if workspace else 'platform'
            self.profiles[workspace, profile.id] = profile
            made.append(profile)
        return pb.ImportProviderProfilesResponse(profiles=made, imported=True)

    def delete_profile(self, workspace, name, allow_missing):
        if (workspace, name) not in self.profiles:
            if allow_missing:
                return pb.DELETION_OUTCOME_ALREADY_ABSENT
            raise missing('provider profile', name)
        users = [key for key, one in self.providers.items()
                 if one.type == name and self.used(*key) and (not workspace or key[0] == workspace)]
        if users:
            raise Refusal('FAILED_PRECONDITION', f'provider profile {name!r} is used by attached providers', reason='PROFILE_IN_USE')
        del self.profiles[workspace, name]
        return pb.DELETION_OUTCOME_COMPLETED

    def create(self, workspace, provider, identity):
        name = provider.metadata.name
        if not ID.match(name):
            raise invalid('provider.metadata.name', f'{name!r} is not a name')
        if (workspace, name) in self.providers:
            raise Refusal('ALREADY_EXISTS', f'provider {name!r} already exists')
        profile = self.profile(workspace, provider.type)
        if not profile:
            raise invalid('provider.type', f'no profile {provider.type!r} was imported')
        variables = {variable for credential in profile.credentials for variable in credential.env_vars}
        unknown = set(provider.credentials) - variables
        if unknown:
            raise invalid('provider.credentials', f'{sorted(unknown)[0]!r} is not of the profile')
        for credential in profile.credentials:
            if credential.required and not set(credential.env_vars) & set(provider.credentials):
                raise invalid('provider.credentials', f'{credential.name!r} is required')
        if any(not value or '\n' in value or '\r' in value for value in provider.credentials.values()):
            raise invalid('provider.credentials', 'a value is empty or has line ends')
        made = datamodel_pb2.Provider()
        made.CopyFrom(provider)
        made.metadata.id, made.metadata.workspace, made.metadata.resource_version = identity, workspace, 1
        made.metadata.created_time.GetCurrentTime()
        made.profile_workspace = workspace if (workspace, provider.type) in self.profiles else ''
        self.providers[workspace, name] = made
        return made

    def get(self, workspace, name):
        return self.providers.get((workspace, name))

    def delete(self, workspace, name, allow_missing):
        if (workspace, name) not in self.providers:
            if allow_missing:
                return pb.DELETION_OUTCOME_ALREADY_ABSENT
            raise missing('provider', name)
        if self.used(workspace, name):
            raise Refusal('FAILED_PRECONDITION', f'provider {name!r} is attached', reason='PROVIDER_IN_USE')
        del self.providers[workspace, name]
        return pb.DELETION_OUTCOME_COMPLETED


def shown(provider):
    """A provider without its values."""
    copy = datamodel_pb2.Provider()
    copy.CopyFrom(provider)
    for key in copy.credentials:
        copy.credentials[key] = 'REDACTED'
    return copy
