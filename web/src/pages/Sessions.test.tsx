import { screen } from "@testing-library/react";
import { useSubscription } from "urql";
import { expect, it, vi } from "vitest";
import { graphql } from "../api/graphql";
import { publishSessionChange } from "../hooks/useSessionChanges";
import { list } from "../testing/api";
import { stage } from "../testing/stage";
import { Sessions } from "./Sessions";

const session = (name: string, status = "RUNNING") => ({
  __typename: "Session",
  id: name,
  version: 1,
  name,
  status,
  image: { __typename: "Image", id: "i", name: "python" },
});

const Changed = graphql(`subscription SessionsPushed { sessionChanged { id version name status } }`);

/** Renders the page below the subscription that the frame normally has. */
function Page() {
  useSubscription({ query: Changed }, (_, change) => {
    publishSessionChange(change.sessionChanged);
    return change;
  });
  return <Sessions />;
}

it("updates the row of a changed session, and refetches the list for a new one", async () => {
  const sessions = [session("train")];
  const { api } = await stage(<Page />, { path: "/sessions", answers: { sessions: () => list(sessions) } });
  expect(await screen.findByText("Running", { selector: "[data-status]" })).toBeDefined();
  const reads = api.sent("Sessions").length;

  await api.push("sessionChanged", { ...session("train", "TERMINATING"), version: 2 });
  expect(await screen.findByText("Stopping")).toBeDefined();
  expect(api.sent("Sessions").length).toBe(reads);

  sessions.unshift(session("evaluate", "PENDING"));
  await api.push("sessionChanged", session("evaluate", "PENDING"));
  expect(await screen.findByText("evaluate")).toBeDefined();
});

it("sends the filter to the server", async () => {
  const { api, user } = await stage(<Sessions />, {
    path: "/sessions",
    answers: {
      sessions: ({ where }: { where: { nameContainsFold?: string } }) =>
        list(where.nameContainsFold ? [] : [session("train")]),
    },
  });
  expect(await screen.findByText("train")).toBeDefined();
  expect(api.sent("Sessions")[0]).toMatchObject({ where: { ownerID: "ada" } });
  await user.type(screen.getByLabelText("Filter by name"), "eval");
  expect(await screen.findByText("No session matches")).toBeDefined();
  await vi.waitFor(() => expect(api.sent("Sessions").at(-1)).toMatchObject({ where: { nameContainsFold: "eval" } }));
});

it("explains how to start if there are no sessions", async () => {
  await stage(<Sessions />, { path: "/sessions", answers: { sessions: list([]) } });
  expect(await screen.findByRole("button", { name: "Launch the first session" })).toBeDefined();
});
