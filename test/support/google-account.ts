/** A service account of Google Cloud, and the server that gives it access tokens. */

import { createVerify, generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import { listen } from "./listen.ts";
import type { Cleanup } from "./start-server.ts";

const EMAIL = "parley@acme.iam.gserviceaccount.com";

/**
 * Returns the content of a key file for `GOOGLE_APPLICATION_CREDENTIALS`. Its server issues a token only for an
 * assertion that this key has signed (RFC 7523).
 */
export async function startGoogleAccount(t: Cleanup): Promise<string> {
  const { publicKey, privateKey } = generateKeyPairSync("rsa", {
    modulusLength: 2048,
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
  });
  const server = createServer(async (req, res) => {
    const form = new URLSearchParams(Buffer.concat(await req.toArray()).toString("utf8"));
    const [status, body] = isSigned(form.get("assertion") ?? "", publicKey)
      ? [200, { access_token: "ya29.test", token_type: "Bearer", expires_in: 3600 }]
      : [400, { error: "invalid_grant" }];
    res.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  const url = await listen(t, server);
  return JSON.stringify({
    type: "service_account",
    project_id: "acme",
    private_key_id: "1",
    private_key: privateKey,
    client_email: EMAIL,
    client_id: "1",
    token_uri: `${url}/token`,
  });
}

function isSigned(assertion: string, publicKey: string): boolean {
  const [head = "", claims = "", signature = ""] = assertion.split(".");
  const verify = createVerify("RSA-SHA256").update(`${head}.${claims}`);
  if (!verify.verify(publicKey, signature, "base64url")) return false;
  const { iss, scope } = JSON.parse(Buffer.from(claims, "base64url").toString("utf8"));
  return iss === EMAIL && scope === "https://www.googleapis.com/auth/cloud-platform";
}
