#!/bin/bash
if [ "$(cat hello.txt)" = "$EXPECTED" ] && [ "$(cat /app/replayed.txt)" = given ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
