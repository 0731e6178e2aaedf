import { quote } from "../format";

/** The SSH gateway of a cluster. */
export interface Endpoint {
  host: string;
  port: number;
  /** The public host key in the format of authorized_keys. */
  hostKey: string;
}

/** Puts brackets around an IPv6 address, which are required before a port. */
const bracketed = (host: string) => (host.includes(":") ? `[${host}]` : host);

const defaultPort = 22;

/** Returns commands that connect to a session by SSH. The gateway expects the session as the user name. */
export function sshCommands({ host, port, hostKey }: Endpoint, session: { id: string; name: string }) {
  const to = `${session.id}@${host}`;
  const copyTo = `${session.id}@${bracketed(host)}`;
  const p = port === defaultPort ? "" : `-p ${port} `;
  const copy = port === defaultPort ? "scp" : `scp -P ${port}`;
  const alias = `berth-${session.name.replace(/[^\w.-]+/g, "-")}`;
  const known = `${port === defaultPort ? host : `[${host}]:${port}`} ${hostKey.trim()}`;
  const remote = `ssh-remote+${session.id}@${bracketed(host)}${port === defaultPort ? "" : `:${port}`}`;
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

/** The initial working directory of sessions. */
export const home = "/home/work";
