import { act, screen } from "@testing-library/react";
import { GraphQLError } from "graphql";
import { afterEach, expect, it, vi } from "vitest";
import type { Answers } from "../../testing/api";
import { stage } from "../../testing/stage";
import { Apps } from "./Apps";

const lab = {
  __typename: "App",
  name: "lab",
  title: "JupyterLab",
  kernelId: "k1",
  port: 8081,
  source: "CATALOGUE",
  status: "RUNNING",
  startable: true,
};
const session = (...apps: object[]) => ({ __typename: "Session", id: "s1", apps });
const payload = (more: object) => ({ app: { ...lab, ...more } });

const shown = (answers: Answers, more: Partial<Parameters<typeof Apps>[0]> = {}) =>
  stage(
    <Apps session="s1" live over={false} canConnect main="k1" kernels={[{ id: "k1", hostname: "main1" }]} {...more} />,
    { answers },
  );

/** Simulates the browser tab that the page opens. */
function tabOf() {
  const tab = { opener: window as unknown, close: vi.fn(), location: { replace: vi.fn() } };
  vi.spyOn(window, "open").mockReturnValue(tab as unknown as Window);
  return tab;
}

const look = (visible: boolean) =>
  act(() => {
    vi.spyOn(document, "visibilityState", "get").mockReturnValue(visible ? "visible" : "hidden");
    document.dispatchEvent(new Event("visibilitychange"));
  });

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

it("opens an app in a tab that cannot access the page", async () => {
  const tab = tabOf();
  const { api, user } = await shown({ node: session(lab), openApp: { url: "https://lab.apps.test/?t=1" } });
  await user.click(await screen.findByRole("button", { name: "Open JupyterLab" }));
  await vi.waitFor(() => expect(tab.location.replace).toHaveBeenCalledWith("https://lab.apps.test/?t=1"));
  expect(tab.opener).toBeNull();
  expect(api.sent("OpenApp")).toEqual([{ input: { session: "s1", kernel: "k1", app: "lab" } }]);
});

it("closes the tab and shows the reason when an app cannot be opened", async () => {
  const tab = tabOf();
  const { user } = await shown({
    node: session(lab),
    openApp: () => {
      throw new GraphQLError("no gateway runs", { extensions: { code: "UNAVAILABLE" } });
    },
  });
  await user.click(await screen.findByRole("button", { name: "Open JupyterLab" }));
  expect(await screen.findByText("no gateway runs")).toBeDefined();
  expect(tab.close).toHaveBeenCalledOnce();
});

it("reports that the browser blocked the tab, and sends no request", async () => {
  vi.spyOn(window, "open").mockReturnValue(null);
  const { api, user } = await shown({ node: session(lab) });
  await user.click(await screen.findByRole("button", { name: "Open JupyterLab" }));
  expect(await screen.findByText(/The browser blocked the new tab/)).toBeDefined();
  expect(api.sent("OpenApp")).toEqual([]);
});

it("shows why an app failed, and starts it", async () => {
  const reason = "The program ended with exit code 1.";
  const { api, user } = await shown({
    node: session({ ...lab, status: "FAILED", reason }),
    restartApp: payload({ status: "STARTING", reason: "" }),
  });
  expect(await screen.findByText(reason)).toBeDefined();
  await user.click(screen.getByRole("button", { name: "Start JupyterLab" }));
  expect(await screen.findByText("Starting")).toBeDefined();
  expect(screen.queryByText(reason)).toBeNull();
  expect(api.sent("RestartApp")).toEqual([{ input: { session: "s1", app: "lab", kernel: "k1" } }]);
});

it("stops an app only after a confirmation", async () => {
  const { api, user } = await shown({ node: session(lab), stopApp: payload({ status: "STOPPED" }) });
  await user.click(await screen.findByRole("button", { name: "Stop JupyterLab" }));
  expect(api.sent("StopApp")).toEqual([]);
  await user.click(await screen.findByRole("button", { name: "Stop" }));
  expect(await screen.findByText("Stopped")).toBeDefined();
});

it("offers no actions for an app that only the session can start", async () => {
  await shown({ node: session({ ...lab, status: "STOPPED", startable: false }) });
  const open = await screen.findByRole<HTMLButtonElement>("button", { name: "Open JupyterLab" });
  expect(open.disabled).toBe(true);
  expect(screen.queryByRole("button", { name: /^(Start|Stop|Log of) / })).toBeNull();
});

it("shows the last output as text", async () => {
  const { user } = await shown({ node: { ...session(lab), appLog: "<b>Error</b>: port in use" } });
  await user.click(await screen.findByRole("button", { name: "Log of JupyterLab" }));
  expect((await screen.findByLabelText("Last output")).textContent).toBe("<b>Error</b>: port in use");
});

it("shares an app with an audience and networks, and stops sharing it", async () => {
  const sharing = {
    __typename: "AppShare",
    id: "a1",
    audience: "EVERYONE",
    networks: ["10.1.0.0/16"],
    expiresAt: null,
  };
  const { api, user } = await shown({
    node: session(lab),
    shareApp: payload({ sharing }),
    unshareApp: payload({ sharing: null }),
  });
  await user.click(await screen.findByRole("button", { name: "Share JupyterLab" }));
  await user.click(await screen.findByRole("combobox", { name: "Users who can open it" }));
  await user.click(await screen.findByRole("option", { name: "everyone who is logged in" }));
  await user.type(screen.getByLabelText("Networks"), "10.1.0.0/16");
  await user.click(screen.getByRole("button", { name: "Share" }));
  expect(await screen.findByText("Shared with: everyone who is logged in, from 10.1.0.0/16")).toBeDefined();
  const target = { session: "s1", app: "lab", kernel: "k1" };
  expect(api.sent("ShareApp")).toEqual([
    { input: { ...target, audience: "EVERYONE", expiresAt: null, networks: ["10.1.0.0/16"] } },
  ]);
  await user.click(screen.getByRole("button", { name: "Share JupyterLab" }));
  await user.click(await screen.findByRole("button", { name: "Stop sharing" }));
  await vi.waitFor(() => expect(screen.queryByText(/^Shared with/)).toBeNull());
  expect(api.sent("UnshareApp")).toEqual([{ input: target }]);
});

it("opens a port that is not listed", async () => {
  const tab = tabOf();
  const { api, user } = await shown({ node: session(), openApp: { url: "https://3000.apps.test/" } });
  const button = await screen.findByRole<HTMLButtonElement>("button", { name: "Open port" });
  await user.type(screen.getByLabelText("Port"), "70000");
  expect(button.disabled).toBe(true);
  await user.clear(screen.getByLabelText("Port"));
  await user.type(screen.getByLabelText("Port"), "3000{Enter}");
  await vi.waitFor(() => expect(tab.location.replace).toHaveBeenCalledOnce());
  expect(api.sent("OpenApp")).toEqual([{ input: { session: "s1", kernel: "k1", port: 3000 } }]);
});

it("refreshes only while an app starts and the page is visible", async () => {
  let app = { ...lab, status: "STARTING" };
  const { api } = await shown({ node: () => session(app) });
  expect(await screen.findByText("Starting")).toBeDefined();
  vi.useFakeTimers();
  const wait = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms));
  const reads = () => api.sent("Apps").length;
  const first = reads();

  await look(false);
  await wait(60_000);
  expect(reads()).toBe(first);

  await look(true);
  await wait(0);
  expect(reads()).toBe(first + 1);
  await wait(2900);
  expect(reads()).toBe(first + 1);
  app = lab;
  await wait(200);
  expect(screen.getByText("Running")).toBeDefined();
  const last = reads();
  await wait(60_000);
  expect(reads()).toBe(last);
});

it("loads no apps before the session runs or if the viewer cannot connect", async () => {
  const { api } = await shown({ node: session(lab) }, { live: false });
  expect(await screen.findByText("Apps are available when the session runs.")).toBeDefined();
  expect(api.sent("Apps")).toEqual([]);
  const other = await shown({ node: session(lab) }, { canConnect: false });
  expect(await screen.findByText("No access to the apps")).toBeDefined();
  expect(other.api.sent("Apps")).toEqual([]);
});
