"""Reads metrics with Prometheus' own parser. Prints the sums of each metric as JSON, by operator, or by application."""

import json
import sys
from collections import Counter, defaultdict

from prometheus_client.parser import text_string_to_metric_families

sums = defaultdict(Counter)
with open(sys.argv[1]) as file:
    for family in text_string_to_metric_families(file.read()):
        assert family.type == "gauge" and family.documentation, family
        for sample in family.samples:
            sums[sample.name][sample.labels.get("operator", sample.labels["app"])] += sample.value
print(json.dumps(sums))
