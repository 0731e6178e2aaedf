import { screen, within } from "@testing-library/react";
import { GraphQLError } from "graphql";
import { beforeAll, expect, it, vi } from "vitest";
import { Deployment as DeploymentPage } from "../../pages/Deployment";
import { list } from "../../testing/api";
import { stage } from "../../testing/stage";
import { Change } from "./Change";
import DeploySheet from "./DeploySheet";
import { Keys } from "./Keys";
import { Replicas } from "./Replicas";
import { ScalingForm } from "./ScalingForm";
import type { DeploymentDetail } from "./serving";
import { TryOut } from "./TryOut";

// Fields that grow with their text listen to the fonts of the document, which happy-dom lacks.
beforeAll(() => void Object.defineProperty(document, "fonts", { value: new EventTarget(), configurable: true }));

const replica = (id: string, phase: string, more: object = {}) => ({
  node: {
    id,
    revision: 1,
    phase,
    phaseSince: "2026-01-02T03:04:05Z",
    message: "",
    failed: false,
    createdAt: "2026-01-02T03:04:05Z",
    endedAt: null,
    session: null,
    ...more,
  },
});

const scaling = { min: 1, max: 2, zeroAfter: 900, upAfter: 30, downAfter: 300, targets: [], schedules: [] };
const deployment = (more: object = {}) =>
  ({
    id: "d1",
    name: "llama",
    status: "UPDATING",
    shared: true,
    open: false,
    recorded: false,
    wanted: 2,
    current: 1,
    target: 2,
    ready: { totalCount: 1 },
    traffic: [
      { revision: 2, percent: 10 },
      { revision: 1, percent: 90 },
    ],
    load: null,
    strategy: { kind: "CANARY", steps: [10], stepTime: 60, deadline: 600 },
    scaling,
    replicas: { totalCount: 0, edges: [] },
    project: { id: "p1", name: "vision" },
    owner: { id: "ada", email: "ada@berth.example" },
    permissions: ["READ", "UPDATE"],
    ...more,
  }) as unknown as DeploymentDetail;

it("promotes the new revision after a question", async () => {
  const { api, user } = await stage(<Change deployment={deployment()} editable />, {
    answers: { promoteDeployment: { deployment: { id: "d1" } } },
  });
  expect(screen.getByText("Revision 1: 90 % of the requests")).toBeDefined();
  await user.click(screen.getByRole("button", { name: "Promote" }));
  const dialog = await screen.findByRole("dialog", { name: "Promote revision 2?" });
  await user.click(within(dialog).getByRole("button", { name: "Promote" }));
  await vi.waitFor(() => expect(api.sent("PromoteDeployment")).toEqual([{ input: { id: "d1" } }]));
});

it("offers no buttons without permission, and no promotion of a rolling change", async () => {
  await stage(<Change deployment={deployment()} editable={false} />);
  expect(screen.queryByRole("button")).toBeNull();
});

it("shows the newest failure of a replica, and older ones on request", async () => {
  const failed = { phase: "ENDED", failed: true, endedAt: "2026-01-02T03:04:05Z" };
  const replicas = {
    totalCount: 3,
    edges: [
      replica("a", "STARTING", { message: "No machine has 4 free fGPU." }),
      replica("b", "ENDED", { ...failed, message: "not enough memory" }),
      replica("c", "ENDED", { ...failed, message: "an older failure" }),
    ],
  };
  const { user } = await stage(<Replicas deployment={deployment({ replicas })} />);
  expect(screen.getByText("No machine has 4 free fGPU.")).toBeDefined();
  expect(screen.getByText("not enough memory")).toBeDefined();
  expect(screen.queryByText("an older failure")).toBeNull();
  await user.click(screen.getByRole("button", { name: "Ended (2)" }));
  expect(screen.getByText("an older failure")).toBeDefined();
});

it("shows a refused number at its field", async () => {
  const { api, user } = await stage(<ScalingForm deployment={deployment()} editable />, {
    answers: {
      updateDeployment: () => {
        throw new GraphQLError("50 is above 10", { extensions: { code: "INVALID_ARGUMENT", field: "scaling.max" } });
      },
    },
  });
  const max = screen.getByLabelText("Maximum");
  await user.clear(max);
  await user.type(max, "50");
  await user.click(screen.getByRole("button", { name: "Save" }));
  expect(await screen.findByText("50 is above 10")).toBeDefined();
  expect(max.getAttribute("aria-invalid")).toBe("true");
  expect(api.sent("UpdateDeployment")[0]).toMatchObject({ input: { id: "d1", scaling: { min: 1, max: 50 } } });
  expect(api.sent("UpdateDeployment")[0]).not.toHaveProperty("input.replicas");
});

it("shows where an expression of a target is wrong", async () => {
  const targets = [{ metric: "promql:sum(x", perReplica: 2, sum: false }];
  const { user } = await stage(<ScalingForm deployment={deployment({ scaling: { ...scaling, targets } })} editable />, {
    answers: {
      updateDeployment: () => {
        throw new GraphQLError("at character 6: unclosed left parenthesis", {
          extensions: { code: "INVALID_ARGUMENT", field: "scaling.targets[0].metric" },
        });
      },
    },
  });
  await user.click(screen.getByRole("button", { name: "Save" }));
  const group = within(screen.getByRole("group", { name: "Targets" }));
  expect(await group.findByText("at character 6: unclosed left parenthesis")).toBeDefined();
});

it("shows a new key once", async () => {
  const { api, user } = await stage(<Keys deployment={deployment()} over={false} />, {
    answers: {
      deploymentKeys: list([]),
      createDeploymentKey: { secret: "bmk_secret", key: { id: "k1", name: "ci", prefix: "bmk_s" } },
    },
  });
  await user.click(await screen.findByRole("button", { name: "New key" }));
  const dialog = await screen.findByRole("dialog", { name: "New key" });
  await user.type(within(dialog).getByLabelText(/^Name/), "ci");
  await user.type(within(dialog).getByLabelText("Tokens in all"), "500");
  for (const api of ["audio", "images", "other APIs"]) await user.click(within(dialog).getByLabelText(api));
  await user.click(within(dialog).getByRole("button", { name: "Create" }));
  expect(await screen.findByText("bmk_secret")).toBeDefined();
  expect(api.sent("CreateDeploymentKey")[0]).toMatchObject({
    input: { name: "ci", deployment: "d1", apis: ["CHAT", "COMPLETIONS", "EMBEDDINGS", "RERANK"] },
  });
  await user.click(screen.getByRole("button", { name: "I have saved it" }));
  expect(screen.queryByText("bmk_secret")).toBeNull();
});

it("lists the viewer's keys for all deployments, and the others on request", async () => {
  const key = { id: "k1", name: "ci", prefix: "bmk_s", apis: ["CHAT"], user: { email: "ada@berth.example" } };
  const { api, user } = await stage(<Keys deployment={null} />, { answers: { deploymentKeys: list([key]) } });
  expect(await screen.findByText("for all of your deployments")).toBeDefined();
  expect(screen.getByText("chat")).toBeDefined();
  const filters = () => api.sent("DeploymentKeys").map((v) => v.where);
  expect(filters()[0]).toEqual({ userID: "ada", deploymentIDIsNil: true, revokedAtIsNil: true });
  await user.click(screen.getByRole("button", { name: "Those for one deployment too" }));
  await vi.waitFor(() => expect(filters()).toContainEqual({ userID: "ada", revokedAtIsNil: true }));
});

it("shows markup of an answer as text, and revokes the key of the request", async () => {
  const say = (content: string) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;
  vi.stubGlobal(
    "fetch",
    async () =>
      new Response(`${say("<b>bold</b> ")}${say("![x](https://tracker.test/?q)")}data: [DONE]\n\n`, {
        headers: { "Content-Type": "text/event-stream" },
      }),
  );
  const { api, user } = await stage(
    <TryOut deployment={deployment()} address="https://models.test/v1" over={false} />,
    {
      answers: { createDeploymentKey: { secret: "s", key: { id: "k1" } }, revokeDeploymentKey: { key: { id: "k1" } } },
    },
  );
  await user.type(screen.getByLabelText("Prompt"), "hi");
  await user.click(screen.getByRole("button", { name: "Send" }));
  const answer = await screen.findByText("<b>bold</b> ![x](https://tracker.test/?q)");
  expect(answer.children.length).toBe(0);
  await vi.waitFor(() => expect(api.sent("RevokeDeploymentKey")).toEqual([{ input: { id: "k1" } }]));
  vi.unstubAllGlobals();
});

it("shows the load and the history as they change", async () => {
  const d = { __typename: "Deployment", ...deployment({ load: { requestsPerSecond: 2, replicas: [] } }) };
  const { api, router } = await stage(<DeploymentPage />, { path: "/serving/$id", answers: { node: d } });
  const figures = async () => within(await screen.findByRole("region", { name: "Load" })).getAllByRole("definition");
  expect((await figures())[0]?.textContent).toBe("2");
  const reads = api.sent("Deployment").length;
  await api.push("deploymentChanged", { ...d, load: { requestsPerSecond: 7.5, replicas: [] } });
  await vi.waitFor(async () => expect((await figures())[0]?.textContent).toBe("7.5"));
  expect(api.sent("Deployment").length).toBe(reads);

  const events = { ...list([{ id: "e1", kind: "REFUSED", message: "no room" }]), totalCount: 1 };
  api.answers = { node: { ...d, events: { ...list([]), totalCount: 0 } } };
  await router.navigate({ to: "/serving/$id", params: { id: "$id" }, search: { tab: "history" } } as never);
  await screen.findByText("No events yet");
  api.answers = { node: { ...d, events } };
  await api.push("deploymentChanged", { ...d, events });
  expect(await screen.findByText("no room")).toBeDefined();
});

it("shows what the form lacks and what the server refuses at the fields", async () => {
  const { api, user } = await stage(<DeploySheet onClose={() => undefined} />, {
    answers: {
      modelVariants: [
        { name: "vllm", title: "vLLM", command: ["vllm"], options: [{ name: "dtype", type: "TEXT", choices: [] }] },
      ],
      images: list([{ id: "i1", name: "vllm:1", reference: "r/vllm:1", minimumSlots: {}, apps: [] }]),
      vfolders: list([{ id: "f1", name: "weights", permissions: ["READ_FILES"] }]),
      createDeployment: () => {
        throw new GraphQLError("is not a type", {
          extensions: { code: "INVALID_ARGUMENT", field: "revision.options.dtype" },
        });
      },
    },
  });
  await user.click(await screen.findByRole("button", { name: "Deploy" }));
  expect(await screen.findByText(/Use 1 to 63 lower-case letters/)).toBeDefined();
  expect(screen.getByText("Choose the folder with the model.")).toBeDefined();
  expect(api.sent("CreateDeployment")).toEqual([]);
  await user.type(screen.getByLabelText(/^Name/), "llama");
  await user.click(screen.getByRole("combobox", { name: "Folder with the model" }));
  await user.click(await screen.findByRole("option", { name: "weights" }));
  await user.type(screen.getByLabelText("dtype"), "odd");
  await user.click(screen.getByRole("button", { name: "Deploy" }));
  expect(await screen.findByText("is not a type")).toBeDefined();
  expect(screen.getByLabelText("dtype").getAttribute("aria-invalid")).toBe("true");
  expect(api.sent("CreateDeployment")[0]).toMatchObject({
    input: {
      name: "llama",
      revision: { variant: "vllm", model: "f1", options: { dtype: "odd" }, request: { image: "r/vllm:1" } },
    },
  });
});
