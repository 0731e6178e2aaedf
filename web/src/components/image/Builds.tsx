import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { t } from "../../i18n";
import { nodesOf } from "../admin/usePages";
import { bytes, when } from "../format";
import { Empty, FailureNote } from "../Note";
import { Status } from "../Status";
import { Logs } from "../session/Logs";

const ImageBuildsQuery = graphql(`
  query ImageBuilds($owner: ID!) {
    imageBuilds(first: 20, where: { ownerID: $owner }, orderBy: [{ field: CREATED_AT, direction: DESC }]) {
      edges { node {
        id name kind status message failedStep steps cachedSteps layerBytes createdAt endedAt dockerfile
        gitAddress gitRef gitDirectory gitCommit
        session { id name status kernels { id index startedAt } }
      } }
    }
  }
`);
const CancelImageBuild = graphql(
  `mutation CancelImageBuild($input: CancelImageBuildInput!) { cancelImageBuild(input: $input) { build { id status } } }`,
);

/** Milliseconds between two looks at builds that have not ended. */
const lookEvery = 3000;

interface Props {
  owner: string;
  shown: string;
  onShow: (id: string) => void;
  /** Called when no build runs any longer. */
  onEnded: () => void;
}

/** The builds of a user, with the output of one of them. */
export function Builds({ owner, shown, onShow, onEnded }: Props) {
  const { data, failure, refetch } = useLiveQuery({ query: ImageBuildsQuery, variables: { owner } });
  const [described, setDescribed] = useState("");
  const cancel = useAction(CancelImageBuild);
  const builds = nodesOf(data?.imageBuilds);
  const missing = shown !== "" && data !== undefined && !builds.some((b) => b.id === shown);
  const running = builds.some((b) => !b.endedAt);
  const before = useRef(running);
  useEffect(() => {
    if (before.current && !running) onEnded();
    before.current = running;
    if (!missing && !running) return;
    if (missing) refetch();
    const timer = setInterval(refetch, lookEvery);
    return () => clearInterval(timer);
  }, [missing, running, refetch, onEnded]);
  return (
    <>
      <h2>{t("Builds")}</h2>
      <FailureNote failure={failure ?? cancel.failure} />
      <section className="panel" aria-label={t("Builds")}>
        {data && builds.length === 0 ? (
          <Empty title={t("No builds")}>{t("Build an image of a recipe, a Dockerfile or a list of packages.")}</Empty>
        ) : null}
        <ul className="rows">
          {builds.map((b) => {
            const kernel = b.session?.kernels?.find((k) => k.index === 0);
            return (
              <li key={b.id}>
                <div className="entry">
                  <div className="row tight">
                    <b>{b.name}</b> <Status status={b.status} />
                    <span className="dim">{when(b.createdAt)}</span>
                    {b.status === "SUCCEEDED" ? (
                      <span className="dim">
                        {t("{{steps}} steps, {{cached}} of them from the cache, {{size}} new", {
                          steps: b.steps,
                          cached: b.cachedSteps,
                          size: bytes(b.layerBytes),
                        })}
                      </span>
                    ) : null}
                    {b.session ? (
                      <Link to="/sessions/$id" params={{ id: b.session.id }}>
                        {b.session.name}
                      </Link>
                    ) : null}
                  </div>
                  {b.gitAddress ? (
                    <span className="dim">
                      {[b.gitAddress, b.gitRef, b.gitDirectory].filter(Boolean).join(" ")}{" "}
                      {b.gitCommit ? <code>{b.gitCommit.slice(0, 12)}</code> : null}
                    </span>
                  ) : null}
                  {b.failedStep ? <code className="dim">{b.failedStep}</code> : null}
                  {b.message ? <p className="dim">{b.message}</p> : null}
                  {described === b.id ? <pre className="dim">{b.dockerfile}</pre> : null}
                  {shown === b.id && b.session ? (
                    <Logs
                      session={b.session.id}
                      name={b.session.name}
                      kernel={kernel?.id ?? null}
                      begun={Boolean(kernel?.startedAt)}
                    />
                  ) : null}
                </div>
                <Button variant="subtle" size="compact-xs" onClick={() => onShow(shown === b.id ? "" : b.id)}>
                  {shown === b.id ? t("Hide output") : t("Show output")}
                </Button>
                <Button
                  variant="subtle"
                  size="compact-xs"
                  disabled={!b.dockerfile}
                  onClick={() => setDescribed(described === b.id ? "" : b.id)}
                >
                  {described === b.id ? t("Hide Dockerfile") : t("Show Dockerfile")}
                </Button>
                {b.endedAt ? null : (
                  <Button
                    variant="subtle"
                    color="red"
                    size="compact-xs"
                    loading={cancel.busy}
                    aria-label={t("Cancel the build of {{name}}", { name: b.name })}
                    onClick={async () => {
                      if (await cancel.run({ input: { id: b.id } })) refetch();
                    }}
                  >
                    {t("Cancel")}
                  </Button>
                )}
              </li>
            );
          })}
        </ul>
      </section>
    </>
  );
}
