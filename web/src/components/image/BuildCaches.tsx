import { Button } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";
import { Confirm } from "../Confirm";
import { bytes, when } from "../format";
import { FailureNote } from "../Note";

const BuildCachesQuery = graphql(`
  query BuildCaches {
    buildCaches { bytes results usedAt project { id name permissions } }
  }
`);
const DeleteBuildCache = graphql(
  `mutation DeleteBuildCache($input: DeleteBuildCacheInput!) { deleteBuildCache(input: $input) { results bytes } }`,
);

/** The caches of builds in the registry, with their sizes. */
export function BuildCaches() {
  const { data, failure, refetch } = useLiveQuery({ query: BuildCachesQuery, variables: {} });
  const [clearing, setClearing] = useState<{ id: string; name: string } | null>(null);
  const clear = useAction(DeleteBuildCache);
  const caches = data?.buildCaches ?? [];
  if (caches.length === 0) return <FailureNote failure={failure} />;
  return (
    <>
      <h2>{t("Caches of builds")}</h2>
      <FailureNote failure={failure} />
      <section className="panel" aria-label={t("Caches of builds")}>
        <ul className="rows">
          {caches.map((c) => (
            <li key={c.project.id}>
              <div className="entry">
                <div className="row tight">
                  <b>{c.project.name}</b>{" "}
                  <span className="dim">
                    {[
                      bytes(c.bytes),
                      t("results of {{count}} builds", { count: c.results }),
                      ...(c.usedAt ? [t("last used {{at}}", { at: when(c.usedAt) })] : []),
                    ].join(", ")}
                  </span>
                </div>
              </div>
              {c.project.permissions.includes("UPDATE") ? (
                <Button
                  variant="subtle"
                  color="red"
                  size="compact-xs"
                  aria-label={t("Clear the cache of {{name}}", { name: c.project.name })}
                  onClick={() => setClearing(c.project)}
                >
                  {t("Clear")}
                </Button>
              ) : null}
            </li>
          ))}
        </ul>
      </section>
      <Confirm
        opened={clearing !== null}
        title={t("Clear the cache of {{name}}?", { name: clearing?.name ?? "" })}
        action={t("Clear")}
        busy={clear.busy}
        failure={clear.failure}
        onClose={() => {
          clear.clear();
          setClearing(null);
        }}
        onConfirm={async () => {
          if (!clearing || !(await clear.run({ input: { project: clearing.id } }))) return;
          toast({ text: t("The cache of {{name}} was cleared.", { name: clearing.name }) });
          setClearing(null);
          refetch();
        }}
      >
        {t("The next builds run the steps whose results no machine has. Images stay.")}
      </Confirm>
    </>
  );
}
