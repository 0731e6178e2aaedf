import { Button } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { language, t } from "../../../i18n";
import { word } from "../../../words";
import { enforcementWord } from "../../folder/folder";
import { bytes, when } from "../../format";
import { Meter } from "../../Meter";
import { FilterSelect } from "../Filter";
import { Part } from "../Panel";
import { type Column, PagedTable, RowButton } from "../Table";
import { usePages } from "../usePages";
import { LimitDialog } from "./LimitDialog";
import { canEnforce, holderName, limits, type Scope, ScopeFields } from "./scope";
import type { Volume } from "./volume";

const ScopesQuery = graphql(
  `
  query QuotaScopesOf($where: QuotaScopeWhereInput, $first: Int, $after: Cursor) {
    quotaScopes(first: $first, after: $after, where: $where, orderBy: [{ field: CREATED_AT, direction: ASC }]) {
      totalCount pageInfo { hasNextPage endCursor } edges { node { ...ScopeFields } }
    }
  }
`,
  [ScopeFields],
);

const kinds = ["USER", "PROJECT"] as const;

/** Shows the usage and the limit of each user's and project's folders on one volume. */
export function VolumeScopes({ volume, editable }: { volume: Volume; editable: boolean }) {
  const [kind, setKind] = useState<(typeof kinds)[number]>();
  const pages = usePages({
    query: ScopesQuery,
    variables: { where: { volumeID: volume.id, ...(kind ? { kind } : {}) } },
    pick: (data) => data.quotaScopes,
  });
  const [edited, setEdited] = useState<Scope | "new" | null>(null);
  const settable = editable && limits.some((l) => canEnforce(volume, l));
  const columns: Column<Scope>[] = [
    {
      head: t("Owner"),
      cell: (s) =>
        settable && (s.holderUser || s.holderProject) ? (
          <RowButton onOpen={() => setEdited(s)}>{holderName(s)}</RowButton>
        ) : (
          holderName(s)
        ),
    },
    {
      head: t("Used"),
      num: true,
      cell: (s) => (
        <span
          className="nowrap"
          title={s.measuredAt ? t("measured {{when}}", { when: when(s.measuredAt) }) : undefined}
        >
          {s.usedBytes === null ? <span className="dim">{t("not measured")}</span> : bytes(s.usedBytes)}
          {s.effectiveLimitBytes === null ? null : <span className="dim"> / {bytes(s.effectiveLimitBytes)}</span>}
          {s.effectiveLimitBytes === null ? null : (
            <Meter
              label={t("Storage of {{holder}}", { holder: holderName(s) })}
              used={s.usedBytes}
              limit={s.effectiveLimitBytes}
              full={0.9}
            />
          )}
        </span>
      ),
    },
    {
      head: t("Limit"),
      cell: (s) => (
        <span className="dim">
          {s.limitBytes !== null ? t("own limit") : s.effectiveLimitBytes !== null ? t("from a policy") : t("none")}
        </span>
      ),
    },
    {
      head: t("Files"),
      num: true,
      wide: true,
      cell: (s) => (
        <span className="nowrap">
          {s.usedInodes?.toLocaleString(language()) ?? <span className="dim">{t("not counted")}</span>}
          {s.limitInodes === null ? null : <span className="dim"> / {s.limitInodes.toLocaleString(language())}</span>}
          {s.limitInodes === null ? null : (
            <Meter
              label={t("Files of {{holder}}", { holder: holderName(s) })}
              used={s.usedInodes}
              limit={s.limitInodes}
              full={0.9}
            />
          )}
        </span>
      ),
    },
  ];
  return (
    <Part
      title={t("Quota scopes")}
      aside={
        <>
          <FilterSelect
            label={t("Owner of the scopes")}
            any={t("All")}
            value={kind}
            onChange={(v) => setKind(kinds.find((k) => k === v))}
            options={[
              { value: "USER", label: word("ScopeKind", "USER") },
              { value: "PROJECT", label: word("ScopeKind", "PROJECT") },
            ]}
          />
          {settable ? (
            <Button variant="light" onClick={() => setEdited("new")}>
              {t("Set a limit")}
            </Button>
          ) : null}
        </>
      }
    >
      <p className="dim">
        {t("A scope holds all folders of one user or project on this volume. A limit is {{kept}}.", {
          kept: t(enforcementWord(volume.enforcement)),
        })}
      </p>
      {editable && !settable ? (
        <p className="dim">
          {t("This volume cannot limit single scopes. Limits from policies are enforced for uploads.")}
        </p>
      ) : null}
      <PagedTable
        label={t("Quota scopes")}
        pages={pages}
        columns={columns}
        empty={kind ? t("No matches") : t("No scopes yet. A scope is created with its first folder.")}
      />
      {edited ? (
        <LimitDialog
          volume={volume}
          scope={edited === "new" ? null : edited}
          onClose={() => setEdited(null)}
          onDone={pages.reload}
        />
      ) : null}
    </Part>
  );
}
