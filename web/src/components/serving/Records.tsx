import { Button, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";
import { nodesOf } from "../admin/usePages";
import { Confirm } from "../Confirm";
import { when } from "../format";
import { Empty, FailureNote } from "../Note";
import { type DeploymentDetail, measured } from "./serving";

const RecordsQuery = graphql(`
  query PromptRecords($id: ID!, $where: PromptRecordWhereInput) {
    node(id: $id) {
      ... on Deployment {
        id
        promptRecords(first: 50, orderBy: [{ field: CREATED_AT, direction: DESC }], where: $where) {
          totalCount
          edges { node {
            id createdAt path revision status request answer truncated promptTokens completionTokens durationMs
            user { id email }
          } }
        }
      }
    }
  }
`);

const DeleteRecords = graphql(`
  mutation DeletePromptRecords($input: DeletePromptRecordsInput!) { deletePromptRecords(input: $input) { deleted } }
`);

/** Lists the newest recorded requests of a deployment for its owner. */
export function Records({ deployment: d }: { deployment: DeploymentDetail }) {
  const [text, setText] = useState("");
  const [deleting, remove] = useDisclosure(false);
  const where = text ? { or: [{ requestContainsFold: text }, { answerContainsFold: text }] } : null;
  const { data, failure, refetch } = useLiveQuery({ query: RecordsQuery, variables: { id: d.id, where } });
  const records = data?.node && "promptRecords" in data.node ? data.node.promptRecords : null;
  const rows = nodesOf(records);
  return (
    <div className="stack">
      <div className="row wrap">
        <TextInput
          type="search"
          aria-label={t("Search in requests and answers")}
          placeholder={t("Search in requests and answers")}
          value={text}
          onChange={(e) => setText(e.currentTarget.value)}
        />
        <Button variant="default" onClick={refetch}>
          {t("Refresh")}
        </Button>
        {rows.length > 0 ? (
          <Button variant="outline" color="red" onClick={remove.open}>
            {t("Delete all")}
          </Button>
        ) : null}
      </div>
      <FailureNote failure={failure} what={t("The requests could not be loaded")} />
      {records && rows.length === 0 ? (
        <Empty title={text ? t("No request contains this text") : t("No recorded requests")}>
          {d.recorded ? null : t("The settings of the deployment can record requests and answers.")}
        </Empty>
      ) : null}
      {rows.length > 0 ? (
        <ul className="panel records" aria-label={t("Requests")}>
          {rows.map((r) => (
            <li key={r.id}>
              <details>
                <summary>
                  <span className="nowrap dim">{when(r.createdAt)}</span>{" "}
                  <span className={r.status >= 400 ? "tone-bad" : ""}>{r.status}</span> <code>{r.path}</code>{" "}
                  <span className="dim">
                    {[
                      r.user?.email ?? t("without a key"),
                      r.revision === null ? "" : t("revision {{number}}", { number: r.revision }),
                      t("{{in}} tokens in, {{out}} out", { in: r.promptTokens, out: r.completionTokens }),
                      measured(r.durationMs),
                    ]
                      .filter(Boolean)
                      .join(" · ")}
                  </span>
                </summary>
                <h3>{t("Request")}</h3>
                <pre>{r.request}</pre>
                <h3>{t("Answer")}</h3>
                <pre>{r.answer}</pre>
                {r.truncated ? <p className="dim">{t("Longer texts are cut after 64 KiB.")}</p> : null}
              </details>
            </li>
          ))}
        </ul>
      ) : null}
      {records && records.totalCount > rows.length ? (
        <p className="dim">
          {t("The newest {{shown}} of {{total}}.", { shown: rows.length, total: records.totalCount })}
        </p>
      ) : null}
      {deleting ? <DeleteAll deployment={d} onDone={refetch} onClose={remove.close} /> : null}
    </div>
  );
}

interface DeleteProps {
  deployment: DeploymentDetail;
  onDone: () => void;
  onClose: () => void;
}

function DeleteAll({ deployment: d, onDone, onClose }: DeleteProps) {
  const { run, busy, failure } = useAction(DeleteRecords);
  return (
    <Confirm
      opened
      title={t("Delete all recorded requests of {{name}}?", { name: d.name })}
      action={t("Delete")}
      busy={busy}
      failure={failure}
      onConfirm={async () => {
        const done = await run({ input: { deployment: d.id } });
        if (!done) return;
        toast({ text: t("{{count}} records were deleted.", { count: done.deletePromptRecords.deleted }) });
        onDone();
        onClose();
      }}
      onClose={onClose}
    >
      <p>{t("This cannot be undone.")}</p>
    </Confirm>
  );
}
