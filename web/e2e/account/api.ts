// What tests of accounts need outside the browser: API calls, codes of an authenticator app, signed requests.
import { createHash, createHmac, randomUUID } from "node:crypto";
import { appendFileSync } from "node:fs";

/**
 * Writes a secret to the file that BERTH_SECRETS names, so that a test can search the stored data of the cluster for
 * it.
 */
export function recordSecret<T extends string | undefined>(what: string, value: T): T {
  if (process.env.BERTH_SECRETS) appendFileSync(process.env.BERTH_SECRETS, `${JSON.stringify([what, value])}\n`);
  return value;
}

export type Variables = Record<string, unknown>;

/** A client of the API. */
export class Api {
  headers: Record<string, string> = { "Content-Type": "application/json", "X-Berth-CSRF": "1" };
  url: string;

  constructor(url: string, agent?: string) {
    this.url = url;
    if (agent) this.headers["User-Agent"] = agent;
  }

  async login(email: string, password: string, code?: string): Promise<this> {
    const response = await fetch(`${this.url}/auth/login`, {
      method: "POST",
      headers: this.headers,
      body: JSON.stringify({ email, password, ...(code ? { code } : {}) }),
    });
    if (!response.ok) throw new Error(await response.text());
    // The cluster prints the superadmin's first password, so it is not a secret.
    if (email !== process.env.BERTH_EMAIL) recordSecret(`the password of ${email}`, password);
    for (const cookie of response.headers.getSetCookie())
      recordSecret(`a cookie of ${email}`, cookie.split(";")[0].split("=")[1]);
    this.headers.Cookie = response.headers
      .getSetCookie()
      .map((c) => c.split(";")[0])
      .join("; ");
    return this;
  }

  bearer(token: string): this {
    this.headers.Authorization = `Bearer ${recordSecret("an access token", token)}`;
    return this;
  }

  graphql(query: string, variables?: Variables): Promise<any> {
    return send(`${this.url}/graphql`, this.headers, JSON.stringify({ query, variables }));
  }
}

async function send(url: string, headers: Record<string, string>, body: string): Promise<any> {
  const response = await fetch(url, { method: "POST", headers, body });
  const answer = await response.json();
  if (!response.ok || answer.errors) throw new Error(JSON.stringify(answer.errors ?? answer));
  return answer.data;
}

/** An authenticator app. It never returns a code twice, because a code is valid once. */
export class Authenticator {
  last = 0;
  secret: Buffer;

  constructor(key: string) {
    recordSecret("the key of an authenticator app", key.replace(/\s/g, ""));
    const bits = [...key.replace(/\s/g, "")]
      .map((c) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(c).toString(2).padStart(5, "0"))
      .join("");
    this.secret = Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
  }

  /** Returns the next unused code. The server accepts codes up to 30 seconds early. */
  async code() {
    const now = () => Math.floor(Date.now() / 30_000);
    while (now() + 1 <= this.last) await new Promise((done) => setTimeout(done, 500));
    this.last = Math.max(this.last + 1, now());
    const step = Buffer.alloc(8);
    step.writeBigUInt64BE(BigInt(this.last));
    const mac = createHmac("sha1", this.secret).update(step).digest();
    const number = mac.readUInt32BE(mac[mac.length - 1] & 15) & 0x7fffffff;
    return String(number % 1_000_000).padStart(6, "0");
  }
}

/** Sends a request that is signed as docs/signing.md describes. */
export function sendSigned(url: string, { access, secret: key }: { access: string; secret: string }, query: string) {
  recordSecret(`the secret of keypair ${access}`, key);
  const body = JSON.stringify({ query });
  const headers = signature(url, body, { access, key, created: Math.floor(Date.now() / 1000), nonce: randomUUID() });
  return send(`${url}/graphql`, { "Content-Type": "application/json", ...headers }, body);
}

interface Signing {
  access: string;
  key: string;
  created: number;
  nonce: string;
}

/** Returns the headers of a signed POST to /graphql. */
function signature(url: string, body: string, { access, key, created, nonce }: Signing): Record<string, string> {
  const digest = `sha-256=:${createHash("sha256").update(body).digest("base64")}:`;
  const values = {
    "@method": "POST",
    "@authority": new URL(url).host,
    "@path": "/graphql",
    "@query": "?",
    "content-digest": digest,
  };
  const names = Object.keys(values)
    .map((name) => `"${name}"`)
    .join(" ");
  const params = `(${names});created=${created};nonce="${nonce}";keyid="${access}";alg="hmac-sha256";tag="berth"`;
  const lines = Object.entries(values).map(([name, value]) => `"${name}": ${value}`);
  const base = [...lines, `"@signature-params": ${params}`].join("\n");
  const mac = createHmac("sha256", key).update(base).digest("base64");
  return { "Content-Digest": digest, "Signature-Input": `berth=${params}`, Signature: `berth=:${mac}:` };
}
