import { useDebouncedValue } from "@mantine/hooks";
import { Link } from "@tanstack/react-router";
import { useQuery } from "urql";
import { fromGraphQL } from "../../../api/errors";
import { graphql, type VariablesOf } from "../../../api/graphql";
import { t } from "../../../i18n";
import { when } from "../../format";
import { FailureNote } from "../../Note";

const TrialQuery = graphql(`
  query IdleTrial($checker: ID, $input: CreateIdleCheckerInput) {
    idleDryRun(checker: $checker, input: $input) {
      examined ending unknown exempt
      sessions { endsAt now reason session { id name owner { id email } } }
    }
  }
`);

const shown = 5;

/**
 * Shows the sessions that a checker would end now. A new checker is evaluated as if it applied to the whole cluster.
 */
export function Trial(asked: { checker?: string; input?: VariablesOf<typeof TrialQuery>["input"] }) {
  const [settled] = useDebouncedValue(JSON.stringify(asked), 400);
  const [{ data, error, fetching }] = useQuery({
    query: TrialQuery,
    variables: JSON.parse(settled) as typeof asked,
    requestPolicy: "network-only",
  });
  const run = data?.idleDryRun;
  if (!run) return error ? <FailureNote failure={fromGraphQL(error)} /> : <p className="dim">{t("Checking…")}</p>;
  const now = run.sessions.filter((s) => s.now);
  return (
    <div className="stack small" role="status" aria-busy={fetching}>
      <p>
        <b className={run.ending > 0 ? "tone-wait" : "tone-ok"}>
          {t("It would stop {{count}} sessions now", { count: run.ending })}
        </b>{" "}
        <span className="dim">
          {t("of {{count}} checked", { count: run.examined })}
          {run.unknown > 0 ? ` · ${t("{{count}} not measured for long enough", { count: run.unknown })}` : null}
          {run.exempt > 0 ? ` · ${t("{{count}} exempt", { count: run.exempt })}` : null}
        </span>
      </p>
      {now.length > 0 ? (
        <ul className="rows" aria-label={t("Sessions to stop now")}>
          {now.slice(0, shown).map((s) => (
            <li key={s.session.id} title={when(s.endsAt)}>
              <Link to="/sessions/$id" params={{ id: s.session.id }}>
                {s.session.name}
              </Link>
              <span className="dim">{s.session.owner?.email}</span>
              <span className="push">{s.reason}</span>
            </li>
          ))}
        </ul>
      ) : null}
      {run.ending > shown ? <p className="dim">{t("and {{count}} more", { count: run.ending - shown })}</p> : null}
    </div>
  );
}
