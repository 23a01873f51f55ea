# SPDX-License-Identifier: Apache-2.0
"""What holds for every workflow that people copy, wherever it stands."""
import pathlib
import re

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]


def workflows():
    """All that the repository shows: {where: text}. Of documents, each block in YAML that has jobs."""
    found = {str(path.relative_to(ROOT)): path.read_text() for path in [
        *ROOT.glob('.github/workflows/*.yml'), *ROOT.glob('examples/*/.*/workflows/*.yml')]}
    for path in [ROOT / 'README.md', *ROOT.glob('docs/**/*.md'), *ROOT.glob('examples/**/*.md')]:
        for number, block in enumerate(re.findall(r'```ya?ml\n(.*?)```', path.read_text(), re.DOTALL)):
            if re.search(r'(?m)^jobs:\n', block):
                found[f'{path.relative_to(ROOT)} ({number})'] = block
    return found


def jobs_of(workflow):
    return [job for job in workflow['jobs'].values() if isinstance(job, dict)]  # A document may leave one out.


def cancelled_by_others(text):
    """Whether an event that the jobs' conditions leave out cancels a run that is under way: GitHub takes a workflow's own group before it
    looks at them, a job's afterwards."""
    workflow = yaml.safe_load(text)
    group = workflow.get('concurrency')
    if not isinstance(group, dict) or not group.get('cancel-in-progress'):
        return False
    return any('if' in job for job in jobs_of(workflow))


def keeps_no_report(text):
    """Whether a job runs an agent and keeps nothing of the report that its comment links to."""
    workflow = yaml.safe_load(text)
    for job in jobs_of(workflow):
        uses = [step.get('uses', '') for step in job.get('steps', []) if isinstance(step, dict)]
        runs = any(re.search(r'(OWNER|[\w.-]+)/agentic-ci@', name) for name in uses)
        if runs and not any('/upload-artifact@' in name for name in uses):
            return True
    return False
