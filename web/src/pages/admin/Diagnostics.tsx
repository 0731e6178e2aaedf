import { Button, Checkbox } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { graphql, type ResultOf } from "../../api/graphql";
import { when } from "../../components/format";
import { FailureNote } from "../../components/Note";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { t } from "../../i18n";
import { word } from "../../words";

const DiagnosisQuery = graphql(`
  query Diagnosis {
    diagnosis { at findings { check severity subject subjectID text consequence fix } }
  }
`);

type Finding = ResultOf<typeof DiagnosisQuery>["diagnosis"]["findings"][number];

const tones: Record<Finding["severity"], string> = { FAULT: "tone-bad", WARNING: "tone-wait", NOTICE: "dim", FINE: "" };
/** The page on which the objects of a check are. */
const places: Partial<Record<Finding["check"], string>> = {
  AGENTS: "/admin/agents",
  CONDITIONS: "/admin/agents",
  PLUGINS: "/admin/agents",
  VOLUMES: "/admin/volumes",
  IMAGES: "/admin/images",
  REGISTRIES: "/admin/images",
  TASKS: "/admin/tasks",
  RETENTION: "/admin/retention",
};

/** Looks for faults of the cluster when it opens, and says what follows from each and what to do. */
export function Diagnostics() {
  const { data, failure, refetch } = useLiveQuery({ query: DiagnosisQuery });
  const [all, setAll] = useState(false);
  const findings = data?.diagnosis.findings ?? [];
  const faults = findings.filter((f) => f.severity !== "FINE");
  const shown = all ? findings : faults;
  return (
    <>
      <div className="page-head">
        <h1>{t("Diagnostics")}</h1>
        {data ? <span className="dim">{t("checked at {{time}}", { time: when(data.diagnosis.at) })}</span> : null}
        <div className="push row">
          <Checkbox
            label={t("Show all checks")}
            checked={all}
            onChange={(event) => setAll(event.currentTarget.checked)}
          />
          <Button variant="default" onClick={refetch}>
            {t("Check again")}
          </Button>
        </div>
      </div>
      <FailureNote failure={failure} what={t("The cluster could not be checked")} />
      {data && faults.length === 0 ? (
        <p className="panel pad" role="status">
          {t("The checks have found no fault.")}
        </p>
      ) : null}
      {shown.length > 0 ? (
        <div className="panel scroll-x">
          <table className="grid" aria-label={t("Diagnostics")}>
            <thead>
              <tr>
                <th scope="col">{t("Result")}</th>
                <th scope="col">{t("Check")}</th>
                <th scope="col">{t("What was found")}</th>
                <th scope="col">{t("What follows")}</th>
                <th scope="col">{t("What to do")}</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((f, i) => (
                <tr key={i}>
                  <td className={`nowrap ${tones[f.severity]}`}>{word("DiagnosisSeverity", f.severity)}</td>
                  <td className="nowrap">
                    <Place finding={f} />
                  </td>
                  <td className="long">{f.text}</td>
                  <td className="long">{f.consequence}</td>
                  <td className="long">{f.fix}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : null}
    </>
  );
}

function Place({ finding: f }: { finding: Finding }) {
  const name = word("DiagnosisCheck", f.check);
  if (f.check === "SESSIONS" && f.subjectID) {
    return (
      <Link to="/sessions/$id" params={{ id: f.subjectID }}>
        {name}
      </Link>
    );
  }
  const to = places[f.check];
  return to ? <Link to={to}>{name}</Link> : name;
}
