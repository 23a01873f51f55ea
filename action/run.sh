#!/usr/bin/env bash
# Runs the agent with the action's inputs (INPUTS, JSON); writes the step's summary and outputs.
set -euo pipefail
exec "$BINARY" action
