"""Prints the contents of the tab "Operators" of a Spark UI as JSON. Fails if there is no such tab."""

import base64
import json
import re
import sys
import urllib.request
import zlib


def get(url):
    with urllib.request.urlopen(url, timeout=90) as answer:
        return answer.read().decode(), dict(answer.headers)


base = sys.argv[1]
front, _ = get(base + "/jobs/")
frame, _ = get(base + "/operators/")
report, headers = get(base + "/operators/report/")
blocks = {
    name: json.loads(zlib.decompress(base64.b64decode(block), -15))
    for name, block in re.findall(r'<script type="application/octet-stream" id="block-([^"]+)">([^<]*)</script>', report)
}
summary = blocks.get("summary", {"applications": [], "queries": []})
first = {"nodes": []}
if summary["queries"]:
    places = blocks["places"]
    first = blocks[f"details-{places['bundle'][0]}"]["details"][places["at"][0]]
nonce = re.search(r"'nonce-([^']+)'", headers.get("Content-Security-Policy", ""))
print(
    json.dumps(
        {
            "linked": "/operators/" in front,
            "in_spark": "/static/webui.css" in frame,
            "framed": '<iframe name="unfuse-report"' in frame,
            "script_runs": nonce is None or f'<script nonce="{nonce[1]}">' in report,
            "frame_options": headers.get("X-Frame-Options"),
            "applications": [app["id"] for app in summary["applications"]],
            "queries": sum(query["query"] is not None for query in summary["queries"]),
            "operators": [node["operator"] for node in first["nodes"]],
            "cpu_ns": summary["queries"][0]["cost"]["cpu_ns"] if summary["queries"] else 0,
            "text": "" if blocks else re.sub(r"<[^>]*>", "", report),
        }
    )
)
