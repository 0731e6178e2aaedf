import { screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { stage } from "../../testing/stage";
import { AppButtons } from "./AppButtons";
import type { App } from "./app";

afterEach(() => vi.restoreAllMocks());

const app = (name: string, status: App["status"], reason = ""): App =>
  ({ name, title: name.toUpperCase(), kernelId: "k1", status, reason, startable: true }) as App;

it("shows a button for each app that runs or starts, and the error of a failed app", async () => {
  const replace = vi.fn();
  vi.spyOn(window, "open").mockReturnValue({ location: { replace } } as unknown as Window);
  const { api, user } = await stage(
    <AppButtons
      session={{ id: "s1", name: "train" }}
      apps={[app("off", "STOPPED"), app("lab", "RUNNING"), app("board", "FAILED", "it does not listen on port 6006")]}
    />,
    { answers: { openApp: { url: "https://lab.apps.test/" } } },
  );
  const failed = await screen.findByRole("link", {
    name: /^BOARD Failed ?: it does not listen on port 6006 \(train\)$/i,
  });
  expect(failed.getAttribute("href")).toContain("/sessions/s1");
  expect(screen.queryByText("OFF")).toBeNull();
  await user.click(screen.getByRole("button", { name: "Open LAB of train" }));
  await vi.waitFor(() => expect(replace).toHaveBeenCalledWith("https://lab.apps.test/"));
  expect(api.sent("OpenApp")).toEqual([{ input: { session: "s1", app: "lab", kernel: "k1" } }]);
});

it("shows at most two buttons, and all apps in the menu", async () => {
  await stage(
    <AppButtons
      session={{ id: "s1", name: "train" }}
      apps={[app("a", "RUNNING"), app("b", "RUNNING"), app("c", "STARTING")]}
    />,
  );
  expect(await screen.findByRole("button", { name: "Open C of train, which is starting" })).toBeDefined();
  expect(screen.queryByRole("button", { name: "Open B of train" })).toBeNull();
  expect(screen.getByRole("button", { name: "Open an app of train" })).toBeDefined();
});
