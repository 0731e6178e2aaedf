import { screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { stage } from "../testing/stage";
import { Confirm } from "./Confirm";

const button = () => screen.findByRole<HTMLButtonElement>("button", { name: "Purge permanently" });
const props = { opened: true, title: "Purge lab?", action: "Purge permanently", onClose: () => undefined };

it("enables a permanent action only after the name was typed", async () => {
  const onConfirm = vi.fn();
  const { user } = await stage(
    <Confirm {...props} typed="lab" onConfirm={onConfirm}>
      All its projects are deleted.
    </Confirm>,
  );
  expect((await button()).disabled).toBe(true);
  await user.type(screen.getByLabelText("Type lab to confirm"), "la");
  expect((await button()).disabled).toBe(true);
  await user.keyboard("{Enter}");
  expect(onConfirm).not.toHaveBeenCalled();
  await user.type(screen.getByLabelText("Type lab to confirm"), "b");
  await user.click(await button());
  expect(onConfirm).toHaveBeenCalledOnce();
});

it("shows the error of the server with its request ID", async () => {
  const failure = { code: "FAILED_PRECONDITION", message: "the domain has users", requestId: "r-17" };
  await stage(
    <Confirm {...props} failure={failure} onConfirm={() => undefined}>
      All its projects are deleted.
    </Confirm>,
  );
  const alert = await screen.findByRole("alert");
  expect(alert.textContent).toContain("the domain has users");
  expect(alert.textContent).toContain("r-17");
});
