import { Button } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { hasPermission, isSuper } from "../../components/admin/nav";
import { ProviderDialog } from "../../components/admin/people/ProviderDialog";
import { type Provider, ProviderFields, UpdateProvider } from "../../components/admin/people/providerdraft";
import { RowButton, Table } from "../../components/admin/Table";
import { nodesOf } from "../../components/admin/usePages";
import { Confirm } from "../../components/Confirm";
import { Empty, FailureNote } from "../../components/Note";
import { Status } from "../../components/Status";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { toast } from "../../hooks/useToasts";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";

const ProvidersQuery = graphql(
  `query Providers { identityProviders(first: 100, orderBy: [{ field: NAME }]) { edges { node { ...ProviderFields } } } }`,
  [ProviderFields],
);
const DeleteProvider = graphql(
  `
  mutation DeleteProvider($input: DeleteIdentityProviderInput!) {
    deleteIdentityProvider(input: $input) { identityProvider { id } }
  }
`,
);

/** Lists the OpenID Connect identity providers. */
export function Providers() {
  const viewer = useViewer();
  const can = (op: "CREATE" | "UPDATE" | "DELETE") => isSuper(viewer) || hasPermission(viewer, op, "IDENTITY_PROVIDER");
  const { data, failure, refetch } = useLiveQuery({ query: ProvidersQuery });
  const update = useAction(UpdateProvider, true);
  const remove = useAction(DeleteProvider);
  const [edited, edit] = useState<Provider | "new" | null>(null);
  const [deleting, setDeleting] = useState<Provider | null>(null);
  const list = nodesOf(data?.identityProviders);
  return (
    <>
      <div className="page-head">
        <h1>{t("Identity providers")}</h1>
        <span className="dim">{t("OpenID Connect")}</span>
        {can("CREATE") ? (
          <Button className="push" onClick={() => edit("new")}>
            {t("New provider")}
          </Button>
        ) : null}
      </div>
      <FailureNote failure={failure} />
      {data && list.length === 0 ? (
        <div className="panel">
          <Empty title={t("No identity providers")}>
            {t("With an identity provider, users log in with an account that they already have.")}
          </Empty>
        </div>
      ) : null}
      {list.length > 0 ? (
        <Table
          label={t("Identity providers")}
          rows={list}
          columns={[
            {
              head: t("Provider"),
              cell: (p) => (
                <>
                  {can("UPDATE") ? <RowButton onOpen={() => edit(p)}>{p.name}</RowButton> : <b>{p.name}</b>}{" "}
                  <span className="dim">{p.displayName}</span>
                </>
              ),
            },
            { head: t("Status"), cell: (p) => <Status status={p.active ? "ACTIVE" : "INACTIVE"} /> },
            { head: t("Issuer"), wide: true, cell: (p) => <span className="mono">{p.issuer}</span> },
            {
              head: t("Creates accounts"),
              cell: (p) => (p.autoProvision ? t("for {{domains}}", { domains: p.emailDomains.join(", ") }) : t("no")),
            },
            {
              head: t("New users join"),
              wide: true,
              cell: (p) => [p.domain.name, p.project?.name].filter(Boolean).join(" / "),
            },
            ...(can("UPDATE") || can("DELETE")
              ? [
                  {
                    head: "",
                    num: true,
                    cell: (p: Provider) => (
                      <span className="row keep" style={{ justifyContent: "flex-end" }}>
                        {p.active ? (
                          <Button
                            component="a"
                            variant="subtle"
                            size="compact-xs"
                            href={`/auth/oidc/${encodeURIComponent(p.name)}/start`}
                            target="_blank"
                            rel="noopener"
                            title={t(
                              "Opens the login page of the provider. If you log in there, you are logged in here as that user.",
                            )}
                            aria-label={t("Test the login with {{name}}", { name: p.name })}
                          >
                            {t("Test")}
                          </Button>
                        ) : null}
                        {can("UPDATE") ? (
                          <Button
                            variant="subtle"
                            size="compact-xs"
                            aria-label={
                              p.active
                                ? t("Deactivate {{name}}", { name: p.name })
                                : t("Activate {{name}}", { name: p.name })
                            }
                            onClick={() => void update.run({ input: { id: p.id, active: !p.active } })}
                          >
                            {p.active ? t("Deactivate") : t("Activate")}
                          </Button>
                        ) : null}
                        {can("DELETE") ? (
                          <Button
                            variant="subtle"
                            color="red"
                            size="compact-xs"
                            aria-label={t("Delete {{name}}", { name: p.name })}
                            onClick={() => {
                              remove.clear();
                              setDeleting(p);
                            }}
                          >
                            {t("Delete")}
                          </Button>
                        ) : null}
                      </span>
                    ),
                  },
                ]
              : []),
          ]}
        />
      ) : null}
      <Confirm
        opened={deleting !== null}
        title={t("Delete {{name}}?", { name: deleting?.name ?? "" })}
        action={t("Delete")}
        typed={deleting?.name}
        busy={remove.busy}
        failure={remove.failure}
        onClose={() => setDeleting(null)}
        onConfirm={async () => {
          if (!deleting || !(await remove.run({ input: { id: deleting.id } }))) return;
          toast({ text: t("{{name}} was deleted.", { name: deleting.name }) });
          setDeleting(null);
          refetch();
        }}
      >
        <p>
          {t("No one can log in with it any more. Its users stay, and log in with their passwords if they have one.")}
        </p>
      </Confirm>
      {edited ? (
        <ProviderDialog provider={edited === "new" ? null : edited} onClose={() => edit(null)} onDone={refetch} />
      ) : null}
    </>
  );
}
