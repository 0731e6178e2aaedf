import { Button, TextInput } from "@mantine/core";
import { useState } from "react";
import { type ResultOf, graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { t } from "../../../i18n";
import { bytes, parseBytes, when } from "../../format";
import { enforcementWord, filled } from "../../folder/folder";
import { FormDialog } from "../Form";
import { Part } from "../Panel";
import { type Column, PagedTable, RowButton } from "../Table";
import { usePages } from "../usePages";
import { type Holder, HolderPick } from "./HolderPick";

const ScopeFields = graphql(`
  fragment ScopeFields on QuotaScope {
    id kind limitBytes effectiveLimitBytes usedBytes usedInodes enforcement measuredAt
    holderUser { id email } holderProject { id name } volume { id }
  }
`);
type Scope = ResultOf<typeof ScopeFields>;

const ScopesQuery = graphql(`
  query QuotaScopesOf($where: QuotaScopeWhereInput, $first: Int, $after: Cursor) {
    quotaScopes(first: $first, after: $after, where: $where, orderBy: [{ field: CREATED_AT, direction: ASC }]) {
      totalCount pageInfo { hasNextPage endCursor } edges { node { ...ScopeFields } }
    }
  }
`, [ScopeFields]);
const SetScope = graphql(`
  mutation SetQuotaScope($input: SetQuotaScopeInput!) { setQuotaScope(input: $input) { quotaScope { ...ScopeFields } } }
`, [ScopeFields]);

const holderName = (s: Scope) => s.holderUser?.email ?? (s.holderProject ? t("project {{name}}", { name: s.holderProject.name }) : s.kind === "project" ? t("a project out of sight") : t("a user out of sight"));

/** What each user's and project's folders use on one volume, and what they may use at most. */
export function VolumeScopes({ volume, may }: { volume: { id: string; name: string }; may: boolean }) {
  const pages = usePages({ query: ScopesQuery, variables: { where: { volumeID: volume.id } }, pick: (data) => data.quotaScopes });
  const [edited, setEdited] = useState<Scope | "new" | null>(null);
  const columns: Column<Scope>[] = [
    { head: t("Whose"), cell: (s) => (may && (s.holderUser || s.holderProject) ? <RowButton onOpen={() => setEdited(s)}>{holderName(s)}</RowButton> : holderName(s)) },
    { head: t("Used"), num: true, cell: (s) => <span title={s.measuredAt ? t("measured {{when}}", { when: when(s.measuredAt) }) : undefined}>{s.usedBytes === null ? t("not measured") : bytes(s.usedBytes)}</span> },
    { head: t("Limit"), num: true, cell: (s) => (
      <>
        {s.effectiveLimitBytes === null ? <span className="dim">{t("none")}</span> : <span className={filled(s.usedBytes, s.effectiveLimitBytes) >= 1 ? "bad" : undefined}>{bytes(s.effectiveLimitBytes)}</span>}
        <div className="dim">{s.limitBytes === null ? (s.effectiveLimitBytes === null ? "" : t("by policy")) : t("its own")}</div>
      </>
    ) },
    { head: t("The limit is"), wide: true, cell: (s) => <span className="dim">{t(enforcementWord(s.enforcement))}</span> },
  ];
  return (
    <Part title={t("Quota scopes")} aside={may ? <Button variant="light" onClick={() => setEdited("new")}>{t("Set a limit")}</Button> : null}>
      <PagedTable label={t("Quota scopes")} pages={pages} columns={columns} empty={t("None yet; a scope is made with the first folder.")} />
      {edited ? <LimitDialog volume={volume} scope={edited === "new" ? null : edited} onClose={() => setEdited(null)} onDone={pages.reload} /> : null}
    </Part>
  );
}

function LimitDialog({ volume, scope, onClose, onDone }: { volume: { id: string; name: string }; scope: Scope | null; onClose: () => void; onDone: () => void }) {
  const { run, busy, failure } = useAction(SetScope);
  const [holder, setHolder] = useState<Holder>({ kind: "user", id: null });
  const [text, setText] = useState(scope?.limitBytes == null ? "" : bytes(scope.limitBytes));
  const amount = text.trim() === "" ? null : parseBytes(text);
  const bad = text.trim() !== "" && amount === null;
  async function submit() {
    const whom = scope ? (scope.holderUser ? { user: scope.holderUser.id } : { project: scope.holderProject?.id }) : { [holder.kind]: holder.id };
    // What one did not touch is not rounded to what the box shows of it.
    const limitBytes = scope && text === (scope.limitBytes === null ? "" : bytes(scope.limitBytes)) ? scope.limitBytes : amount;
    if (!(await run({ input: { volume: volume.id, ...whom, limitBytes } }))) return;
    onDone();
    onClose();
  }
  return (
    <FormDialog title={scope ? t("Limit of {{holder}} on {{volume}}", { holder: holderName(scope), volume: volume.name }) : t("Set a limit on {{volume}}", { volume: volume.name })} submit={t("Save")} busy={busy} failure={failure}
      fields={["limitBytes", "user", "project", "volume"]} disabled={bad || (!scope && !holder.id)} onClose={onClose} onSubmit={() => void submit()}>
      {(wrong) => (
        <>
          {scope ? null : <HolderPick label={t("Whose folders")} kinds={["user", "project"]} value={holder} wrong={wrong} onChange={setHolder} />}
          <TextInput label={t("Its own limit")} placeholder={t("what the policies say")} description={t("An amount such as 500g or 2t. Empty: what the policies say. 0: nothing at all.")} value={text} data-autofocus={scope ? true : undefined}
            error={wrong.limitBytes ?? (bad ? t("An amount such as 500g or 2t.") : undefined)} onChange={(e) => setText(e.currentTarget.value)} />
        </>
      )}
    </FormDialog>
  );
}
