import { quote } from "../format";

/** The SSH gateway of a cluster. */
export interface Endpoint {
  host: string;
  port: number;
  /** As a line of authorized_keys has it. */
  hostKey: string;
}

/** An address that also holds a port needs brackets around IPv6. */
const bracketed = (host: string) => (host.includes(":") ? `[${host}]` : host);

const usual = 22;

/** Lines to paste that reach a session by SSH; the gateway takes the session as the user name. */
export function linesOf({ host, port, hostKey }: Endpoint, session: { id: string; name: string }) {
  const to = `${session.id}@${host}`;
  const copyTo = `${session.id}@${bracketed(host)}`;
  const p = port === usual ? "" : `-p ${port} `;
  const copy = port === usual ? "scp" : `scp -P ${port}`;
  const alias = `berth-${session.name.replace(/[^\w.-]+/g, "-")}`;
  const known = `${port === usual ? host : `[${host}]:${port}`} ${hostKey.trim()}`;
  const remote = `ssh-remote+${session.id}@${bracketed(host)}${port === usual ? "" : `:${port}`}`;
  return {
    shell: `ssh ${p}${to}`,
    command: `ssh ${p}${to} hostname`,
    trust: `echo ${quote(known)} >> ~/.ssh/known_hosts`,
    alias,
    config: [`Host ${alias}`, `  HostName ${host}`, `  Port ${port}`, `  User ${session.id}`].join("\n"),
    upload: `${copy} -r ./data ${copyTo}:`,
    download: `${copy} -r ${copyTo}:results .`,
    mirror: `rsync -av${p ? ` -e ${quote(`ssh ${p.trim()}`)}` : ""} ./data/ ${copyTo}:data/`,
    code: `code --remote ${remote} ${home}`,
    codeLink: `vscode://vscode-remote/${remote}${home}`,
    forward: (at: number) => `ssh -N -L ${at}:127.0.0.1:${at} ${p}${to}`,
  };
}

/** Where sessions start. */
export const home = "/home/work";
