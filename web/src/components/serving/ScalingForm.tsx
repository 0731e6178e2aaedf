import { Autocomplete, Button, Checkbox, NumberInput, TextInput } from "@mantine/core";
import { useState } from "react";
import { useAction } from "../../hooks/useAction";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";
import { Form } from "../admin/Form";
import { checkScaling, type ScalingDraft, scalingDraft, scalingInput, usual, usualMetrics, weekdays } from "./scaling";
import { type DeploymentDetail, inLine, UpdateDeployment } from "./serving";

const fields = ["replicas", "min", "max", "zeroAfter", "upAfter", "downAfter", "targets", "schedules"];

const browserZone = () => Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Edits the number of replicas and what changes it. */
export function ScalingForm({ deployment: d, editable }: { deployment: DeploymentDetail; editable: boolean }) {
  const [draft, setDraft] = useState(() => scalingDraft(d.scaling, d.wanted));
  const [tried, setTried] = useState(false);
  const [typed, setTyped] = useState(false); // whether the number of replicas was changed here
  const { run, busy, failure } = useAction(UpdateDeployment);
  const shown = typed ? draft : { ...draft, replicas: d.wanted };
  const found = checkScaling(shown);
  const set = (more: Partial<ScalingDraft>) => setDraft((old) => ({ ...old, ...more }));

  async function submit() {
    setTried(true);
    if (Object.keys(found).length > 0) return;
    const input = {
      id: d.id,
      scaling: scalingInput(shown),
      ...(typed ? { replicas: Number(shown.replicas) } : {}),
    };
    if (!(await run({ input }))) return;
    setTyped(false);
    toast({ text: t("The scaling was saved.") });
  }
  return (
    <section className="panel pad" aria-label={t("Scaling")}>
      <fieldset className="legendless" disabled={!editable}>
        <Form
          failure={failure ? { ...failure, field: failure.field?.replace(/^scaling\.|\[.*/g, "") } : null}
          fields={fields}
          submit={t("Save")}
          plain
          busy={busy}
          disabled={!editable}
          onSubmit={() => void submit()}
        >
          {(refused) => {
            const wrong: Record<string, string> = { ...refused, ...(tried ? found : {}) };
            const errorOf = (field: string) => wrong[field] && t(wrong[field]);
            const count = (field: "min" | "max" | "replicas", label: string, description: string) => (
              <NumberInput
                label={label}
                inputWrapperOrder={inLine}
                description={description}
                min={0}
                max={1000}
                allowDecimal={false}
                value={shown[field]}
                error={errorOf(field)}
                onChange={(value) => {
                  if (field === "replicas") setTyped(true);
                  set({ [field]: value });
                }}
              />
            );
            const time = (field: "zeroAfter" | "upAfter" | "downAfter", label: string, description: string) => (
              <TextInput
                label={label}
                inputWrapperOrder={inLine}
                description={description}
                value={draft[field]}
                error={errorOf(field)}
                onChange={(e) => set({ [field]: e.currentTarget.value })}
              />
            );
            return (
              <>
                <h2>{t("Replicas")}</h2>
                <div className="pairs wider">
                  {count("replicas", t("Wanted now"), t("Rules can change it again."))}
                  {count("min", t("Minimum"), t("0 = none without requests"))}
                  {count("max", t("Maximum"), t("also for the rules below"))}
                  {Number(draft.min) === 0 ? time("zeroAfter", t("Asleep after"), t("time without a request")) : null}
                </div>
                <Targets draft={draft} error={errorOf("targets")} onChange={set} />
                {draft.targets.length > 0 ? (
                  <div className="pairs wider">
                    {time("upAfter", t("More replicas after"), t("time for which more are called for"))}
                    {time("downAfter", t("Fewer replicas after"), t("time for which fewer are enough"))}
                  </div>
                ) : null}
                <Schedules draft={draft} error={errorOf("schedules")} onChange={set} />
              </>
            );
          }}
        </Form>
      </fieldset>
    </section>
  );
}

interface ListProps {
  draft: ScalingDraft;
  error: string | undefined;
  onChange: (more: Partial<ScalingDraft>) => void;
}

const nextKey = (rows: readonly { key: number }[]) => Math.max(-1, ...rows.map((r) => r.key)) + 1;

/** Edits the metrics and what one replica can take of each. */
function Targets({ draft, error, onChange }: ListProps) {
  const rows = draft.targets;
  const change = (key: number, more: Partial<(typeof rows)[number]>) =>
    onChange({ targets: rows.map((r) => (r.key === key ? { ...r, ...more } : r)) });
  return (
    <div className="stack tight" role="group" aria-label={t("Targets")}>
      <h2>{t("Targets")}</h2>
      <p className="dim">
        {t(
          "There are as many replicas as the largest target calls for: the value of the metric, divided by what one replica can take. Without targets, only a person changes the number.",
        )}
      </p>
      {rows.map((r) => (
        <div key={r.key} className="list-row">
          <Autocomplete
            size="xs"
            label={t("Metric")}
            w={260}
            data={[...usualMetrics]}
            value={r.metric}
            onChange={(metric) => change(r.key, { metric })}
          />
          <NumberInput
            label={t("One replica takes")}
            w={140}
            min={0}
            value={r.perReplica}
            onChange={(perReplica) => change(r.key, { perReplica })}
          />
          {usual(r.metric) || !r.metric ? null : (
            <Checkbox
              label={t("Sum of all replicas")}
              checked={r.sum}
              style={{ paddingBottom: 8 }}
              onChange={(e) => change(r.key, { sum: e.currentTarget.checked })}
            />
          )}
          <Button
            variant="subtle"
            color="red"
            aria-label={t("Remove target {{name}}", { name: r.metric })}
            onClick={() => onChange({ targets: rows.filter((one) => one.key !== r.key) })}
          >
            {t("Remove")}
          </Button>
        </div>
      ))}
      {error ? (
        <p className="bad" role="alert">
          {error}
        </p>
      ) : null}
      <div>
        <Button
          variant="light"
          size="compact-sm"
          onClick={() =>
            onChange({
              targets: [
                ...rows,
                { key: nextKey(rows), metric: rows.length === 0 ? "requests" : "", perReplica: 8, sum: false },
              ],
            })
          }
        >
          {t("Add a target")}
        </Button>
        <span className="dim">
          {" "}
          {t(
            "requests in flight, waiting, requestRate, tokenRate, a metric of the engine such as vllm:gpu_cache_usage_perc, or promql: and an expression over metrics of the engine",
          )}
        </span>
      </div>
    </div>
  );
}

/** Edits the times of the day with a higher minimum. */
function Schedules({ draft, error, onChange }: ListProps) {
  const rows = draft.schedules;
  const change = (key: number, more: Partial<(typeof rows)[number]>) =>
    onChange({ schedules: rows.map((r) => (r.key === key ? { ...r, ...more } : r)) });
  return (
    <div className="stack tight" role="group" aria-label={t("Schedules")}>
      <h2>{t("Schedules")}</h2>
      <p className="dim">{t("A schedule raises the minimum between two times of the day.")}</p>
      {rows.map((r) => (
        <div key={r.key} className="list-row">
          <TextInput
            type="time"
            label={t("From")}
            value={r.from}
            onChange={(e) => change(r.key, { from: e.currentTarget.value })}
          />
          <TextInput
            type="time"
            label={t("To")}
            value={r.to}
            onChange={(e) => change(r.key, { to: e.currentTarget.value })}
          />
          <NumberInput
            label={t("Replicas")}
            w={100}
            min={1}
            allowDecimal={false}
            value={r.replicas}
            onChange={(replicas) => change(r.key, { replicas })}
          />
          <TextInput
            label={t("Time zone")}
            w={170}
            value={r.timeZone}
            onChange={(e) => change(r.key, { timeZone: e.currentTarget.value })}
          />
          <div className="chips" role="group" aria-label={t("Days; none = every day")}>
            {weekdays.map((day, n) => (
              <button
                key={day}
                type="button"
                className="chip"
                aria-pressed={r.days.includes(n)}
                onClick={() =>
                  change(r.key, { days: r.days.includes(n) ? r.days.filter((x) => x !== n) : [...r.days, n] })
                }
              >
                {t(day)}
              </button>
            ))}
          </div>
          <Button
            variant="subtle"
            color="red"
            aria-label={t("Remove the schedule from {{from}}", { from: r.from })}
            onClick={() => onChange({ schedules: rows.filter((one) => one.key !== r.key) })}
          >
            {t("Remove")}
          </Button>
        </div>
      ))}
      {error ? (
        <p className="bad" role="alert">
          {error}
        </p>
      ) : null}
      <div>
        <Button
          variant="light"
          size="compact-sm"
          onClick={() =>
            onChange({
              schedules: [
                ...rows,
                { key: nextKey(rows), from: "08:00", to: "18:00", days: [], timeZone: browserZone(), replicas: 1 },
              ],
            })
          }
        >
          {t("Add a schedule")}
        </Button>
      </div>
    </div>
  );
}
