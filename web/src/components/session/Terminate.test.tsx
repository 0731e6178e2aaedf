import { screen } from "@testing-library/react";
import { GraphQLError } from "graphql";
import { expect, it, vi } from "vitest";
import { stage } from "../../testing/stage";
import { Terminate } from "./Terminate";

const running = (id: string) => ({ id, name: `train-${id}`, status: "RUNNING" });

it("stops each session, with force if that is selected", async () => {
  const onDone = vi.fn();
  const { api, user } = await stage(
    <Terminate sessions={[running("a"), running("b")]} opened onClose={() => undefined} onDone={onDone} />,
    { answers: { terminateSession: ({ input }: { input: { id: string } }) => ({ session: running(input.id) }) } },
  );
  await user.click(await screen.findByLabelText("Force stop, without a grace period"));
  await user.click(screen.getByRole("button", { name: "Stop" }));
  await vi.waitFor(() => expect(onDone).toHaveBeenCalledOnce());
  expect(api.sent("TerminateSession")).toEqual([
    { input: { id: "a", force: true } },
    { input: { id: "b", force: true } },
  ]);
  expect(await screen.findByText("2 sessions are stopping.")).toBeDefined();
});

it("stays open with the error if a session could not be stopped", async () => {
  const onDone = vi.fn();
  const { user } = await stage(
    <Terminate sessions={[running("a")]} opened onClose={() => undefined} onDone={onDone} />,
    {
      answers: {
        terminateSession: () => {
          throw new GraphQLError("the session belongs to another user", { extensions: { code: "PERMISSION_DENIED" } });
        },
      },
    },
  );
  await user.click(await screen.findByRole("button", { name: "Stop" }));
  expect((await screen.findByRole("alert")).textContent).toContain("the session belongs to another user");
  expect(onDone).not.toHaveBeenCalled();
});

it("explains that a pending session is only removed from the queue", async () => {
  await stage(<Terminate sessions={[{ ...running("a"), status: "PENDING" }]} opened onClose={() => undefined} />);
  expect(await screen.findByText("The session has not started. It is removed from the queue.")).toBeDefined();
});
