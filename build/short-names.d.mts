/** Names of properties that the build makes short. */
export const shortened: readonly string[];
