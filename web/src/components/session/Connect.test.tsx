import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { stage } from "../../testing/stage";
import { Connect } from "./Connect";

const session = { id: "0193", name: "train" };
const ssh = { __typename: "SSHEndpoint", host: "ssh.berth.example", port: 2222, hostKey: "ssh-ed25519 AAAA" };
const dialog = (answers: object) =>
  stage(<Connect session={session} onClose={() => undefined} />, { answers: { ...answers } });

it("shows commands for SSH, VS Code and a port", async () => {
  const { user } = await dialog({ server: { ssh }, sshKeys: { __typename: "SSHKeyConnection", totalCount: 1 } });
  expect(await screen.findByText("ssh -p 2222 0193@ssh.berth.example")).toBeDefined();
  expect(screen.queryByText("Add an SSH key")).toBeNull();
  await user.click(screen.getByRole("tab", { name: "VS Code" }));
  expect((await screen.findByText("Open in VS Code")).getAttribute("href")).toMatch(/^vscode:/);
  await user.click(screen.getByRole("tab", { name: "Ports" }));
  const port = await screen.findByLabelText("Port in the session");
  await user.clear(port);
  await user.type(port, "8888");
  expect(await screen.findByText("ssh -N -L 8888:127.0.0.1:8888 -p 2222 0193@ssh.berth.example")).toBeDefined();
});

it("links to the account page if the viewer has no SSH key", async () => {
  await dialog({ server: { ssh }, sshKeys: { __typename: "SSHKeyConnection", totalCount: 0 } });
  expect((await screen.findByText("Add an SSH key")).getAttribute("href")).toBe("/account/ssh-keys");
});

it("shows the berth command if the cluster has no SSH gateway", async () => {
  await dialog({ server: { ssh: null }, sshKeys: { __typename: "SSHKeyConnection", totalCount: 0 } });
  expect(await screen.findByText(/This cluster has no SSH gateway/)).toBeDefined();
  expect(screen.getByText("berth session exec -it 0193")).toBeDefined();
  expect(screen.queryByText("Add an SSH key")).toBeNull();
});
