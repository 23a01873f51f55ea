# SPDX-License-Identifier: Apache-2.0
"""Pods with more and fewer rights: the tier that each gives, and what doctor says to type for more.

Each is started by pods_test.py, which types what it is told; pods_page.py writes the table into isolation.md.
"""
import collections

# `level` is the Pod Security level of its namespace: the strictest that takes it. `gives` are the words of the table;
# `context` is the container's securityContext, `pod` the pod's; `volumes` the sources of the volumes by their paths.
Pod = collections.namedtuple('Pod', 'name level words user context pod volumes tier remedy small')

IMAGE = 'localhost/agentic-ci-tools:1'
RESTRICTED = {'runAsNonRoot': True, 'allowPrivilegeEscalation': False, 'capabilities': {'drop': ['ALL']},
              'seccompProfile': {'type': 'RuntimeDefault'}}
DEFAULT = {'seccompProfile': {'type': 'RuntimeDefault'}}
UNCONFINED = {'seccompProfile': {'type': 'Unconfined'}}
UNMASKED = {**UNCONFINED, 'procMount': 'Unmasked'}
ADMIN = {'capabilities': {'add': ['SYS_ADMIN', 'SYS_PTRACE']}}
RANDOM = 1000680000  # As OpenShift gives a namespace.
# Ordinary users differ: the kernel counts the processes of each for all pods of a node.

DISK, MEMORY = {'emptyDir': {}}, {'emptyDir': {'medium': 'Memory', 'sizeLimit': '512Mi'}}
WORK = '/builds'


def remedy(user):
    """What doctor says to type where tier namespaces cannot be had."""
    return ("in the pod's specification: hostUsers: false, and in the container's securityContext: "
            + ('' if user else 'runAsUser: 1000, ') + 'procMount: Unmasked, seccompProfile: {type: Unconfined}')


def pod(name, level, words, user, context, *, group=None, volumes=None, tier='landlock', small=False):
    ids = {'runAsUser': user, 'runAsGroup': user if group is None else group}
    of_pod = {'fsGroup': user} if user else {}
    return Pod(name, level, words, user, {**context, **ids}, of_pod, {WORK: DISK, **(volumes or {})}, tier,
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
    pod('unmasked', 'privileged', '`procMount: Unmasked`, `seccompProfile: {type: Unconfined}`', 1003, UNMASKED),
    pod('admin', 'privileged', '`capabilities: {add: [SYS_ADMIN, SYS_PTRACE]}`', 0, {**UNCONFINED, **ADMIN}),
    pod('privileged', 'privileged', '`privileged: true`', 0, {'privileged': True}, tier='namespaces', small=True),
    pod('privileged-user', 'privileged', '`privileged: true`', 1004, {'privileged': True}, tier='namespaces'),
]


def manifest(one, namespace, command, name=None, limits=None):
    """The object of the API, with one container, `main`."""
    names = {path: f'v{number}' for number, path in enumerate(one.volumes)}
    return {
        'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': name or one.name, 'namespace': namespace},
        'spec': {
            'restartPolicy': 'Never', 'dnsPolicy': 'Default', 'automountServiceAccountToken': False,
            'terminationGracePeriodSeconds': 30, 'securityContext': one.pod,
            'volumes': [{'name': names[path], **source} for path, source in one.volumes.items()],
            'containers': [{
                'name': 'main', 'image': IMAGE, 'imagePullPolicy': 'Never', 'command': command, 'securityContext': one.context,
                'workingDir': WORK, 'volumeMounts': [{'name': names[path], 'mountPath': path} for path in one.volumes],
                **({'resources': {'limits': limits}} if limits else {})}]}}
