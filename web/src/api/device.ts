import { csrf } from "./auth";
import { type Failure, fromResponse } from "./errors";

/** A program that waits for the login of a person. */
export interface DeviceRequest {
  /** The name that the program gives its computer. */
  host: string;
  program: string;
  /** The address from which the server got the request. */
  address: string;
  createdAt: string;
  /** Days until the token expires; 0: never. */
  expiresDays: number;
}

export type DeviceAnswer = { request: DeviceRequest; failure?: undefined } | { failure: Failure };

async function call(code: string, init: RequestInit): Promise<DeviceAnswer> {
  try {
    const response = await fetch(`/auth/device/${encodeURIComponent(code)}`, init);
    if (!response.ok) return { failure: await fromResponse(response) };
    return { request: (await response.json()) as DeviceRequest };
  } catch (error) {
    return { failure: { code: "UNAVAILABLE", message: String(error) } };
  }
}

/** Reads the request with a code. */
export const deviceRequest = (code: string) => call(code, { headers: { Accept: "application/json" } });

/** Confirms or refuses the request with a code. The code cannot be used again. */
export const answerDevice = (code: string, confirm: boolean) =>
  call(code, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...csrf },
    body: JSON.stringify({ confirm }),
  });
