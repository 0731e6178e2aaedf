"""Serves Berth's accelerator contract (accelerator.proto) from Python.

A vendor writes a class with describe, open, and what open returns: scan, edit
and sample; see plugin.py. What is the same for every vendor is here: the
handshake, the order of calls, repeated requests, looking again and again.
"""

import concurrent.futures
import os
import re
import sys
import tempfile
import threading
import time

import grpc

import accelerator_pb2 as pb

COOKIE = "8f1c1b0e-accelerator"
VERSION = 1  # of the contract: berth.accelerator.v1
LOOK_EVERY = 2  # seconds; changes must show within 5
AMOUNT = re.compile(r"0|[1-9][0-9]{0,12}")
DEVICE_ID = re.compile(r"[A-Za-z0-9._:/-]{1,128}")


class Refused(Exception):
    """An answer other than OK; the message names the field or device at fault."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def invalid(message):
    return Refused(grpc.StatusCode.INVALID_ARGUMENT, message)


def reject(device, why):
    """Keeps a device visible that cannot be given away, and says why."""
    device.allocatable = False
    device.reject_reasons.append(why)


class Plugin:
    """Answers every call of the contract for one vendor."""

    def __init__(self, vendor):
        self.vendor = vendor
        self.changed = threading.Condition()  # guards what follows
        self.snapshot = None
        self.machine = None
        self.mask = ()
        self.prepared = {}  # allocation id to (allocations, answer or None)
        self.looking = threading.Lock()  # one look at the hardware at a time

    # The calls, in the order of the contract.

    def Describe(self, request, context):
        return self.vendor.describe()

    def Configure(self, request, context):
        machine = self.vendor.open(request.config_json, request.roots)
        with self.changed:
            first = self.machine is None
            self.machine, self.mask = machine, tuple(request.device_mask)
        self.look()
        if first:
            threading.Thread(target=self.follow, daemon=True).start()
        return pb.ConfigureResponse()

    def Preflight(self, request, context):
        s = self.ready()
        good = sum(d.allocatable for d in s.devices)
        check = pb.Check(name="devices", ok=good == len(s.devices), detail=f"{good} of {len(s.devices)} can be used")
        return pb.PreflightResponse(checks=[check], driver_info=s.driver_info)

    def WatchDevices(self, request, context):
        last = self.ready()
        yield last
        while context.is_active():
            with self.changed:
                self.changed.wait_for(lambda: self.snapshot is not last, timeout=0.5)
                now = self.snapshot
            if now is not last:
                last = now
                yield now

    def WatchHealth(self, request, context):
        known = {}
        for s in self.WatchDevices(request, context):
            here = {d.id: (d.health, d.health_message) for d in s.devices}
            for id in known.keys() - here.keys():
                here[id] = (pb.HEALTH_LOST, "device is gone")
            for id, now in here.items():
                if now != known.get(id, (pb.HEALTH_HEALTHY, "")):
                    yield pb.HealthEvent(unix_ms=unix_ms(), device_id=id, health=now[0], message=now[1],
                                         fatal_to_workloads=now[0] == pb.HEALTH_LOST)
            known.update(here)

    def Prepare(self, request, context):
        if not request.allocation_id:
            raise invalid("allocation_id: must be set")
        self.ready()
        wanted = ordered(request.allocations)
        with self.changed:  # edit takes no time, so one lock is enough
            had, answer = self.prepared.get(request.allocation_id, (None, None))
            if had is not None and had != wanted:
                raise Refused(grpc.StatusCode.ALREADY_EXISTS, f"allocation_id: {request.allocation_id} is prepared with other devices")
            if answer is None:
                answer = self.machine.edit(request, self.grants(wanted))
                self.prepared[request.allocation_id] = (wanted, answer)
            return answer

    def Unprepare(self, request, context):
        if not request.allocation_id:
            raise invalid("allocation_id: must be set")
        self.ready()
        with self.changed:
            self.prepared.pop(request.allocation_id, None)
        return pb.UnprepareResponse()

    def Restore(self, request, context):
        self.ready()
        problems = []
        with self.changed:
            self.prepared = {live.allocation_id: (ordered(live.allocations), None) for live in request.live}
            for live in request.live:
                for a in live.allocations:
                    try:
                        self.grants([(a.slot, a.device_id, a.amount)])
                    except Refused as e:
                        problems.append(pb.RestoreProblem(allocation_id=live.allocation_id, device_id=a.device_id, message=str(e)))
        return pb.RestoreResponse(problems=problems)

    def WatchNodeMetrics(self, request, context):
        pause = max(request.interval_ms or 5000, 100) / 1000
        while context.is_active():
            snapshot = self.ready()
            yield pb.NodeSample(unix_ms=unix_ms(), metrics=self.machine.sample(snapshot))
            time.sleep(pause)

    # What they have in common.

    def ready(self):
        with self.changed:
            if self.snapshot is None:
                raise Refused(grpc.StatusCode.FAILED_PRECONDITION, "the plugin is not configured")
            return self.snapshot

    def grants(self, allocations):
        """Looks allocations up and answers the errors the contract prescribes."""
        devices = {d.id: d for d in self.ready().devices}
        slots = {s.name for s in self.snapshot.slots}
        if not allocations:
            raise invalid("allocations: none given")
        out = []
        for slot, id, amount in allocations:
            d = devices.get(id)
            if d is None:
                raise Refused(grpc.StatusCode.NOT_FOUND, f"device_id: there is no device {id:.140}")
            if not d.allocatable:
                raise Refused(grpc.StatusCode.FAILED_PRECONDITION, f"device_id: {id} is not allocatable: {list(d.reject_reasons)}")
            if slot not in slots or slot not in d.capacity:
                raise invalid(f"slot: {id} has no {slot:.80}")
            if not AMOUNT.fullmatch(amount) or not 0 < int(amount) <= int(d.capacity[slot]):
                raise invalid(f"amount: {amount:.40} of {slot} on {id}, which has {d.capacity[slot]}")
            out.append((d, int(amount)))
        return out

    def follow(self):
        while True:
            time.sleep(LOOK_EVERY)
            self.look()

    def look(self):
        """Looks at the hardware. When that fails, what was known stays visible
        and is not given away."""
        with self.looking:
            machine, mask = self.machine, self.mask
            try:
                s = machine.scan()
                kept = [d for d in s.devices if d.id not in mask]
                del s.devices[:]
                s.devices.extend(kept)
            except Exception as e:  # whatever a tool or file may cause
                s = pb.DeviceSnapshot()
                if self.snapshot is not None:
                    s.CopyFrom(self.snapshot)
                for d in s.devices:
                    d.health, d.health_message = pb.HEALTH_UNKNOWN, str(e)[:200]
                    if str(e)[:200] not in d.reject_reasons:
                        reject(d, str(e)[:200])
            with self.changed:
                s.revision = self.snapshot.revision if self.snapshot else 1
                if s != self.snapshot:
                    s.revision += 1
                    self.snapshot = s
                    self.changed.notify_all()


def ordered(allocations):
    return sorted((a.slot, a.device_id, a.amount) for a in allocations)


def unix_ms():
    return int(time.time() * 1000)


CALLS = {  # name: request, whether a stream comes back; the others are UNIMPLEMENTED
    "Describe": (pb.DescribeRequest, False),
    "Configure": (pb.ConfigureRequest, False),
    "Preflight": (pb.PreflightRequest, False),
    "WatchDevices": (pb.WatchDevicesRequest, True),
    "WatchHealth": (pb.WatchHealthRequest, True),
    "Prepare": (pb.PrepareRequest, False),
    "Unprepare": (pb.UnprepareRequest, False),
    "Restore": (pb.RestoreRequest, False),
    "WatchNodeMetrics": (pb.WatchNodeMetricsRequest, True),
}


def handlers(plugin):
    def unary(call):
        def answer(request, context):
            try:
                return call(request, context)
            except Refused as e:
                context.abort(e.code, str(e))
        return answer

    def stream(call):
        def answer(request, context):
            try:
                yield from call(request, context)
            except Refused as e:
                context.abort(e.code, str(e))
        return answer

    out = {}
    for name, (request, streams) in CALLS.items():
        kind = grpc.unary_stream_rpc_method_handler if streams else grpc.unary_unary_rpc_method_handler
        wrap = stream if streams else unary
        out[name] = kind(wrap(getattr(plugin, name)), request_deserializer=request.FromString,
                         response_serializer=lambda message: message.SerializeToString())
    return out


def serve(vendor):
    """Is a plugin's main: it answers the host that started the process and
    returns when the host lets go."""
    if os.environ.get("BERTH_ACCELERATOR_PLUGIN") != COOKIE:
        sys.exit("This is an accelerator plugin of Berth: the agent starts it, nobody else.")
    done = threading.Event()

    def shutdown(request, context):
        done.set()
        return b""

    raw = grpc.unary_unary_rpc_method_handler  # messages so small that they are written out
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=32), options=[("grpc.so_reuseport", 0)])
    service = grpc.method_handlers_generic_handler
    server.add_generic_rpc_handlers((
        service("berth.accelerator.v1.Accelerator", handlers(Plugin(vendor))),
        service("grpc.health.v1.Health", {"Check": raw(lambda request, context: b"\x08\x01")}),  # SERVING
        service("plugin.GRPCController", {"Shutdown": raw(shutdown)}),
    ))
    where = os.environ.get("PLUGIN_UNIX_SOCKET_DIR") or tempfile.mkdtemp()
    socket = os.path.join(where, "plugin.sock")
    server.add_insecure_port("unix:" + socket)
    server.start()
    # The one line on standard output: go-plugin's own version, the contract's,
    # and where it is served. With a host that does not speak ours, it refuses.
    print(f"1|{VERSION}|unix|{socket}|grpc", flush=True)
    done.wait()
    server.stop(grace=1).wait()
