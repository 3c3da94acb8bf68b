#!/usr/bin/env python3
"""Writes deploy/kubernetes/monitoring.yaml: a PodMonitor, and the rules of deploy/prometheus as a PrometheusRule.

tools/kubernetes_rules.py [FILE]      FILE: where to, if not there
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "deploy" / "kubernetes" / "monitoring.yaml"

HEAD = """\
# Made by tools/kubernetes_rules.py from deploy/prometheus/*rules*.yml: change those, then `make generated`.
# For Prometheus' operator; leave this file out of kustomization.yaml where there is none.
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata:
  name: trizone
  namespace: trizone
spec:
  # The jobs are router, storagenode and autoadmin, as the rules and dashboards call them.
  jobLabel: app.kubernetes.io/component
  selector:
    matchLabels:
      app.kubernetes.io/name: trizone
  podMetricsEndpoints:
    - port: metrics
      interval: 5s
"""
RULE = """\
---
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: trizone
  namespace: trizone
spec:
  groups:
"""


def monitoring() -> str:
    """The file's content."""
    content = HEAD
    files = sorted((ROOT / "deploy" / "prometheus").glob("*rules*.yml"))
    if files:
        content += RULE
    for file in files:
        _, _, groups = file.read_text(encoding="utf-8").partition("\ngroups:\n")
        content += "".join(f"  {line}".rstrip() + "\n" for line in groups.splitlines())
    return content


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else TARGET).write_text(monitoring(), encoding="utf-8")
