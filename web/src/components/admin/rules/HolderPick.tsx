import { SegmentedControl, Select } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useLiveQuery } from "../../../hooks/useLiveQuery";
import { t } from "../../../i18n";
import { DomainPick, ProjectPick, UserPick } from "../Pickers";
import { nodesOf } from "../usePages";
import type { HolderKind } from "./holder";

const KeypairsQuery = graphql(`
  query KeypairPick($user: ID!) { keypairs(user: $user, first: 100) { edges { node { id accessKey name } } } }
`);

/** The domain, project, user or keypair that something is granted or attached to. */
export interface Holder {
  kind: HolderKind;
  id: string | null;
}

const names: Record<HolderKind, string> = { domain: "Domain", project: "Project", user: "User", keypair: "Keypair" };

interface Props {
  label: string;
  kinds: readonly HolderKind[];
  value: Holder;
  wrong?: Record<string, string | undefined>;
  onChange: (value: Holder) => void;
}

export function HolderPick({ label, kinds, value, wrong = {}, onChange }: Props) {
  const set = (id: string | null) => onChange({ ...value, id });
  const one = { value: value.id, onChange: set, error: wrong[value.kind], required: true };
  return (
    <div className="stack small">
      {kinds.length > 1 ? (
        <SegmentedControl
          aria-label={label}
          value={value.kind}
          data={kinds.map((k) => ({ value: k, label: t(names[k]) }))}
          onChange={(kind) => onChange({ kind: kind as HolderKind, id: null })}
        />
      ) : null}
      {value.kind === "domain" ? <DomainPick key="domain" label={t("Domain")} {...one} /> : null}
      {value.kind === "project" ? <ProjectPick key="project" label={t("Project")} {...one} /> : null}
      {value.kind === "user" ? <UserPick key="user" label={t("User")} {...one} /> : null}
      {value.kind === "keypair" ? (
        <KeypairPick key="keypair" value={value.id} error={wrong.keypair} onChange={set} />
      ) : null}
    </div>
  );
}

/** Selects a user first, then one of the user's keypairs. */
function KeypairPick({
  value,
  error,
  onChange,
}: {
  value: string | null;
  error?: string;
  onChange: (id: string | null) => void;
}) {
  const [user, setUser] = useState<string | null>(null);
  const { data } = useLiveQuery({ query: KeypairsQuery, variables: { user: user ?? "" }, pause: !user });
  const keypairs = user ? nodesOf(data?.keypairs) : [];
  return (
    <>
      <UserPick
        label={t("User")}
        required
        value={user}
        onChange={(id) => {
          setUser(id);
          onChange(null);
        }}
      />
      <Select
        label={t("Keypair")}
        required
        disabled={!user}
        placeholder={user && data && keypairs.length === 0 ? t("None that you can see") : t("Choose")}
        value={value}
        error={error}
        onChange={onChange}
        data={keypairs.map((k) => ({ value: k.id, label: k.name ? `${k.accessKey} (${k.name})` : k.accessKey }))}
      />
    </>
  );
}
