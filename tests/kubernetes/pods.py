# SPDX-License-Identifier: Apache-2.0
"""Pods with more and fewer rights: the tier that each gives, and what doctor says to type for more.

Each is started by pods_test.py, which types what it is told; pods_page.py writes the table into isolation.md.
"""
import collections

import yaml

# `level` is the Pod Security level of its namespace: the strictest that takes it. `gives` are the words of the table;
# `context` is the container's securityContext, `spec` what the pod has besides; `volumes` the sources of the volumes by their paths.
Pod = collections.namedtuple('Pod', 'name level words user context spec volumes tier remedy small')

IMAGE = 'localhost/agentic-ci-tools:1'
RESTRICTED = {'runAsNonRoot': True, 'allowPrivilegeEscalation': False, 'capabilities': {'drop': ['ALL']},
              'seccompProfile': {'type': 'RuntimeDefault'}}
DEFAULT = {'seccompProfile': {'type': 'RuntimeDefault'}}
UNCONFINED = {'seccompProfile': {'type': 'Unconfined'}}
UNMASKED = {**UNCONFINED, 'procMount': 'Unmasked'}
ADMIN = {'capabilities': {'add': ['SYS_ADMIN', 'SYS_PTRACE']}}
OWN_USERS = 'the pod has `hostUsers: false`'
RANDOM = 1000680000  # As OpenShift gives a namespace.
# Ordinary users differ: the kernel counts the processes of each for all pods of a node.

DISK, MEMORY = {'emptyDir': {}}, {'emptyDir': {'medium': 'Memory', 'sizeLimit': '512Mi'}}
WORK = '/builds'


def remedy(user):
    """What doctor says to type for tier namespaces. A pod with users of its own has 65536 ids."""
    beyond = user >= 65536
    return ("in the pod's specification: hostUsers: false, " + ('securityContext: {fsGroup: 1000}, ' if beyond else '')
            + "and in the container's securityContext: " + ('runAsUser: 1000, ' if beyond else '')
            + 'procMount: Unmasked, seccompProfile: {type: Unconfined}')


def typed(one):
    """The pod with what doctor says to type, read as it is printed."""
    of_pod, of_container = one.remedy.removeprefix("in the pod's specification: ").split(", and in the container's securityContext: ")
    return one._replace(level='privileged', spec={**one.spec, **yaml.safe_load('{' + of_pod + '}')},
                        context={**one.context, **yaml.safe_load('{' + of_container + '}')})


def pod(name, level, words, user, context, *, group=None, volumes=None, own_users=False, tier='landlock', small=False):
    ids = {'runAsUser': user, 'runAsGroup': user if group is None else group}
    spec = {'securityContext': {'fsGroup': user} if user else {}, **({'hostUsers': False} if own_users else {})}
    return Pod(name, level, words, user, {**context, **ids}, spec, {WORK: DISK, **(volumes or {})}, tier,
               remedy(user) if tier == 'landlock' else '', small)


PODS = [
    pod('restricted', 'restricted', 'what the level demands', 1000, RESTRICTED, small=True),
    pod('random-id', 'restricted', 'what the level demands', RANDOM, RESTRICTED, group=0),
    pod('read-only', 'restricted', 'what the level demands, `readOnlyRootFilesystem`, work in memory', RANDOM + 1,
        {**RESTRICTED, 'readOnlyRootFilesystem': True}, group=0, volumes={WORK: MEMORY, '/tmp': DISK}, small=True),
    pod('root', 'baseline', 'nothing', 0, {}),
    pod('root-filtered', 'baseline', '`seccompProfile: {type: RuntimeDefault}`', 0, DEFAULT, small=True),
    pod('user-filtered', 'baseline', '`seccompProfile: {type: RuntimeDefault}`', 1001, DEFAULT),
    pod('user-unconfined', 'privileged', '`seccompProfile: {type: Unconfined}`', 1002, UNCONFINED),
    pod('root-unconfined', 'privileged', '`seccompProfile: {type: Unconfined}`', 0, UNCONFINED),
    pod('admin', 'privileged', '`capabilities: {add: [SYS_ADMIN, SYS_PTRACE]}`', 0, {**UNCONFINED, **ADMIN}),
    pod('privileged', 'privileged', '`privileged: true`', 0, {'privileged': True}, tier='namespaces', small=True),
    pod('privileged-user', 'privileged', '`privileged: true`', 1003, {'privileged': True}, tier='namespaces'),
    pod('own-users-restricted', 'restricted', f'what the level demands, {OWN_USERS}', 1004, RESTRICTED, own_users=True),
    pod('own-users', 'privileged', f'{OWN_USERS}, `procMount: Unmasked`, `seccompProfile: {{type: Unconfined}}`', 1005, UNMASKED,
        own_users=True, tier='namespaces'),
    pod('own-users-root', 'privileged', f'{OWN_USERS}, `procMount: Unmasked`, `seccompProfile: {{type: Unconfined}}`', 0, UNMASKED,
        own_users=True, tier='namespaces'),
]


def manifest(one, namespace, command, name=None, limits=None):
    """The object of the API, with one container, `main`."""
    names = {path: f'v{number}' for number, path in enumerate(one.volumes)}
    return {
        'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': name or one.name, 'namespace': namespace},
        'spec': {
            'restartPolicy': 'Never', 'dnsPolicy': 'Default', 'automountServiceAccountToken': False,
            'terminationGracePeriodSeconds': 30, **one.spec,
            'volumes': [{'name': names[path], **source} for path, source in one.volumes.items()],
            'containers': [{
                'name': 'main', 'image': IMAGE, 'imagePullPolicy': 'Never', 'command': command, 'securityContext': one.context,
                'workingDir': WORK, 'volumeMounts': [{'name': names[path], 'mountPath': path} for path in one.volumes],
                **({'resources': {'limits': limits}} if limits else {})}]}}
