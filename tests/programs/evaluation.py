# SPDX-License-Identifier: Apache-2.0
"""An evaluation in Inspect with a scripted model, whose tools work in a sandbox of agentic-ci."""
import pathlib
import sys

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, Target, accuracy, scorer
from inspect_ai.solver import TaskState, generate, use_tools
from inspect_ai.tool import bash
from inspect_ai.util import ExecRemoteAwaitableOptions, sandbox

POLICY = '''version: 1
filesystem_policy: {include_workdir: true, read_only: [/usr, /lib, /etc, /proc], read_write: [/tmp, /dev/null]}
network_policies: {}
'''


@scorer(metrics=[accuracy()])
def written():
    async def score(state: TaskState, target: Target) -> Score:
        text = await sandbox().read_file('answer.txt')
        # Tools that Inspect itself puts into a sandbox.
        remote = await sandbox().exec_remote(['cat', 'given.txt'], ExecRemoteAwaitableOptions(), stream=False)
        denied = await sandbox().exec(['curl', '-sSf', '-m', '20', 'http://refused.invalid/'])
        right = text == target.text and remote.stdout == 'given\n' and not denied.success
        return Score(value=int(right), explanation=f'{text!r} {remote!r} {denied!r}')
    return score


def model():
    outputs = [ModelOutput.for_tool_call('mockllm/model', 'bash', {'command': 'cat given.txt; echo 42 > answer.txt'}),
               ModelOutput.from_content('mockllm/model', 'done')]
    for output in outputs:  # Otherwise tokens are counted, with a table from the network.
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return get_model('mockllm/model', custom_outputs=outputs)


pathlib.Path('policy.yml').write_text(POLICY)
for kind in ('agentic_ci', ('agentic_ci', 'policy.yml')):
    task = Task(dataset=[Sample(input='Answer.', target='42\n', files={'given.txt': 'given\n'})],
                solver=[use_tools(bash(timeout=600)), generate()], scorer=written(), sandbox=kind)
    log = eval(task, model=model())[0]
    said = [message.text for message in log.samples[0].messages if message.role == 'tool'] if log.samples else []
    if log.status != 'success' or log.results.scores[0].metrics['accuracy'].value != 1 or said != ['given\n']:
        print(log.error and log.error.message, log.samples and (log.samples[0].error, log.samples[0].scores), said)
        sys.exit(1)
print('done')
