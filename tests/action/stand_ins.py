# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for the actions of GitHub's own, for workflows that act runs without a network: the checkout of a local repository,
and artifacts in the directory TEST_ARTIFACTS.
"""
import re

# How a workflow names one of them.
SHA = re.compile(r'uses: (?:https://github.com/)?(actions/[a-z-]+)@([0-9a-f]{40})')

CHECKOUT = '''
name: checkout
description: The stand-in for actions/checkout, one commit without credentials.
inputs: { ref: { default: "" }, persist-credentials: { default: "true" }, fetch-depth: { default: "1" } }
runs:
  using: composite
  steps:
    - shell: bash
      env: { REF: "${{ inputs.ref || github.ref }}", CREDENTIALS: "${{ inputs.persist-credentials }}", DEPTH: "${{ inputs.fetch-depth }}" }
      run: |
        [ "$CREDENTIALS" = false ]
        git init --quiet . && git remote add origin "$GITHUB_SERVER_URL/$GITHUB_REPOSITORY"
        if [ "$DEPTH" = 0 ]; then depth=; else depth=--depth=$DEPTH; fi
        git fetch --quiet $depth origin "$REF" && git checkout --quiet FETCH_HEAD
'''
UPLOAD = '''
name: upload-artifact
description: The stand-in for actions/upload-artifact.
inputs: { name: { required: true }, path: { required: true } }
runs:
  using: composite
  steps:
    - shell: bash
      env: { NAME: "${{ inputs.name }}", FROM: "${{ inputs.path }}" }
      run: mkdir -p "$TEST_ARTIFACTS" && cp -r "$FROM" "$TEST_ARTIFACTS/$NAME"
'''
DOWNLOAD = '''
name: download-artifact
description: The stand-in for actions/download-artifact.
inputs: { name: { required: true }, path: { required: true }, run-id: {}, github-token: {} }
runs:
  using: composite
  steps:
    - shell: bash
      env: { NAME: "${{ inputs.name }}", INTO: "${{ inputs.path }}" }
      run: cp -r "$TEST_ARTIFACTS/$NAME" "$INTO"
'''


def write(path, text, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
