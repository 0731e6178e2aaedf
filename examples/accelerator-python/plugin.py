#!/usr/bin/env python3
"""An accelerator plugin for the invented vendor ZETA, whose tool zeta-smi -j
prints its cards as JSON, and whose card N is the device file /dev/zetaN."""

import json
import os
import re
import shutil
import subprocess

import accelerator_pb2 as pb
from berth_accelerator import DEVICE_ID, invalid, reject, serve

SLOT = pb.SlotType(name="zeta.device", kind=pb.SlotType.COUNT, display_name="ZETA", description="A whole ZETA card", unit="card", icon="npu_generic")
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"tool": {"type": "string", "default": "zeta-smi", "description": "Name of the vendor's tool"}},
}
HEALTH = {"ok": pb.HEALTH_HEALTHY, "hot": pb.HEALTH_DEGRADED, "failed": pb.HEALTH_UNHEALTHY}


class Zeta:
    def describe(self):
        return pb.DescribeResponse(
            key="zeta", plugin_version="0.1.0", vendor="ZETA", pci_vendors=["2e7a"], slots=[SLOT],
            config_schema=json.dumps(SCHEMA).encode(), capabilities=[pb.CAPABILITY_HEALTH, pb.CAPABILITY_RECONFIGURE])

    def open(self, config, roots):
        """Reads settings strictly. It does not look at hardware."""
        try:
            settings = json.loads(config or b"{}")
        except ValueError as e:
            raise invalid(f"config_json: {e}")
        if not isinstance(settings, dict) or settings.keys() - {"tool"}:
            raise invalid("config_json: not an object, or a setting other than tool")
        tool = settings.get("tool", "zeta-smi")
        if not isinstance(tool, str) or not re.fullmatch(r"[\w.-]+", tool):
            raise invalid("config_json: tool: not the name of a program")
        return Machine(tool, roots)


class Machine:
    def __init__(self, tool, roots):
        self.tool, self.dev = tool, roots.dev or "/dev"
        self.path = os.pathsep.join(roots.path) or os.environ.get("PATH", "")
        self.busy = {}  # device to percent, as of the last look

    def scan(self):
        s = pb.DeviceSnapshot(slots=[SLOT])
        tool = shutil.which(self.tool, path=self.path)
        if tool is None:  # no driver is no error
            return s
        for i, card in enumerate(self.cards(tool)):
            s.devices.append(self.device(i, card if isinstance(card, dict) else {}))
        ids = [d.id for d in s.devices]
        for d in s.devices:
            if ids.count(d.id) > 1:
                raise ValueError(f"{self.tool} names {d.id} twice")
        return s

    def cards(self, tool):
        try:
            ran = subprocess.run([tool, "-j"], stdin=subprocess.DEVNULL, capture_output=True, timeout=3, check=True)
            return list(json.loads(ran.stdout)["cards"])
        except subprocess.SubprocessError as e:
            raise ValueError(f"{self.tool} does not answer: {type(e).__name__}")
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{self.tool} prints no list of cards")

    def device(self, i, card):
        text = lambda key: card[key] if isinstance(card.get(key), str) and len(card[key]) <= 100 else ""
        d = pb.Device(id=text("serial"), model=text("model") or "ZETA card", serial=text("serial"), allocatable=True,
                      capacity={SLOT.name: "1"}, attributes={"node": text("node")},
                      health=HEALTH.get(text("state"), pb.HEALTH_UNKNOWN), health_message=text("message"))
        if not DEVICE_ID.fullmatch(d.id):
            d.id = f"card-{i}"
            reject(d, "its serial cannot be read")
        if not re.fullmatch(r"zeta\d+", text("node")) or not os.path.exists(os.path.join(self.dev, text("node"))):
            reject(d, "it has no device file")
        if isinstance(card.get("memory"), int) and 0 < card["memory"] < 1 << 50:
            d.memory_bytes = card["memory"]
        if d.health == pb.HEALTH_UNHEALTHY:
            reject(d, d.health_message or "it has failed")
        self.busy[d.id] = card.get("busy")
        return d

    def edit(self, request, grants):
        """Says what a container needs. Its cards count from 0."""
        out = pb.PrepareResponse()
        out.edits.env["ZETA_CARDS"] = str(len(grants))
        for i, (d, _) in enumerate(grants):
            out.edits.device_nodes.add(path=f"/dev/zeta{i}", host_path=os.path.join(self.dev, d.attributes["node"]), permissions="rw")
            out.attached.add(device_id=d.id, model=d.model, memory_bytes=d.memory_bytes)
        return out

    def sample(self, snapshot):
        """Measures. A figure that cannot be had is not zero but UNAVAILABLE."""
        out = []
        for d in snapshot.devices:
            m = pb.Metric(name="zeta_util", device_id=d.id, unit="percent", kind=pb.Metric.UTILIZATION, capacity=100, quality=pb.Metric.UNAVAILABLE)
            busy = self.busy.get(d.id)
            if isinstance(busy, (int, float)) and 0 <= busy <= 100:
                m.value, m.quality = busy, pb.Metric.MEASURED
            out.append(m)
        return out


if __name__ == "__main__":
    serve(Zeta())
