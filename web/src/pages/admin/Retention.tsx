import { Button, NumberInput } from "@mantine/core";
import { useState } from "react";
import { byField } from "../../api/errors";
import { graphql, type ResultOf } from "../../api/graphql";
import { isSuper } from "../../components/admin/nav";
import { when } from "../../components/format";
import { FailureNote } from "../../components/Note";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { toast } from "../../hooks/useToasts";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";

const RetentionQuery = graphql(`query Retention { retention { category days sweptAt removed } }`);
const SetRetention = graphql(`
  mutation SetRetention($input: SetRetentionInput!) { setRetention(input: $input) { retention { category days } } }
`);

type Row = ResultOf<typeof RetentionQuery>["retention"][number];

/** The label of each category, and its default retention in days. */
const known: Record<string, { label: string; usual: number }> = {
  AUDIT: { label: "Audit log", usual: 365 },
  LOGINS: { label: "Login history", usual: 365 },
  SESSIONS_HISTORY: { label: "History of ended sessions", usual: 365 },
  TASKS: { label: "Finished tasks", usual: 90 },
  TRASH: { label: "Folders in the trash", usual: 30 },
  SESSIONS: { label: "Ended sessions, with their usage", usual: 0 },
  SESSION_LOGS: { label: "Logs of ended sessions", usual: 7 },
  PROMPT_RECORDS: { label: "Recorded requests to deployments", usual: 7 },
  LOGIN_SESSIONS: { label: "Ended logins", usual: 30 },
  SERIES_SAMPLES: { label: "Measurements, every sample", usual: 1 },
  SERIES_MINUTES: { label: "Measurements by minute", usual: 14 },
  SERIES_HOURS: { label: "Measurements by hour", usual: 180 },
  SERIES_DAYS: { label: "Measurements by day", usual: 1095 },
  CAPACITY: { label: "Past capacity of machines", usual: 1095 },
};

const longest = 3650;

export function Retention() {
  const { data, failure, refetch } = useLiveQuery({ query: RetentionQuery });
  return (
    <>
      <div className="page-head">
        <h1>{t("Retention")}</h1>
        <span className="dim">{t("older records are removed within the hour")}</span>
      </div>
      <FailureNote failure={failure} />
      <div className="panel scroll-x">
        <table className="grid" aria-label={t("Retention")}>
          <thead>
            <tr>
              <th scope="col">{t("Rows")}</th>
              <th scope="col">{t("Retention in days")}</th>
              <th scope="col" className="wide">
                {t("Default")}
              </th>
              <th scope="col" className="num wide">
                {t("Removed so far")}
              </th>
              <th scope="col" className="wide">
                {t("Last cleanup")}
              </th>
            </tr>
          </thead>
          <tbody>
            {(data?.retention ?? []).map((row) => (
              <Line key={row.category} row={row} onDone={refetch} />
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function Line({ row, onDone }: { row: Row; onDone: () => void }) {
  const superadmin = isSuper(useViewer());
  const { run, busy, failure, clear } = useAction(SetRetention);
  const [days, setDays] = useState<string | number>(row.days);
  const { field, rest } = byField(failure, ["days"]);
  const name = t(known[row.category]?.label ?? row.category);
  const usual = known[row.category]?.usual;
  async function save(event: React.FormEvent) {
    event.preventDefault();
    if (!(await run({ input: { category: row.category, days: Number(days) } }))) return;
    toast({ text: t("{{name}}: retention is now {{days}} days.", { name, days: Number(days) }) });
    onDone();
  }
  const spoken = (n: number) => (n === 0 ? t("forever") : t("{{count}} days", { count: n }));
  return (
    <tr>
      <th scope="row" style={{ color: "var(--text)", fontSize: "inherit" }}>
        {name}
      </th>
      <td>
        {superadmin ? (
          <form className="row" onSubmit={save} noValidate>
            <NumberInput
              aria-label={t("Retention of {{name}} in days; 0 means forever", { name })}
              w={110}
              allowDecimal={false}
              clampBehavior="none"
              value={days}
              max={longest}
              error={field.days}
              onChange={(n) => {
                setDays(n);
                clear();
              }}
            />
            <Button
              type="submit"
              variant="default"
              loading={busy}
              disabled={days === "" || Number(days) === row.days}
              aria-label={t("Set the retention of {{name}}", { name })}
            >
              {t("Set")}
            </Button>
            <span className="dim">{Number(days) === 0 && days !== "" ? t("forever") : null}</span>
            <FailureNote failure={rest} />
          </form>
        ) : (
          spoken(row.days)
        )}
      </td>
      <td className="wide dim">
        {usual === undefined ? null : superadmin && usual !== row.days ? (
          <button
            type="button"
            className="linkish"
            onClick={() => {
              setDays(usual);
              clear();
            }}
            aria-label={t("{{count}} days for {{name}}", { count: usual, name })}
          >
            {spoken(usual)}
          </button>
        ) : (
          spoken(usual)
        )}
      </td>
      <td className="num wide">{row.removed}</td>
      <td className="wide dim nowrap">{row.sweptAt ? when(row.sweptAt) : t("not yet")}</td>
    </tr>
  );
}
