# SPDX-License-Identifier: Apache-2.0
"""What each backend gives, as backends_test.py is held to it and docs/reference/backends.md shows it."""
import collections

NAMES = {'namespaces': '`native`, tier `namespaces`', 'landlock': '`native`, tier `landlock`', 'local': '`openshell`', 'remote':
         '`openshell --gateway`'}
EVERY, NATIVE, OPENSHELL = frozenset(NAMES), frozenset(('namespaces', 'landlock')), frozenset(('local', 'remote'))
# `given`: by these; the test tries each with each. `how`: of OpenShell, where that is worth a word.
Feature = collections.namedtuple('Feature', 'key text given how', defaults=[''])

FEATURES = (
    Feature('run', "a command's output and exit status", EVERY),
    Feature('denials', 'refused requests in the report, with the program and the line that would allow them', EVERY, "from OpenShell's records"),
    Feature('patch', 'changes as a patch, judged by the gates', EVERY, 'a copy is fetched and compared'),
    Feature('credential', 'credentials that the sandbox has placeholders of', EVERY, 'as providers that exist for the run'),
    Feature('held', '`--gateway-provider`: credentials that a gateway holds', frozenset(('remote',)), 'never deleted'),
    Feature('ignored', '`--apply --apply-ignored`: files that git ignores come back', EVERY),
    Feature('timeout', '`--timeout`', EVERY),
    Feature('output', '`--output`', EVERY),
    Feature('memory', '`--memory`', EVERY, 'by the compute driver'),
    Feature('pids', '`--pids`', NATIVE),
    Feature('budget', '`--max-tokens`, `--max-cost`, `--max-requests`', NATIVE),
    Feature('plan', '`--plan-only`', NATIVE),
    Feature('keep-policy', '`--keep-policy`: a policy that is replaced while the agent runs', NATIVE),
    Feature('approval', '`--approval-mode`: policy proposals', OPENSHELL, "from refusals, and the agent's own"),
    Feature('lasting', 'sandboxes that last: `setup`, `exec`, `stop`', EVERY),
    Feature('environment', 'variables of `setup --env` in each command', EVERY),
    Feature('shell-state', 'variables and the working directory stay for the next command', NATIVE, 'each command has a new shell'),
    Feature('exec-changes', '`exec --json` lists the files that a command changed', NATIVE),
    Feature('diff', '`sandbox diff`', EVERY),
    Feature('files', '`sandbox put`, `sandbox get`', EVERY, "by the image's `tar`"),
    Feature('policy', '`policy set`: other network rules for a sandbox that lasts', EVERY, 'loaded within about ten seconds'),
    Feature('snapshot', '`sandbox snapshot`', frozenset(('namespaces',))),
    Feature('reset', '`sandbox reset`', NATIVE),
    Feature('elsewhere', '`sandbox list --gateway`, for what a lost machine left', frozenset(('remote',))),
)
# What run.json says of a run without options, by its control. Of agentic-ci's own tiers, "enforced" may be "emulated" or
# "unavailable" for lack of a cgroup or a kernel: `require` in the configuration refuses that.
_NATIVE = ('network', 'capture', 'capabilities', 'seccomp', 'landlock', 'disk', 'memory', 'pids', 'open files', 'program identity')
_OPENSHELL = {**dict.fromkeys(('network', 'seccomp', 'memory', 'wall', 'output', 'records'), 'enforced'), 'landlock': 'emulated',
              **dict.fromkeys(('cpu', 'pids', 'disk', 'CPU time', 'budget', 'image signature', 'overlay'), 'unavailable')}
CONTROLS = {'namespaces': dict.fromkeys((*_NATIVE, 'namespaces', 'root file system'), 'enforced'),
            'landlock': {**dict.fromkeys((*_NATIVE, 'files'), 'enforced'), 'namespaces': 'unavailable'},
            'local': _OPENSHELL, 'remote': _OPENSHELL, 'toy': {'wall': 'enforced', 'output': 'enforced', 'network': 'unavailable'}}
