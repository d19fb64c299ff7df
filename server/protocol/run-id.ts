/**
 * A name that a client gives to a run, so that it can come back to it. Mint at least 128 random bits: where
 * no key is needed, and to others with the same key, the name is the secret.
 */
export const RUN_ID = /^[A-Za-z0-9_-]{16,64}$/;
