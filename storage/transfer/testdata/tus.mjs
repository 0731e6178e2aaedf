// Uploads with an unchanged tus-js-client: whole, in chunks with a break and a
// resumption, and empty. Arguments: module, endpoint, then ticket and size of
// each of the three.
import { pathToFileURL } from "node:url";

const [module, endpoint, ...rest] = process.argv.slice(2);
const tus = await import(pathToFileURL(module));

function upload(ticket, size, options = {}) {
  const data = Buffer.alloc(size, "x");
  return new Promise((resolve, reject) => {
    const u = new tus.Upload(data, {
      endpoint,
      retryDelays: [0, 100],
      metadata: { filename: "ignored.bin", path: "../../ignored" },
      headers: { Authorization: `Bearer ${ticket}` },
      onError: reject,
      onSuccess: () => resolve(u.url),
      onProgress: (sent) => options.stopAt && sent >= options.stopAt && u.abort().then(() => resolve(u.url), reject),
      ...options,
    });
    u.start();
  });
}

const size = (i) => Number(rest[2 * i + 1]);
await upload(rest[0], size(0));
const url = await upload(rest[2], size(1), { chunkSize: 1 << 18, stopAt: size(1) / 2 });
await upload(rest[2], size(1), { chunkSize: 1 << 18, uploadUrl: url });
await upload(rest[4], size(2));
console.log("done");
