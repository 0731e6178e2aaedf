import { Button, SegmentedControl, Textarea } from "@mantine/core";
import { useRef, useState } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { useViewer } from "../../../hooks/useViewer";
import { t } from "../../../i18n";
import { save } from "../../save";
import type { Option } from "../Filter";
import { Form } from "../Form";
import { hasPermission, isSuper } from "../nav";
import { DomainPick, ProjectsPick } from "../Pickers";
import { ImportRows } from "./ImportRows";
import { csvColumns, example, type Imported, passwordsCsv } from "./imported";

const ImportUsers = graphql(`
  mutation ImportUsers($input: ImportUsersInput!) {
    importUsers(input: $input) { created skipped failed results { row email status error field password } }
  }
`);

interface Outcome {
  created: number;
  skipped: number;
  failed: number;
  results: Imported[];
}

/** Imports users from a file. The rows can be previewed before any user is created. */
export function Import({ onClose }: { onClose: () => void }) {
  const viewer = useViewer();
  const file = useRef<HTMLInputElement>(null);
  const { run, busy, failure, clear } = useAction(ImportUsers);
  const [domain, setDomain] = useState<Option>({ value: viewer.user.domain.id, label: viewer.user.domain.name });
  const [projects, setProjects] = useState<Option[]>([]);
  const [passwords, setPasswords] = useState<"GENERATED" | "GIVEN">("GENERATED");
  const [csv, setCsv] = useState("");
  const [preview, setPreview] = useState<Outcome | null>(null);
  const [done, setDone] = useState<Outcome | null>(null);
  /** Clears the preview, which no longer matches the input. */
  const changeInput = (set: () => void) => {
    set();
    setPreview(null);
    clear();
  };
  const sendImport = async (dryRun: boolean) =>
    (await run({ input: { domain: domain.value, csv, projects: projects.map((p) => p.value), passwords, dryRun } }))
      ?.importUsers ?? null;
  async function commit() {
    const result = await sendImport(false);
    if (!result) return;
    setPreview(null);
    setDone(result);
  }
  async function read(chosen: File | undefined) {
    if (!chosen) return;
    const text = await chosen.text();
    changeInput(() => setCsv(text));
  }

  if (done) {
    const made = passwordsCsv(done.results);
    return (
      <>
        <Head title={t("Imported into {{name}}", { name: domain.label })} onClose={onClose} closing={t("Show users")} />
        <Counts of={done} />
        {made ? (
          <section className="panel pad stack" role="status">
            <p>{t("The passwords are shown only now. Each user must choose a new password at the first login.")}</p>
            <div className="row">
              <Button onClick={() => save("passwords.csv", made)}>{t("Download the passwords")}</Button>
            </div>
          </section>
        ) : null}
        <ImportRows results={done.results} />
        <div className="row">
          <Button
            variant="default"
            onClick={() => {
              setDone(null);
              setCsv("");
            }}
          >
            {t("Import another file")}
          </Button>
        </div>
      </>
    );
  }
  return (
    <>
      <Head title={t("Import users")} onClose={onClose} closing={t("Back")} />
      <section className="panel pad">
        <Form
          failure={failure}
          fields={["csv", "domain", "projects"]}
          submit={preview ? t("Preview again") : t("Preview")}
          busy={busy && !preview}
          disabled={!csv.trim()}
          plain={preview !== null}
          onSubmit={async () => setPreview(await sendImport(true))}
        >
          {(wrong) => (
            <>
              <div className="pair">
                {isSuper(viewer) || hasPermission(viewer, "CREATE", "USER") ? (
                  <DomainPick
                    label={t("Domain")}
                    required
                    value={domain.value}
                    chosen={domain}
                    error={wrong.domain}
                    onChange={(value, label) =>
                      value &&
                      changeInput(() => {
                        setDomain({ value, label });
                        setProjects([]);
                      })
                    }
                  />
                ) : null}
                <ProjectsPick
                  label={t("Projects for all imported users")}
                  domain={domain.value}
                  value={projects}
                  error={wrong.projects}
                  onChange={(list) => changeInput(() => setProjects(list))}
                />
              </div>
              <div className="row">
                <Button variant="default" onClick={() => file.current?.click()}>
                  {t("Choose a CSV file")}
                </Button>
                <input
                  ref={file}
                  hidden
                  type="file"
                  accept=".csv,text/csv,text/plain"
                  data-csv
                  aria-label={t("CSV file")}
                  onChange={(e) => {
                    void read(e.currentTarget.files?.[0]);
                    e.currentTarget.value = "";
                  }}
                />
                <span className="dim">{t("or paste it below")}</span>
                <Button className="push" variant="subtle" onClick={() => changeInput(() => setCsv(example))}>
                  {t("Show an example")}
                </Button>
              </div>
              <Textarea
                label={t("Rows")}
                description={t(
                  "The first line names the columns: {{columns}}. Only the email column is required. Separate projects with semicolons.",
                  { columns: csvColumns.join(", ") },
                )}
                autosize
                minRows={6}
                maxRows={14}
                spellCheck={false}
                styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
                value={csv}
                error={wrong.csv}
                onChange={(e) => {
                  const text = e.currentTarget.value;
                  changeInput(() => setCsv(text));
                }}
              />
              <div className="row">
                <span>{t("Users without a password in the file")}</span>
                <SegmentedControl
                  aria-label={t("Users without a password in the file")}
                  value={passwords}
                  onChange={(v) => changeInput(() => setPasswords(v as typeof passwords))}
                  data={[
                    { value: "GENERATED", label: t("get a generated password") },
                    { value: "GIVEN", label: t("are rejected") },
                  ]}
                />
              </div>
            </>
          )}
        </Form>
      </section>
      {preview ? (
        <>
          <Counts of={preview} preview>
            <Button className="push" loading={busy} disabled={preview.created === 0} onClick={() => void commit()}>
              {t("Import {{count}} users", { count: preview.created })}
            </Button>
          </Counts>
          <ImportRows results={preview.results} preview />
        </>
      ) : null}
    </>
  );
}

function Head({ title, closing, onClose }: { title: string; closing: string; onClose: () => void }) {
  return (
    <div className="page-head">
      <h1>{title}</h1>
      <Button className="push" variant="default" onClick={onClose}>
        {closing}
      </Button>
    </div>
  );
}

function Counts({ of, preview, children }: { of: Outcome; preview?: boolean; children?: React.ReactNode }) {
  return (
    <div className="row" role="status">
      <b className="tone-ok">
        {preview ? t("{{n}} to create", { n: of.created }) : t("{{n}} created", { n: of.created })}
      </b>
      <span className="dim">{t("{{n}} skipped", { n: of.skipped })}</span>
      <span className={of.failed > 0 ? "tone-bad" : "dim"}>
        {preview ? t("{{n}} invalid", { n: of.failed }) : t("{{n}} failed", { n: of.failed })}
      </span>
      {children}
    </div>
  );
}
