/** What we use of Temml, whose own types say nothing of its trees. */
declare module "temml" {
  /** An element of MathML, or text; what has no `type` is only its children. */
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
    /** Throws what is wrong in the TeX; else it is drawn in red. */
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
