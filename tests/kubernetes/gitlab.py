# SPDX-License-Identifier: Apache-2.0
"""Pods as GitLab Runner's Kubernetes executor makes them, and jobs in them, as it runs them: each stage is a script in a volume,
started through the shell that the container was started with, its output in a file that `tee` writes.
"""
import json
import pathlib
import re
import threading

import yaml

CHECKOUT = '/builds/group/site'
RUNNER_SHELL = 'if [ -x /usr/local/bin/bash ]; then exec /usr/local/bin/bash; elif [ -x /bin/bash ]; then exec /bin/bash; else exec sh; fi'
# What a stage begins with. The trap's line is how the runner learns that it has ended, and how.
STAGE = r'''#!/bin/bash
runner_script_trap() {
  exit_code=$?
  echo ""
  echo "{\"command_exit_code\": $exit_code, \"script\": \"$0\"}"
  exit 0
}
trap runner_script_trap EXIT TERM
set -eo pipefail
set +o noclobber
umask 0000
'''
# What cancels a job: SIGTERM to the children of the shell that runs the stage's script.
CANCEL = r'''for process in /proc/[0-9]*; do
  pid=${process##*/}
  case $(tr '\0' ' ' <"$process/cmdline" 2>/dev/null) in
    '/bin/bash SCRIPT ') children="$children $(cat "$process/task/$pid/children")" ;;
  esac
done
kill -TERM $children'''


def component_job(template, inputs):
    """The variables and the script of a job of the component with these inputs."""
    header, body = template.read_text().split('\n---\n', 1)
    declared = yaml.safe_load(header)['spec']['inputs']
    values = {name: one.get('default', '') for name, one in declared.items()} | inputs

    def fill(text):
        def value(match):
            found = values[match[1]]
            return str(found).lower() if isinstance(found, bool) else str(found)
        return re.sub(r'\$\[\[ inputs\.([\w-]+) \]\]', value, text)
    (job,) = yaml.safe_load(re.sub(r'(?m)^  (rules|retry|id_tokens):.*\n(?:    .*\n)*', '', body)).values()
    variables = {name: fill(one['value']) for name, one in job['variables'].items()}
    return variables, '\n'.join(job['script'])


class Job:
    """One job in a pod of its own. `context`: the security context of its containers."""

    def __init__(self, cluster, namespace, number, image, context, variables):
        self.cluster, self.namespace, self.name = cluster, namespace, f'runner-t1-project-1-concurrent-0-{number}'
        self.scripts, self.logs = f'/scripts-1-{number}', f'/logs-1-{number}'
        mounts = [{'name': name, 'mountPath': path} for name, path in
                  (('repo', '/builds'), ('scripts', self.scripts), ('logs', self.logs))]
        environment = [{'name': name, 'value': str(value)} for name, value in variables.items()]
        common = {'image': image, 'imagePullPolicy': 'Never', 'securityContext': context, 'volumeMounts': mounts, 'env': environment}
        shell = {**common, 'command': ['sh', '-c', RUNNER_SHELL], 'stdin': True}
        log = self.logs + '/output.log'
        cluster.apply({
            'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {
                'name': self.name, 'namespace': namespace, 'labels': {'project.runner.gitlab.com/id': '1'},
                'annotations': {'job.runner.gitlab.com/id': str(number)}},
            'spec': {
                'restartPolicy': 'Never', 'activeDeadlineSeconds': 3601, 'dnsPolicy': 'Default',
                'automountServiceAccountToken': False,
                'securityContext': {'fsGroup': context['runAsUser']} if context.get('runAsUser') else {},
                'volumes': [{'name': mount['name'], 'emptyDir': {}} for mount in mounts],
                'initContainers': [{**common, 'name': 'init-permissions', 'command': [
                    'sh', '-c', f'touch {log} && (chmod 777 {log} || exit 0)']}],
                'containers': [{**shell, 'name': 'build'}, {**shell, 'name': 'helper'}]}})
        cluster.running(namespace, self.name)
        self.uid = cluster.get('Pod', namespace, self.name)['metadata']['uid']

    def start(self, stage, text, container='build'):
        """Saves a stage's script, and starts it as the runner does; it goes on in the container."""
        script = f'{self.scripts}/{stage}'
        self.cluster.kubectl('exec', '-i', '-n', self.namespace, self.name, '-c', container, '--', 'sh', '-c',
                             f'cat >{script} && chmod +x {script}', stdin=STAGE + text)
        line = f'sh -c "(/bin/bash {script} 2>&1 | tee -a {self.logs}/output.log) &"\n'
        # The runner's connection lasts as long as the stage; what is started must not hang on it.
        threading.Thread(target=self.cluster.kubectl, args=('attach', '-i', '-n', self.namespace, self.name, '-c', container),
                         kwargs={'stdin': line, 'check': False}, daemon=True).start()
        return script

    def log(self):
        """The file that the helper sends to GitLab."""
        return pathlib.Path(self.cluster.volume(self.uid, 'logs'), 'output.log').read_text(errors='replace')

    def ended(self, script, seconds=60):
        """The exit code of a stage: the line that its trap has written into the log."""
        def line():
            found = re.search(r'^\{"command_exit_code": (\d+), "script": "' + re.escape(script) + r'"\}$', self.log(), re.MULTILINE)
            return found and [int(found[1])]
        return self.cluster.until(line, seconds)[0]

    def stage(self, stage, text, container='build'):
        return self.ended(self.start(stage, text, container))

    def sources(self):
        """The helper's part: the project's repository, checked out with the runner's umask."""
        return self.stage('get_sources', 'git config --global safe.directory "*"\n'
                          'git clone -q /srv/site /builds/remotes/site.git --bare\n'
                          f'git clone -q /builds/remotes/site.git {CHECKOUT}\n'
                          f'git -C {CHECKOUT} checkout -q --detach "$CI_COMMIT_SHA"\n', 'helper')

    def cancel(self, script):
        self.cluster.execute(self.namespace, self.name, 'sh', '-c', CANCEL.replace('SCRIPT', script), container='build')

    def artifact(self, path):
        """A file of the artifacts, as the helper reads it."""
        return self.cluster.execute(self.namespace, self.name, 'cat', f'{CHECKOUT}/{path}', container='helper').stdout

    def processes(self):
        """The command lines in the build container."""
        return self.cluster.execute(self.namespace, self.name, 'sh', '-c', 'cat /proc/[0-9]*/cmdline | tr "\\0" " "').stdout

    def record(self):
        return json.loads(self.artifact('agentic-ci-report/run.json'))

    def delete(self):
        self.cluster.delete('Pod', self.namespace, self.name)
