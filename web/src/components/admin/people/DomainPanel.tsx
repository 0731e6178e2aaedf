import { Tabs } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useAction } from "../../../hooks/useAction";
import { useLiveQuery } from "../../../hooks/useLiveQuery";
import { toast } from "../../../hooks/useToasts";
import { useViewer } from "../../../hooks/useViewer";
import { t } from "../../../i18n";
import { slotsLine, when } from "../../format";
import { FailureNote } from "../../Note";
import { Status } from "../../Status";
import { isSuper } from "../nav";
import { SidePanel } from "../Panel";
import { nodesOf } from "../usePages";
import { DomainRules } from "./DomainRules";
import { DeleteDomain, DomainQuery } from "./domain";
import { UpdateDomain } from "./domaindraft";
import { LifecycleButtons } from "./LifecycleButtons";
import { Limits } from "./Limits";
import { can } from "./rights";
import { VolumeAccess } from "./VolumeAccess";
import { canListVolumeUsers } from "./volumes";

/** Shows one domain: the rules for its users, its limits, and the button that purges it. */
export function DomainPanel({ id, onClose, onGone }: { id: string; onClose: () => void; onGone: () => void }) {
  const viewer = useViewer();
  const { data, failure, refetch, fetching } = useLiveQuery({ query: DomainQuery, variables: { id } });
  const update = useAction(UpdateDomain);
  const purge = useAction(DeleteDomain);
  const domain = data?.node && "signUp" in data.node ? data.node : null;
  if (!data || !domain) {
    return (
      <SidePanel title={t("Domain")} onClose={onClose}>
        <FailureNote failure={failure} />
        <p className="dim">
          {fetching ? t("Loading…") : t("This domain does not exist, or you do not have access to it.")}
        </p>
      </SidePanel>
    );
  }
  const holder = { kind: "domain" as const, id: domain.id, name: domain.name };
  return (
    <SidePanel title={domain.name} onClose={onClose}>
      <dl className="facts">
        <dt>{t("Status")}</dt>
        <dd className="row">
          <Status status={domain.active ? "ACTIVE" : "INACTIVE"} />
          {can(domain, "DELETE") && domain.id !== viewer.user.domain.id ? (
            <LifecycleButtons
              name={domain.name}
              active={domain.active}
              busy={update.busy || purge.busy}
              failure={update.failure ?? purge.failure}
              deactivated={t(
                "All its users are logged out and cannot log in until you activate it again. Running sessions are not affected, and folders stay.",
              )}
              purged={t(
                "You cannot delete a domain that still has users or projects. Everything else in it, such as its rules and grants, is deleted permanently.",
              )}
              onActive={async (active) => Boolean(await update.run({ input: { id, active } }))}
              onPurge={async () => {
                if (!(await purge.run({ input: { id, name: domain.name } }))) return false;
                toast({ text: t("{{name}} was deleted.", { name: domain.name }) });
                onGone();
                return true;
              }}
              onClear={() => {
                update.clear();
                purge.clear();
              }}
            />
          ) : null}
        </dd>
        <dt>{t("Contents")}</dt>
        <dd className="row">
          <Link to="/admin/users" search={{ domain: id }}>
            {t("{{count}} users", { count: domain.users.totalCount })}
          </Link>
          <Link to="/admin/projects" search={{ domain: id }}>
            {t("{{count}} projects", { count: domain.projects.totalCount })}
          </Link>
        </dd>
        <dt>{t("Created")}</dt>
        <dd>{when(domain.createdAt)}</dd>
        <dt>{t("Resources in use")}</dt>
        <dd>{slotsLine(domain.occupied) || t("nothing")}</dd>
      </dl>
      <Tabs defaultValue="rules" keepMounted={false}>
        <Tabs.List aria-label={t("About {{name}}", { name: domain.name })}>
          <Tabs.Tab value="rules">{t("Settings")}</Tabs.Tab>
          <Tabs.Tab value="limits">{t("Limits")}</Tabs.Tab>
          {canListVolumeUsers(viewer) ? <Tabs.Tab value="volumes">{t("Volumes")}</Tabs.Tab> : null}
        </Tabs.List>
        <Tabs.Panel value="rules" pt="md">
          <DomainRules
            key={domain.id}
            domain={domain}
            registries={nodesOf(data.registries)}
            editable={can(domain, "UPDATE")}
          />
        </Tabs.Panel>
        <Tabs.Panel value="limits" pt="md">
          <Limits holder={holder} attached={domain.policies} mayAttach={isSuper(viewer)} onChanged={refetch} />
        </Tabs.Panel>
        <Tabs.Panel value="volumes" pt="md">
          <VolumeAccess holder={holder} />
        </Tabs.Panel>
      </Tabs>
    </SidePanel>
  );
}
