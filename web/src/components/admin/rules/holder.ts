import { t } from "../../../i18n";

export type HolderKind = "domain" | "project" | "user" | "keypair";

/** A grant or an attachment to one domain, project, user or keypair; without any of them, to everyone. */
export interface Holding {
  domain: { id: string; name: string } | null;
  project: { id: string; name: string } | null;
  user: { id: string; email: string } | null;
  keypair?: { id: string; accessKey: string } | null;
  keypairID?: string | null;
}

export function holderOf(h: Holding): { kind: HolderKind | "everybody"; id: string; name: string } {
  if (h.domain) return { kind: "domain", id: h.domain.id, name: h.domain.name };
  if (h.project) return { kind: "project", id: h.project.id, name: h.project.name };
  if (h.user) return { kind: "user", id: h.user.id, name: h.user.email };
  if (h.keypairID) return { kind: "keypair", id: h.keypairID, name: h.keypair?.accessKey ?? h.keypairID };
  return { kind: "everybody", id: "", name: "" };
}

const phrases = {
  domain: "domain {{name}}",
  project: "project {{name}}",
  user: "user {{name}}",
  keypair: "keypair {{name}}",
  everybody: "everyone",
};

/** Returns a holder as text, such as "project vision". */
export function holderText(h: Holding): string {
  const { kind, name } = holderOf(h);
  return t(phrases[kind], { name });
}
