import { expect, test } from "vitest";
import { differences } from "./diff";
import {
  atField,
  checkDraft,
  deploymentInput,
  draftOf,
  newDraft,
  parseEnvironment,
  revisionInput,
  withFolderIds,
} from "./draft";
import type { Revision, Variant } from "./serving";

const variants = [
  { name: "vllm", port: 8000, health: "/health", options: [] },
  { name: "custom", port: 8000, health: "", options: [] },
] as unknown as Variant[];

const revision = (more: object = {}, request: object = {}) =>
  ({
    id: "r1",
    number: 1,
    comment: "",
    variant: "vllm",
    options: { maxModelLen: "4096" },
    image: "r/vllm:1",
    subpath: "8b",
    vfolder: { id: "f1", name: "llama" },
    engine: {
      port: 8000,
      health: "/health",
      healthStatus: 204,
      interval: 5,
      timeout: 5,
      retries: 3,
      startTimeout: 60,
      metrics: "/metrics",
    },
    request: {
      image: "r/vllm:1",
      type: "INFERENCE",
      slots: { cpu: "2", mem: "2147483648" },
      command: ["vllm", "serve"],
      environment: { A: "1=2" },
      mounts: [
        { vfolder: "f2", target: "/srv/data", subpath: "x", readOnly: true },
        { vfolder: "f1", target: "/models", subpath: "", readOnly: true },
      ],
      apps: null,
      kernels: 2,
      bootstrapScript: "true",
      autoMount: false,
      project: "p1",
      resourceGroup: "g1",
      priority: 20,
      lifetime: null,
      agents: null,
      strictAgents: null,
      preemptible: null,
      sessionGroup: null,
      shmBytes: 1024,
      diskBytes: null,
      tags: null,
      ...request,
    },
    ...more,
  }) as unknown as Revision;

test("a new deployment has the request of a replica", () => {
  const d = newDraft("p1", "g1");
  const filled = {
    ...d,
    name: " llama ",
    model: "f1",
    subpath: "8b",
    options: { dtype: "half", maxModelLen: "" },
    environment: "A=1\n\nB=x=y",
    min: 0,
    max: 3,
    launch: { ...d.launch, image: "r/vllm:1", cpu: 2, mem: 1, folders: [{ id: "f2", readOnly: true }] },
  };
  expect(checkDraft(filled, true)).toEqual({});
  expect(deploymentInput(filled)).toEqual({
    name: "llama",
    project: "p1",
    shared: false,
    scaling: { min: 0, max: 3 },
    revision: {
      variant: "vllm",
      model: "f1",
      subpath: "8b",
      options: { dtype: "half" },
      request: {
        image: "r/vllm:1",
        slots: { cpu: "2", mem: "1073741824" },
        resourceGroup: "g1",
        environment: { A: "1", B: "x=y" },
        mounts: [{ vfolder: "f2", readOnly: true }],
      },
    },
  });
});

test("what is missing is named by the field of the API", () => {
  const d = newDraft(null, null);
  expect(Object.keys(checkDraft(d, true))).toEqual(["name", "request.image", "model"]);
  expect(Object.keys(checkDraft({ ...d, variant: "custom", environment: "x" }, false))).toEqual([
    "request.image",
    "request.command",
    "request.environment",
  ]);
});

test("a new revision keeps what the form does not show", () => {
  const begun = revision();
  const d = draftOf(begun, variants);
  expect(d).toMatchObject({ variant: "vllm", model: "f1", subpath: "8b", port: "", health: "", environment: "A=1=2" });
  expect(d.launch.folders).toEqual([{ id: "f2", readOnly: true }]);
  expect(revisionInput(d, begun)).toEqual({
    variant: "vllm",
    model: "f1",
    subpath: "8b",
    options: { maxModelLen: "4096" },
    healthStatus: 204,
    interval: 5,
    timeout: 5,
    retries: 3,
    startTimeout: 60,
    request: {
      image: "r/vllm:1",
      slots: { cpu: "2", mem: "2147483648" },
      kernels: 2,
      bootstrapScript: "true",
      autoMount: false,
      shmBytes: 1024,
      resourceGroup: "g1",
      priority: 20,
      environment: { A: "1=2" },
      mounts: [{ vfolder: "f2", target: "/srv/data", subpath: "x", readOnly: true }],
    },
  });
});

test("a custom engine keeps its command and port", () => {
  const begun = revision({ variant: "custom", options: {} }, { command: ["/bin/sh", "-c", "serve --fast"] });
  const input = revisionInput(draftOf(begun, variants), begun);
  expect(input).toMatchObject({ variant: "custom", port: 8000, health: "/health" });
  expect(input.request).toMatchObject({ command: ["/bin/sh", "-c", "serve --fast"] });
  const words = revision({ variant: "custom", options: {} }, { command: ["serve", "a b"] });
  const d = draftOf(words, variants);
  expect(revisionInput(d, words).request).toMatchObject({ command: ["serve", "a b"] });
  const changed = { ...d, launch: { ...d.launch, command: "serve c" } };
  expect(revisionInput(changed, words).request).toMatchObject({ command: ["/bin/sh", "-c", "serve c"] });
});

test("folders that a request names get their IDs", () => {
  const named = revision({}, { mounts: [{ vfolder: "data", target: "/srv", subpath: null, readOnly: true }] });
  const r = withFolderIds(named, [{ id: "f2", name: "data" }]);
  expect(draftOf(r, variants).launch.folders).toEqual([{ id: "f2", readOnly: true }]);
  expect(revisionInput(draftOf(r, variants), r).request).toMatchObject({
    mounts: [{ vfolder: "f2", target: "/srv", readOnly: true }],
  });
});

test("lines of the environment need a name", () => {
  expect(parseEnvironment("A=\n B = c")).toEqual({ A: "", B: " c" });
  expect(parseEnvironment("=x")).toBeNull();
});

test("two revisions differ field by field", () => {
  const after = revision(
    { number: 2, options: { maxModelLen: "8192" }, comment: "longer" },
    { environment: { A: "1=2", TOKEN: "t" }, shmBytes: null },
  );
  expect(differences(revision(), after)).toEqual([
    { name: "option maxModelLen", before: "4096", after: "8192" },
    { name: "env TOKEN", before: "", after: "t" },
    { name: "Comment", before: "", after: "longer" },
    { name: "Bytes of /dev/shm", before: "1024", after: "" },
  ]);
  expect(differences(after, after)).toEqual([]);
});

test("an error of the server is at the field of the form", () => {
  const failure = (field: string, message: string) => atField({ code: "INVALID_ARGUMENT", field, message });
  expect(failure("revision.request.image", "not found")).toMatchObject({ field: "request.image" });
  expect(failure("revision.options.dtype", "is not one of auto")).toMatchObject({ field: "options.dtype" });
  expect(atField(null)).toBeNull();
});

test("asks for the open port alone although the variant has a health check", () => {
  const open = revision({ engine: { ...revision().engine, health: "" } });
  expect(draftOf(open, variants)).toMatchObject({ portOnly: true, health: "" });
  expect(revisionInput({ ...draftOf(open, variants) }, open)).toMatchObject({ health: "" });
  expect(revisionInput({ ...draftOf(open, variants), portOnly: false, health: "/ready" }, open)).toMatchObject({
    health: "/ready",
  });
});
