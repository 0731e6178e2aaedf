/** A mirror in the form of a registry. */
export interface Mirror {
  key: string;
  host: string;
  plainHttp: boolean;
  /** Reports whether the server stores a login of this mirror. */
  login: boolean;
  username: string;
  password: string;
}

/** The mirrors of a registry as the form shows them. Passwords are not returned. */
export const showMirrors = (list: readonly { host: string; plainHttp: boolean; login: boolean }[]): Mirror[] =>
  list.map((m) => ({ key: m.host, host: m.host, plainHttp: m.plainHttp, login: m.login, username: "", password: "" }));

/** The input of the API: without a user name, a mirror keeps the login that it has. */
export const mirrorInputs = (list: readonly Mirror[]) =>
  list.map(({ host, plainHttp, username, password }) => ({
    host: host.trim(),
    plainHttp,
    ...(username ? { username, password } : {}),
  }));
