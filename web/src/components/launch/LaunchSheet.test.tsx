import { screen, within } from "@testing-library/react";
import { GraphQLError } from "graphql";
import { expect, it, vi } from "vitest";
import { list } from "../../testing/api";
import { stage } from "../../testing/stage";
import LaunchSheet from "./LaunchSheet";

const image = {
  __typename: "Image",
  id: "i1",
  name: "python:3.11",
  reference: "local/python:3.11",
  minimumSlots: {},
  apps: [],
};
const answers = {
  images: list([image]),
  vfolders: list([]),
  agents: list([]),
  sessions: list([]),
  dryRun: { verdict: "NOW" },
  createSession: { session: { __typename: "Session", id: "s1", name: "train" } },
};

const launch = () => screen.findByRole("button", { name: "Launch" });

it("launches the selected request, and opens the session", async () => {
  const onClose = vi.fn();
  const { api, user, router } = await stage(<LaunchSheet draft={{}} onClose={onClose} />, { answers });
  expect(await screen.findByText("python:3.11")).toBeDefined();
  await user.type(screen.getByLabelText("Name"), "train");
  await user.click(await launch());
  await vi.waitFor(() => expect(onClose).toHaveBeenCalledOnce());
  expect(api.sent("CreateSession")).toMatchObject([
    {
      input: {
        image: "local/python:3.11",
        name: "train",
        type: "INTERACTIVE",
        slots: { cpu: "1", mem: String(1024 ** 3) },
        project: "p1",
        resourceGroup: "g1",
      },
    },
  ]);
  await vi.waitFor(() => expect(router.state.location.pathname).toBe("/sessions/s1"));
});

it("shows an error at the field for a batch session without a command", async () => {
  const { api, user } = await stage(<LaunchSheet draft={{}} onClose={() => undefined} />, { answers });
  await screen.findByText("python:3.11");
  await user.click(screen.getByText("Batch command"));
  await user.click(await launch());
  const command = await screen.findByLabelText("Command");
  expect(command.getAttribute("aria-invalid")).toBe("true");
  expect(api.sent("CreateSession")).toEqual([]);

  await user.type(command, "python3 train.py");
  await user.click(await launch());
  await vi.waitFor(() => expect(api.sent("CreateSession")).toHaveLength(1));
  expect(api.sent("CreateSession")[0]).toMatchObject({ input: { type: "BATCH" } });
});

it("shows the error of a limit at its field", async () => {
  const refuse = () => {
    throw new GraphQLError("cpu 1 is more than your limit", {
      extensions: { code: "RESOURCE_EXHAUSTED", field: "slots.cpu", limit: "0.5" },
    });
  };
  const { user } = await stage(<LaunchSheet draft={{}} onClose={() => undefined} />, {
    answers: { ...answers, createSession: refuse },
  });
  await screen.findByText("python:3.11");
  await user.click(await launch());
  const sheet = await screen.findByRole("dialog");
  expect(await within(sheet).findByText("cpu 1 is more than your limit (0.5)")).toBeDefined();
  expect(screen.getByLabelText("CPU").getAttribute("aria-invalid")).toBe("true");
});

it("cannot launch without an image", async () => {
  await stage(<LaunchSheet draft={{}} onClose={() => undefined} />, { answers: { ...answers, images: list([]) } });
  expect(await screen.findByText("No images yet")).toBeDefined();
  expect(((await launch()) as HTMLButtonElement).disabled).toBe(true);
});

it("opens the selected app of the image with the first folder", async () => {
  const tab = { opener: null, close: vi.fn(), location: { replace: vi.fn() } };
  const open = vi.spyOn(window, "open").mockReturnValue(tab as unknown as Window);
  const lab = { ...image, apps: [{ __typename: "ImageApp", name: "jupyterlab", title: "JupyterLab" }] };
  const { api, user } = await stage(<LaunchSheet draft={{}} onClose={() => undefined} />, {
    answers: { ...answers, images: list([lab]), openApp: { url: "https://lab.example/?ticket=t", address: "" } },
  });
  await user.click((await screen.findAllByLabelText("Open when it runs"))[0]!);
  await user.click(await screen.findByText("JupyterLab"));
  await user.click(await launch());
  await vi.waitFor(() => expect(tab.location.replace).toHaveBeenCalledWith("https://lab.example/?ticket=t"));
  expect(api.sent("OpenApp")).toMatchObject([{ input: { session: "s1", app: "jupyterlab" } }]);
  open.mockRestore();
});
