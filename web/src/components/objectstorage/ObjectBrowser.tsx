import { Button } from "@mantine/core";
import { useEffect, useState } from "react";
import { graphql, type ResultOf } from "../../api/graphql";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { t } from "../../i18n";
import { type Column, Table } from "../admin/Table";
import { Crumbs } from "../folder/Crumbs";
import { bytes, when } from "../format";
import { FailureNote } from "../Note";

const ObjectsQuery = graphql(`
  query StoredObjects($id: ID!, $path: String, $after: String) {
    node(id: $id) {
      ... on ObjectStorage {
        id objects(path: $path, first: 100, after: $after) { objects { name path directory size modifiedAt } endCursor }
      }
    }
  }
`);
type Page = Extract<NonNullable<ResultOf<typeof ObjectsQuery>["node"]>, { objects: unknown }>["objects"];
type Row = Page["objects"][number] & { id: string };

interface Props {
  storage: { id: string; name: string };
  path: string;
  onOpen: (path: string) => void;
  /** Called when the user selects an object. */
  onChoose?: (path: string) => void;
}

/** Lists the objects of a storage below a path, page by page. */
export function ObjectBrowser({ storage, path, onOpen, onChoose }: Props) {
  const [after, setAfter] = useState<string | null>(null);
  const [before, setBefore] = useState<Row[]>([]);
  useEffect(() => {
    setAfter(null);
    setBefore([]);
  }, [storage.id, path]);
  const { data, failure } = useLiveQuery({ query: ObjectsQuery, variables: { id: storage.id, path, after } });
  const page = data?.node && "objects" in data.node ? data.node.objects : null;
  const shown = new Set(before.map((o) => o.id)); // the previous page stays visible until the next one has arrived
  const next = (page?.objects ?? []).map((o) => ({ ...o, id: o.directory ? `${o.path}/` : o.path }));
  const rows = [...before, ...next.filter((o) => !shown.has(o.id))];
  const columns: Column<Row>[] = [
    {
      head: t("Name"),
      cell: (o) =>
        o.directory ? (
          <button type="button" className="linkish" onClick={() => onOpen(o.path)}>
            {o.name}/
          </button>
        ) : onChoose ? (
          <button type="button" className="linkish" onClick={() => onChoose(o.path)}>
            {o.name}
          </button>
        ) : (
          o.name
        ),
    },
    { head: t("Size"), num: true, cell: (o) => (o.directory ? "" : bytes(o.size)) },
    { head: t("Modified"), cell: (o) => <span className="dim nowrap">{o.modifiedAt ? when(o.modifiedAt) : ""}</span> },
  ];
  return (
    <div className="stack small">
      <Crumbs name={storage.name} path={path} onOpen={onOpen} />
      <FailureNote failure={failure} what={t("The objects could not be loaded")} />
      {page && rows.length === 0 ? <p className="dim">{t("No objects here")}</p> : null}
      {rows.length > 0 ? (
        <div role="region" aria-label={storage.name} tabIndex={0} style={{ maxHeight: 320, overflowY: "auto" }}>
          <Table label={t("Objects")} rows={rows} columns={columns} />
        </div>
      ) : null}
      {page?.endCursor ? (
        <div className="row" style={{ justifyContent: "center" }}>
          <Button
            variant="default"
            size="compact-sm"
            onClick={() => {
              setBefore(rows);
              setAfter(page.endCursor);
            }}
          >
            {t("Show more")}
          </Button>
        </div>
      ) : null}
    </div>
  );
}
