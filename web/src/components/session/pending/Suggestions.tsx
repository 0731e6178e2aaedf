import { Button } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { graphql, type ResultOf } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { useLiveQuery } from "../../../hooks/useLiveQuery";
import { t } from "../../../i18n";
import { withSlotNames } from "../../../slots";
import { Confirm } from "../../Confirm";

const SuggestionsQuery = graphql(`
  query Suggestions($id: ID!) {
    node(id: $id) {
      id ... on Session { pending { suggestions { kind text field from to slots resourceGroup session } } }
    }
  }
`);
const Change = graphql(`
  mutation UpdatePending($input: UpdatePendingSessionInput!) {
    updatePendingSession(input: $input) { session { id version status slots resourceGroup { id name } } }
  }
`);
const End = graphql(`
  mutation EndForAnother($input: TerminateSessionInput!) {
    terminateSession(input: $input) { session { id version status } }
  }
`);

type Part = Extract<NonNullable<ResultOf<typeof SuggestionsQuery>["node"]>, { pending: unknown }>;
export type Suggestion = NonNullable<Part["pending"]>["suggestions"][number];

interface Props {
  session: string;
  /** Changes with the pending reason, so that the suggestions are fetched again. */
  stamp: string;
  editable: boolean;
}

const does = (s: Suggestion) => (s.kind === "END_SESSION" ? t("Stop that session") : t("Apply"));

/** Shows the changes that would let a session start at once, each with a button that applies it. */
export function Suggestions({ session, stamp, editable }: Props) {
  const { data, fetching, refetch } = useLiveQuery({
    query: SuggestionsQuery,
    variables: { id: session },
    requestPolicy: "network-only",
  });
  const seen = useRef(stamp);
  useEffect(() => {
    if (seen.current === stamp) return;
    seen.current = stamp;
    refetch();
  });
  const change = useAction(Change, true);
  const end = useAction(End, true);
  const [ending, setEnding] = useState<Suggestion | null>(null);
  const list = data?.node && "pending" in data.node ? (data.node.pending?.suggestions ?? []) : [];
  if (list.length === 0) return fetching ? <p className="dim">{t("Searching for ways to start it now…")}</p> : null;

  async function apply(s: Suggestion) {
    if (s.kind === "END_SESSION") return setEnding(s);
    const input =
      s.kind === "SLOTS"
        ? { slots: s.slots }
        : s.kind === "RESOURCE_GROUP"
          ? { resourceGroup: s.resourceGroup }
          : { strictAgents: false };
    if (await change.run({ input: { id: session, ...input } })) refetch();
  }
  return (
    <div>
      <h3>{t("Ways to start now")}</h3>
      <ul className="rows suggestions" aria-label={t("Ways to start now")}>
        {list.map((s) => (
          <li key={`${s.kind} ${s.field} ${s.to} ${s.session}`}>
            <span>{withSlotNames(s.text)}</span>
            {editable ? (
              <Button
                className="push"
                variant="light"
                size="compact-sm"
                color={s.kind === "END_SESSION" ? "red" : undefined}
                loading={change.busy}
                aria-label={`${does(s)}: ${withSlotNames(s.text)}`}
                onClick={() => void apply(s)}
              >
                {does(s)}
              </Button>
            ) : null}
          </li>
        ))}
      </ul>
      <Confirm
        opened={ending !== null}
        title={t("Stop the other session?")}
        action={t("Stop")}
        busy={end.busy}
        failure={end.failure}
        onClose={() => setEnding(null)}
        onConfirm={async () => {
          if (ending?.session && (await end.run({ input: { id: ending.session } }))) setEnding(null);
        }}
      >
        {withSlotNames(ending?.text ?? "")} {t("Files that it has not saved in a folder are lost.")}
      </Confirm>
    </div>
  );
}
