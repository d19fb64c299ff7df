/** A style sheet as text; the build minifies it. */
declare module "*.css" {
  const text: string;
  // biome-ignore lint/style/noDefaultExport: a file that is imported as text has no other.
  export default text;
}

/** A font as base64. */
declare module "*.woff2" {
  const base64: string;
  // biome-ignore lint/style/noDefaultExport: as above.
  export default base64;
}
