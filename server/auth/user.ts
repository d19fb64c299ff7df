/**
 * A project says here what its users are:
 * `declare module "parley-agent" { interface Register { user: MyUser } }`
 */
// biome-ignore lint/suspicious/noEmptyInterface: projects merge their own fields into it.
export interface Register {}

/** Somebody whom the project knows, as its `authenticate` returns them. */
export type User = Register extends { user: infer Own extends { id: string } } ? Own : KnownUser;

interface KnownUser {
  /** 1 to 200 characters. */
  readonly id: string;
  readonly [field: string]: unknown;
}
