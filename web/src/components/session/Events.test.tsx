import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";
import { stage } from "../../testing/stage";
import { Events } from "./Events";

const at = "2026-01-02T03:04:05Z";

it("shows the history of a session in English", async () => {
  await stage(
    <Events
      events={[
        {
          id: "e1",
          at,
          phase: "prepare",
          fromStatus: "SCHEDULED",
          toStatus: "PREPARING",
          result: "RETRY",
          attempt: 2,
          code: "UNAVAILABLE",
          message: "the registry does not respond",
          steps: [{ name: "pull_image", startedAt: at, endedAt: at, ok: false, message: "timeout" }],
        },
      ]}
    />,
  );
  const [, event, step] = await screen.findAllByRole("row");
  expect(within(event!).getByText("Scheduled → Pulling")).toBeDefined();
  expect(within(event!).getByText("Failed, will be repeated (attempt 2)")).toBeDefined();
  expect(within(step!).getByText("pull image")).toBeDefined();
  expect(within(step!).getByText("failed").className).toContain("tone-bad");
});

it("shows a text while there is no history", async () => {
  await stage(<Events events={[]} />);
  expect(await screen.findByText("No events yet")).toBeDefined();
});
