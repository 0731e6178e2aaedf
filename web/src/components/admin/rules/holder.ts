import { t } from "../../../i18n";

export type HolderKind = "domain" | "project" | "user" | "keypair";

/** What is given to one domain, project, user or keypair; to everybody, where that is possible, when none is named. */
export interface Held {
  domain: { id: string; name: string } | null;
  project: { id: string; name: string } | null;
  user: { id: string; email: string } | null;
  keypair?: { id: string; accessKey: string } | null;
  keypairID?: string | null;
}

export function holderOf(h: Held): { kind: HolderKind | "everybody"; id: string; name: string } {
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

/** The holder as one would say it: project vision. */
export function spoken(h: Held): string {
  const { kind, name } = holderOf(h);
  return t(phrases[kind], { name });
}
