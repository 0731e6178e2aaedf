import { screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { stage } from "../../testing/stage";
import { AppMenu } from "./AppMenu";

afterEach(() => vi.restoreAllMocks());

const lab = { __typename: "App", name: "lab", title: "JupyterLab", kernelId: "k1", status: "RUNNING" };

it("loads the apps when the menu opens, and opens an app", async () => {
  const replace = vi.fn();
  vi.spyOn(window, "open").mockReturnValue({ location: { replace } } as unknown as Window);
  const { api, user } = await stage(<AppMenu session={{ id: "s1", name: "train" }} />, {
    answers: { node: { __typename: "Session", id: "s1", apps: [lab] }, openApp: { url: "https://lab.apps.test/" } },
  });
  const button = await screen.findByRole("button", { name: "Open an app of train" });
  expect(api.sent("Apps")).toEqual([]);
  await user.click(button);
  await user.click(await screen.findByRole("menuitem", { name: /JupyterLab/ }));
  await vi.waitFor(() => expect(replace).toHaveBeenCalledWith("https://lab.apps.test/"));
  expect(api.sent("OpenApp")).toEqual([{ input: { session: "s1", app: "lab", kernel: "k1" } }]);
});

it("links to the session if there are no apps", async () => {
  const { user, router } = await stage(<AppMenu session={{ id: "s1", name: "train" }} />, {
    answers: { node: { __typename: "Session", id: "s1", apps: [] } },
  });
  await user.click(await screen.findByRole("button", { name: "Open an app of train" }));
  expect(await screen.findByText("No apps")).toBeDefined();
  await user.click(screen.getByRole("menuitem", { name: "All apps and ports" }));
  await vi.waitFor(() => expect(router.state.location.pathname).toBe("/sessions/s1"));
});
