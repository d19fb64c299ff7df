/** The part of Temml that we use. Its own types do not describe its trees. */
declare module "temml" {
  /** An element of MathML, or text; a node without `type` stands for its children. */
  export interface MathNode {
    readonly type?: string;
    readonly text?: string;
    readonly children?: readonly MathNode[];
    readonly attributes?: Readonly<Record<string, unknown>>;
    readonly style?: Readonly<Record<string, string>>;
    readonly classes?: readonly string[];
  }

  interface Options {
    readonly displayMode: boolean;
    /** Throws on wrong TeX; otherwise it would be drawn in red. */
    readonly throwOnError: true;
    /** Whether links, images and attributes are drawn. */
    readonly trust: false;
    /** Maximum number of steps in which macros are expanded. */
    readonly maxExpand: number;
    /** The largest sizes, in em and in points. */
    readonly maxSize: readonly [number, number];
  }

  const temml: { __renderToMathMLTree(tex: string, options: Options): MathNode };
  // biome-ignore lint/style/noDefaultExport: it has no other.
  export default temml;
}
