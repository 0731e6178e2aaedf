import { Button } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "urql";
import { fromGraphQL } from "../../api/errors";
import { graphql, type ResultOf, type VariablesOf } from "../../api/graphql";
import { useCurrency } from "../../hooks/useCurrency";
import { useNow } from "../../hooks/useNow";
import { t } from "../../i18n";
import { slotName, withSlotNames } from "../../slots";
import { duration } from "../format";
import { money } from "../money";
import { amountsOf, check, inputOf, type LaunchDraft, withAmounts } from "./request";

const DryRunQuery = graphql(`
  query DryRun($input: CreateSessionInput!) {
    dryRun(input: $input) {
      verdict
      refusals { code message field limit }
      agents { id name }
      resourceGroup { id name }
      pricePerHour
      pending { position summary estimatedStart suggestions { kind text field to slots resourceGroup session } }
    }
  }
`);
type Trial = ResultOf<typeof DryRunQuery>["dryRun"];
type Suggestion = NonNullable<Trial["pending"]>["suggestions"][number];

interface Props {
  draft: LaunchDraft;
  onChange: (more: Partial<LaunchDraft>) => void;
}

/** Shows whether the session would start, from a dry run that is repeated as the user changes the form. */
export function Preview({ draft, onChange }: Props) {
  const complete = Object.keys(check(draft)).length === 0;
  const { idempotencyKey: _, ...wanted } = inputOf(draft, "");
  // Empty while a required field is missing, so that the server never gets an incomplete request.
  const input = complete ? JSON.stringify(wanted) : "";
  const [debounced] = useDebouncedValue(input, 400);
  const [{ data, error, fetching }] = useQuery({
    query: DryRunQuery,
    variables: { input: JSON.parse(debounced || "{}") as VariablesOf<typeof DryRunQuery>["input"] },
    pause: !complete || !debounced,
    requestPolicy: "network-only",
  });
  const trial = complete && debounced ? data?.dryRun : null;
  const currency = useCurrency();
  const current = debounced === input && !fetching;
  return (
    <div
      className="stack small preview"
      role="status"
      aria-busy={!current}
      style={{ flex: 1, minWidth: 0, opacity: current ? 1 : 0.75 }}
    >
      {error && complete ? (
        <span className="tone-bad">{withSlotNames(fromGraphQL(error).message)}</span>
      ) : trial ? (
        <>
          <Verdict trial={trial} onChange={onChange} />
          {trial.pricePerHour !== null ? (
            <span>{t("Price: {{amount}} {{currency}} an hour", { amount: money(trial.pricePerHour), currency })}</span>
          ) : null}
        </>
      ) : (
        <span className="dim">{complete ? "…" : t("Fill in the form to see when the session would start.")}</span>
      )}
    </div>
  );
}

function Verdict({ trial, onChange }: { trial: Trial; onChange: Props["onChange"] }) {
  const now = useNow(Boolean(trial.pending?.estimatedStart), 5000);
  if (trial.verdict === "NOW")
    return (
      <span className="tone-ok">
        {trial.agents.length > 0
          ? t("Starts now on {{machines}}", { machines: trial.agents.map((a) => a.name).join(", ") })
          : t("Starts now")}
      </span>
    );
  if (trial.verdict === "REFUSED" || trial.verdict === "NEVER") {
    return (
      <>
        <b className="tone-bad">
          {trial.verdict === "NEVER" ? t("This session could never start") : t("This launch would be refused")}
        </b>
        {trial.refusals.slice(0, 3).map((r) => (
          <span key={r.message}>{withSlotNames(r.message)}</span>
        ))}
      </>
    );
  }
  const start = trial.pending?.estimatedStart;
  return (
    <>
      <span className="tone-wait">
        {t("Would be pending")}: {withSlotNames(trial.pending?.summary ?? "")}{" "}
        {start ? t("It starts in {{time}} at the latest.", { time: duration(Date.parse(start) - now) }) : null}
      </span>
      <div className="row" style={{ gap: 6 }}>
        {(trial.pending?.suggestions ?? [])
          .filter((s) => s.kind !== "END_SESSION")
          .slice(0, 3)
          .map((s) => (
            <Button
              key={s.text}
              variant="light"
              size="compact-xs"
              onClick={() => onChange(changeOf(s))}
              title={withSlotNames(s.text)}
            >
              {buttonText(s)}
            </Button>
          ))}
      </div>
    </>
  );
}

/** Returns a suggestion as a change of the request. */
function changeOf(s: Suggestion): Partial<LaunchDraft> {
  if (s.kind === "SLOTS" && s.slots) return withAmounts(amountsOf(s.slots));
  return s.kind === "RESOURCE_GROUP" ? { group: s.resourceGroup } : { strict: false };
}

/** Returns the short text of a suggestion for its button. */
function buttonText(s: Suggestion): string {
  if (s.kind === "SLOTS")
    return t("Start now with {{to}}", {
      to: `${s.to} ${slotName(s.field.replace(/^slots\./, ""))}`,
    });
  return s.kind === "RESOURCE_GROUP" ? t("Start now in {{to}}", { to: s.to }) : t("Start now on any machine");
}
