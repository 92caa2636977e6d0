"""Ask a web server for a file again and again; write how long each answer took."""

import json
import sys
import time
import urllib.request

url, count = sys.argv[1], int(sys.argv[2])
for _ in range(count):
    began = time.monotonic()
    with urllib.request.urlopen(url, timeout=30) as answer:
        size = len(answer.read())
    print(json.dumps({"latency_ms": 1000 * (time.monotonic() - began), "bytes": size}))
