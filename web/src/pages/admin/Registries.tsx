import { Button } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { graphql } from "../../api/graphql";
import { type Check, RegistryChecks } from "../../components/admin/registries/RegistryChecks";
import { RegistryForm } from "../../components/admin/registries/RegistryForm";
import type { Registry } from "../../components/admin/registries/registry";
import { ScanReport } from "../../components/admin/registries/ScanReport";
import { Confirm } from "../../components/Confirm";
import { when } from "../../components/format";
import { Empty } from "../../components/Note";
import { Progress } from "../../components/task/Progress";
import { TaskButtons } from "../../components/task/TaskButtons";
import { isUnfinished, type Task, TaskFields, usePolledTasks } from "../../components/task/task";
import { useAction } from "../../hooks/useAction";
import { t } from "../../i18n";

const DeleteRegistry = graphql(
  `mutation DeleteRegistry($input: DeleteRegistryInput!) { deleteRegistry(input: $input) { id } }`,
);
const ScanRegistry = graphql(
  `mutation ScanRegistry($input: ScanRegistryInput!) { scanRegistry(input: $input) { task { subjectID ...TaskFields } } }`,
  [TaskFields],
);

interface Props {
  registries: Registry[] | undefined;
  /** The latest scans, newest first. */
  scans: (Task & { subjectID: string | null })[];
  /** Whether the viewer can change the registries. */
  editable: boolean;
  onDone: () => void;
}

type Opened = { kind: "form"; registry: Registry | null } | { kind: "test" | "report" | "remove"; registry: Registry };

export function Registries({ registries, scans, editable, onDone }: Props) {
  const scan = useAction(ScanRegistry, true);
  const remove = useAction(DeleteRegistry);
  const [opened, open] = useState<Opened | null>(null);
  const [checks, setChecks] = useState<readonly Check[]>([]);
  const polled = usePolledTasks(scans.filter(isUnfinished).map((x) => x.id));
  const latest = (id: string) => {
    const task = scans.find((x) => x.subjectID === id);
    return polled.find((x) => x.id === task?.id) ?? task;
  };
  // The list of images changes when a scan has ended.
  const ended = polled.filter((x) => !isUnfinished(x)).length;
  const before = useRef(0);
  useEffect(() => {
    if (ended > before.current) onDone();
    before.current = ended;
  }, [ended, onDone]);
  const close = () => open(null);
  return (
    <section className="panel" aria-labelledby="registries">
      <div className="panel-head">
        <h2 id="registries">{t("Registries")}</h2>
        <Button
          className="push"
          variant="default"
          disabled={!editable}
          onClick={() => open({ kind: "form", registry: null })}
        >
          {t("Add a registry")}
        </Button>
      </div>
      {registries?.length === 0 ? (
        <Empty title={t("No registries yet")} cli="berth image registry create local 127.0.0.1:5000 --plain-http" />
      ) : null}
      <ul className="rows">
        {(registries ?? []).map((r) => (
          <Row
            key={r.id}
            registry={r}
            task={latest(r.id)}
            editable={editable}
            onScan={async () => {
              if (await scan.run({ input: { id: r.id } })) onDone();
            }}
            onOpen={(kind) => {
              remove.clear();
              setChecks([]);
              open({ kind, registry: r });
            }}
            onChanged={onDone}
          />
        ))}
      </ul>
      {opened?.kind === "form" ? (
        <RegistryForm key={opened.registry?.id ?? "new"} registry={opened.registry} onClose={close} onDone={onDone} />
      ) : null}
      {opened?.kind === "test" ? (
        <RegistryChecks registry={opened.registry} checks={checks} onChecks={setChecks} onClose={close} />
      ) : null}
      {opened?.kind === "report" ? <ScanReport registry={opened.registry} onClose={close} /> : null}
      <Confirm
        opened={opened?.kind === "remove"}
        title={t("Remove the registry {{name}}?", { name: opened?.registry?.name ?? "" })}
        action={t("Remove")}
        busy={remove.busy}
        failure={remove.failure}
        onClose={close}
        onConfirm={async () => {
          if (opened?.registry && (await remove.run({ input: { id: opened.registry.id } }))) {
            close();
            onDone();
          }
        }}
      >
        {t("Its images can no longer be launched. The registry itself keeps them.")}
      </Confirm>
    </section>
  );
}

interface RowProps {
  registry: Registry;
  task: Task | undefined;
  editable: boolean;
  onScan: () => void;
  onOpen: (kind: "form" | "test" | "report" | "remove") => void;
  onChanged: () => void;
}

function Row({ registry: r, task, editable, onScan, onOpen, onChanged }: RowProps) {
  const scanning = task !== undefined && isUnfinished(task);
  const actions = [
    { kind: "test", text: t("Test"), label: t("Test {{name}}", { name: r.name }) },
    { kind: "report", text: t("Report"), label: t("Report on {{name}}", { name: r.name }) },
    { kind: "form", text: t("Edit"), label: t("Edit {{name}}", { name: r.name }) },
    { kind: "remove", text: t("Remove"), label: t("Remove {{name}}", { name: r.name }) },
  ] as const;
  const facts = [
    r.plainHttp ? t("plain HTTP") : "",
    r.lastScannedAt ? t("scanned {{at}}", { at: when(r.lastScannedAt) }) : t("never scanned"),
    r.scanEvery > 0 ? t("every {{hours}} h", { hours: Math.round(r.scanEvery / 360) / 10 }) : "",
    task?.status === "FAILED" ? "" : (task?.message ?? ""),
  ];
  return (
    <li>
      <div style={{ flex: 1, minWidth: 0 }}>
        <b>{r.name}</b> <code>{r.host}</code>
        <div className="dim">{facts.filter(Boolean).join(" · ")}</div>
        {task?.status === "FAILED" ? <div className="bad">{task.message}</div> : null}
      </div>
      {scanning ? (
        <>
          <Progress task={task} />
          {editable ? <TaskButtons task={task} onChanged={onChanged} /> : null}
        </>
      ) : null}
      <div className="row tight keep" style={{ flex: "none" }}>
        {scanning ? null : (
          <Button
            variant="light"
            size="compact-xs"
            disabled={!editable}
            aria-label={t("Scan {{name}}", { name: r.name })}
            onClick={onScan}
          >
            {t("Scan")}
          </Button>
        )}
        {actions.map((a) => (
          <Button
            key={a.kind}
            variant="subtle"
            color={a.kind === "remove" ? "red" : undefined}
            size="compact-xs"
            disabled={!editable}
            aria-label={a.label}
            onClick={() => onOpen(a.kind)}
          >
            {a.text}
          </Button>
        ))}
      </div>
    </li>
  );
}
