/** A style sheet as text; the build minifies it. */
declare module "*.css" {
  const text: string;
  // biome-ignore lint/style/noDefaultExport: a file that is imported as text has no other.
  export default text;
}
