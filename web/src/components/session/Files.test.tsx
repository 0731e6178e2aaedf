import { screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { stage } from "../../testing/stage";
import { Files } from "./Files";

afterEach(() => vi.unstubAllGlobals());

const session = { id: "s1", name: "train" };
const kernels = [{ id: "k1", hostname: "main", role: "main" }];
const props = { session, kernels, path: undefined, onOpen: () => undefined, live: true, over: false, canConnect: true };

it("loads no files if the viewer cannot connect or the session does not run", async () => {
  const fetch = vi.fn();
  vi.stubGlobal("fetch", fetch);
  await stage(<Files {...props} canConnect={false} />);
  expect(await screen.findByText("You do not have the permission to connect to this session.")).toBeDefined();
  await stage(<Files {...props} live={false} over />);
  expect(await screen.findByText(/were removed with the session/)).toBeDefined();
  expect(fetch.mock.calls.filter(([url]) => String(url).includes("/files"))).toEqual([]);
});

it("shows why the container does not respond, and retries", async () => {
  const problem = { code: "UNAVAILABLE", detail: "the container did not answer in time" };
  vi.stubGlobal(
    "fetch",
    vi.fn(async () => Response.json(problem, { status: 503 })),
  );
  const { user } = await stage(<Files {...props} />);
  expect(await screen.findByText(/the container did not answer in time/)).toBeDefined();
  vi.stubGlobal(
    "fetch",
    vi.fn(async () => Response.json({ path: "/home/work", home: "/home/work", files: [], next: "" })),
  );
  await user.click(screen.getByRole("button", { name: "Retry" }));
  expect(await screen.findByText("This directory is empty")).toBeDefined();
  expect(screen.getByText("berth cp -r ./data train:/home/work")).toBeDefined();
});
